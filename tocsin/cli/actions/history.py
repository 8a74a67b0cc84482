"""`tocsin history`: lists runs of actions that have ended. Reads only."""

from __future__ import annotations

from tocsin.cli.actions.actions import Limit, Name, Rule, Since, State, list_runs
from tocsin.cli.actions.text import print_runs, states_option
from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, OnlyOwner
from tocsin.cli.output import print_json
from tocsin.core.errors import InvalidInput


def history(
    state: State = None,
    name: Name = None,
    rule: Rule = None,
    owner: OnlyOwner = None,
    since: Since = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List runs of actions that have ended, the newest first.

    \b
    Examples:
      tocsin history --state failed --since 2h
      tocsin history --action email-digest --limit 10
    """
    from rules.runbook.states import ENDED

    states = states_option(state) or ENDED
    if not set(states) <= set(ENDED):
        raise InvalidInput(
            f"a run that is {state} has not ended", remedy=f"`tocsin actions --state {state}` lists those"
        )
    now, rows = run_command(list_runs(states, name, rule, owner, since, limit))
    if as_json:
        print_json(rows)
        return
    filters = (state, name, rule, owner, since)
    print_runs(rows, now, "no runs match" if any(filters) else "no run has ended")

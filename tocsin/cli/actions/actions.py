"""`tocsin actions`: lists runs of actions. `tocsin actions show | retry | cancel`: about one run.

Guarantees: lists read only. A retry or a cancellation is one transaction, with its steps in the
record log and its row in the audit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.actions.text import STATE_HELP, print_run, print_runs, states_option
from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, Json, OnlyOwner, current_user, instant_or_ago
from tocsin.cli.output import print_json, printable

if TYPE_CHECKING:
    from datetime import datetime

    from rules.actions.history import Attempt

RunId = Annotated[
    str, typer.Argument(help="ID of the run, or the first four or more of its letters.", metavar="ID")
]
State = Annotated[str | None, typer.Option("--state", help=STATE_HELP)]
Name = Annotated[str | None, typer.Option("--action", help="Only of this action.")]
Rule = Annotated[str | None, typer.Option("--rule", help="Only of this action_rule.")]
Since = Annotated[
    str | None,
    typer.Option("--since", help="Only started since: 2h ago, or an instant such as 2026-03-07T00:00Z."),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most this many.")]


def actions(
    context: typer.Context,
    state: State = None,
    name: Name = None,
    rule: Rule = None,
    owner: OnlyOwner = None,
    since: Since = None,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List runs of actions, the newest first; show, retry or cancel one.

    \b
    Examples:
      tocsin actions --state dead
      tocsin actions show 3f2a91c0
      tocsin actions retry 3f2a91c0
    """
    if context.invoked_subcommand is not None:
        return
    now, rows = run_command(list_runs(states_option(state), name, rule, owner, since, limit))
    if as_json:
        print_json(rows)
        return
    filters = (state, name, rule, owner, since)
    print_runs(rows, now, "no runs match" if any(filters) else "no action has run")


def show(run: RunId, as_json: Json = False) -> None:
    """Show one run, with every attempt of every step.

    \b
    Example:
      tocsin actions show 3f2a91c0
    """
    row, attempts = run_command(_show(run))
    print_run(row, attempts, as_json)


def retry(run: RunId, by: CreatedBy = None, as_json: Json = False) -> None:
    """Start a dead run again, from the step that failed.

    \b
    Example:
      tocsin actions retry 3f2a91c0
    """
    row, steps = run_command(_retry(run, by or current_user()))
    if as_json:
        print_json({"run": row["id"], "steps": steps})
        return
    due = f"{'step' if len(steps) == 1 else 'steps'} {', '.join(map(str, steps))}"
    typer.echo(printable(f"run {str(row['id'])[:8]} of action {row['name']!r} starts again with {due}"))


def cancel(run: RunId, by: CreatedBy = None, as_json: Json = False) -> None:
    """Cancel an active run.

    Its waits end, and the result of the attempt in progress is ignored.

    \b
    Example:
      tocsin actions cancel 3f2a91c0
    """
    row = run_command(_cancel(run, by or current_user()))
    if as_json:
        print_json({"run": row["id"], "state": "cancelled"})
        return
    typer.echo(printable(f"cancelled run {str(row['id'])[:8]} of action {row['name']!r}"))


async def list_runs(
    states: tuple[str, ...] | None,
    name: str | None,
    rule: str | None,
    owner: str | None,
    since: str | None,
    limit: int,
) -> tuple[datetime, list[dict[str, Any]]]:
    from rules.actions import history
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        now = await database_now(connection)
        from_at = None if since is None else instant_or_ago(since, "--since", now)
        rows = await history.list_runs(
            connection, states=states, name=name, rule=rule, owner=owner, since=from_at, limit=limit
        )
        return now, rows


async def _show(run: str) -> tuple[dict[str, Any], list[Attempt]]:
    from rules.actions.history import find_run, read_attempts
    from tocsin.cli.session import database

    async with database() as connection:
        row = await find_run(connection, run)
        return row, await read_attempts(connection, row)


async def _retry(run: str, who: str) -> tuple[dict[str, Any], list[int]]:
    from rules.actions.history import find_run
    from rules.actions.retry import retry_run
    from tocsin.cli.session import command_actor, database
    from tocsin.policy import Operation

    async with database() as connection:
        row = await find_run(connection, run)
        actor = await command_actor(connection, who, Operation.RETRY_RUN, row["owner"])
        return row, await retry_run(connection, row["id"], actor)


async def _cancel(run: str, who: str) -> dict[str, Any]:
    from rules.actions.cancel import cancel_run
    from rules.actions.history import find_run
    from tocsin.cli.session import command_actor, database
    from tocsin.policy import Operation

    async with database() as connection:
        row = await find_run(connection, run)
        actor = await command_actor(connection, who, Operation.CANCEL_RUN, row["owner"])
        await cancel_run(connection, row["id"], actor)
        return row

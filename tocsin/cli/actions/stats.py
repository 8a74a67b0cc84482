"""`tocsin stats`: counts runs of actions by their end, and averages their durations. Reads only."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, instant_or_ago
from tocsin.cli.output import duration_text, print_json, print_table
from tocsin.cli.remote.over_http import over_http

if TYPE_CHECKING:
    from rules.actions.history import Statistics

_COLUMNS = ("completed", "failed", "timed_out", "cancelled", "skipped")


def stats(
    since: Annotated[
        str | None, typer.Option("--since", help="Only started since: 24h ago, or an instant.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Count the runs of actions by how they ended, in total and by rule.

    AVERAGE is the mean duration of the completed runs.

    \b
    Example:
      tocsin stats --since 24h
    """
    total = run_command(_stats(since))
    if as_json:
        rules = {rule: _counts_json(counts) for rule, counts in total.rules.items()}
        print_json({**_counts_json(total), "rules": rules})
        return
    if not total.total:
        typer.echo("no runs match" if since else "no action has run")
        return
    rows = [("all", total), *total.rules.items()]
    print_table(
        ("RULE", "TOTAL", "ACTIVE", *(state.upper().replace("_", " ") for state in _COLUMNS), "AVERAGE"),
        ((rule, *_cells(counts)) for rule, counts in rows),
    )


def _cells(counts: Statistics) -> tuple[str, ...]:
    ended = [counts.states.get(state, 0) for state in _COLUMNS]
    average = "" if counts.average_s is None else duration_text(timedelta(seconds=counts.average_s))
    return str(counts.total), str(counts.total - sum(ended)), *map(str, ended), average


def _counts_json(counts: Statistics) -> dict[str, Any]:
    average_ms = None if counts.average_s is None else round(counts.average_s * 1000)
    return {"total": counts.total, "states": counts.states, "average_ms": average_ms}


@over_http("records.read_statistics")
async def _stats(since: str | None) -> Statistics:
    from rules.actions.history import read_statistics
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        from_at = None if since is None else instant_or_ago(since, "--since", await database_now(connection))
        return await read_statistics(connection, from_at)

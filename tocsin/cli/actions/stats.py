"""`tocsin stats`: how actions end, and how long they take, in all and by rule."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json, instant_or_ago
from tocsin.cli.output import duration_text, print_json, print_table

if TYPE_CHECKING:
    from rules.actions.history import Statistics

_COLUMNS = ("completed", "failed", "timed_out", "cancelled", "skipped")


def stats(
    since: Annotated[
        str | None, typer.Option("--since", help="Only begun since: 24h ago, or an instant.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show how many actions ended how, and how long the completed ones took on average, in all and by rule.

    \b
    Example:
      tocsin stats --since 24h
    """
    found = finish(_stats(since))
    if as_json:
        print_json({**_facts(found), "rules": {rule: _facts(one) for rule, one in found.rules.items()}})
        return
    if not found.total:
        typer.echo("no action has begun")
        return
    rows = [("all", found), *found.rules.items()]
    print_table(
        ("RULE", "TOTAL", "UNDER WAY", *(state.upper().replace("_", " ") for state in _COLUMNS), "AVERAGE"),
        ((name, *_cells(one)) for name, one in rows),
    )


def _cells(one: Statistics) -> tuple[str, ...]:
    ended = [one.states.get(state, 0) for state in _COLUMNS]
    average = "" if one.average_s is None else duration_text(timedelta(seconds=one.average_s))
    return str(one.total), str(one.total - sum(ended)), *map(str, ended), average


def _facts(one: Statistics) -> dict[str, Any]:
    average_ms = None if one.average_s is None else round(one.average_s * 1000)
    return {"total": one.total, "states": one.states, "average_ms": average_ms}


async def _stats(since: str | None) -> Statistics:
    from rules.actions.history import read_statistics
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        from_at = None if since is None else instant_or_ago(since, "--since", await database_now(connection))
        return await read_statistics(connection, from_at)

"""`tocsin health`: the health of each system, and which members make it so."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json
from tocsin.cli.output import countdown, print_json, print_table

if TYPE_CHECKING:
    from datetime import datetime

_SHOWN = 3
_LATE = timedelta(seconds=5)


def health(as_json: Json = False) -> None:
    """List the systems with their health: ok, degraded, outage or unknown, and why.

    \b
    Example:
      tocsin health
    """
    now, rows = finish(_health())
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("no systems are applied: write a `system` document and `tocsin apply` it")
        return
    print_table(
        ("SYSTEM", "HEALTH", "REASON", "SINCE", "MEMBERS"),
        (
            (
                row["system"],
                row["health"],
                row["reason"] or "",
                "" if row["since"] is None else countdown(row["since"] - now),
                _members(row),
            )
            for row in rows
        ),
    )
    late = [row["system"] for row in rows if row["waiting_since"] and now - row["waiting_since"] > _LATE]
    if late:
        typer.echo(f"{', '.join(late)}: health waits until every partition is read, see `tocsin doctor`")


def _members(row: dict[str, Any]) -> str:
    """Those that are not ok, the worst first."""
    ill = [
        f"{one['key'] or one['type']} of {one['owner']}: {one['condition']}"
        + ("" if one["required"] else " (optional)")
        for one in row["ill"]
    ]
    if not ill:
        return f"all {row['members']} ok"
    more = f", and {len(ill) - _SHOWN} more" if len(ill) > _SHOWN else ""
    return ", ".join(ill[:_SHOWN]) + more


async def _health() -> tuple[datetime, list[dict[str, Any]]]:
    from rules.health.queries import list_health
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        rows = await list_health(connection)
        return await database_now(connection), rows

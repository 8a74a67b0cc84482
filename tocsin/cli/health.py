"""`tocsin health`: lists systems with their health and the members that decide it. Reads only."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import print_json, print_table, since_text
from tocsin.cli.remote.over_http import over_http

_MAX_SHOWN_MEMBERS = 3
# A system that waits longer than this for workers is reported as late.
_LATE_AFTER = timedelta(seconds=5)


def health(as_json: Json = False) -> None:
    """List systems with their health: ok, degraded, outage or unknown.

    \b
    Example:
      tocsin health
    """
    now, rows = run_command(_health())
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
                "" if row["since"] is None else since_text(row["since"], now),
                _members_text(row),
            )
            for row in rows
        ),
    )
    late = [
        row["system"] for row in rows if row["waiting_since"] and now - row["waiting_since"] > _LATE_AFTER
    ]
    if late:
        typer.echo(f"{', '.join(late)}: health is late, because workers are behind: see `tocsin doctor`")


def _members_text(row: dict[str, Any]) -> str:
    """The members that are not ok, at most three, as the query orders them (the worst first)."""
    unhealthy = [
        f"{member['key'] or member['type']} of {member['owner']}: {member['condition']}"
        + ("" if member["required"] else " (optional)")
        for member in row["not_ok"]
    ]
    if not unhealthy:
        return f"all {row['members']} ok"
    more = f", and {len(unhealthy) - _MAX_SHOWN_MEMBERS} more" if len(unhealthy) > _MAX_SHOWN_MEMBERS else ""
    return ", ".join(unhealthy[:_MAX_SHOWN_MEMBERS]) + more


@over_http("instance.list_systems")
async def _health() -> tuple[datetime, list[dict[str, Any]]]:
    from rules.health.queries import list_health
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        rows = await list_health(connection)
        return await database_now(connection), rows

"""`tocsin schedules`: lists schedules. Reads only."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, OnlyOwner
from tocsin.cli.output import print_json, print_table, title, utc_text
from tocsin.cli.remote.over_http import over_http


def schedules(
    owner: OnlyOwner = None,
    type_: Annotated[str | None, typer.Option("--type", help="Only with this type of event.")] = None,
    status: Annotated[
        str | None, typer.Option("--status", help="active, paused, fired, ended, cancelled or failed.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most this many.")] = 1000,
    as_json: Json = False,
) -> None:
    """List schedules, the next to fire first.

    \b
    Example:
      tocsin schedules --status paused
    """
    from tocsin.cli.schedules.last_result import result_text
    from tocsin.cli.schedules.one_schedule import recurrence_text, schedule_json

    rows = run_command(_schedules(owner, type_, status, limit))
    if as_json:
        print_json([schedule_json(row) for row in rows])
        return
    if not rows:
        filtered = owner is not None or type_ is not None or status is not None
        hint = "no schedules: add one with `tocsin schedule add` or `tocsin apply`"
        typer.echo("no schedules match" if filtered else hint)
        return
    print_table(
        ("SCHEDULE", "STATUS", "RECURRENCE", "NEXT FIRE", "TYPE", "GENERATION", "SOURCE", "LAST RESULT"),
        (
            (
                title(row["owner"], row["name"]),
                "parked" if row["parked_at"] else row["status"],
                recurrence_text(row),
                utc_text(row["nominal_at"]) if row["nominal_at"] else "",
                row["type"],
                str(row["generation"]),
                row["source"],
                result_text(row["last_result"]),
            )
            for row in rows
        ),
    )


@over_http("schedules.list_schedules")
async def _schedules(
    owner: str | None, type_: str | None, status: str | None, limit: int
) -> list[dict[str, Any]]:
    from timers.schedules import FINISHED, list_schedules
    from tocsin.cli.schedules.last_result import with_last_results
    from tocsin.cli.session import database
    from tocsin.core.errors import InvalidInput

    statuses = ("active", "paused", *FINISHED)
    if status is not None and status not in statuses:
        raise InvalidInput(f"unknown status {status!r}", remedy=f"use one of {', '.join(statuses)}")
    async with database() as connection:
        rows = await list_schedules(connection, owner=owner, type=type_, status=status, limit=limit)
        return await with_last_results(connection, rows)

"""`tocsin upcoming` and `tocsin schedules`: what will fire, and everything that could."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import Json
from tocsin.cli.output import due_text, local_text, print_json, print_table, title, utc_text

if TYPE_CHECKING:
    from datetime import datetime

_PAUSED_SHOWN = 100


def upcoming(
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=10_000, help="How many fires.")] = 10,
    as_json: Json = False,
) -> None:
    """Show the next fires of all active schedules, with local time, UTC and countdown.

    \b
    Example:
      tocsin upcoming --count 20
    """
    from tocsin.cli.schedule.render import coming_fires, tz_of

    now, active, paused = finish(_upcoming(count))
    fires = coming_fires(active, count)
    if as_json:
        print_json(
            {
                "now": now,
                "fires": [vars(fire) for fire in fires],
                "paused": [{"schedule": row["name"], "owner": row["owner"]} for row in paused],
            }
        )
        return
    if not fires and not paused:
        typer.echo("nothing is scheduled: add one with `tocsin schedule add` or `tocsin apply`")
        return
    rows = [
        (
            title(fire.owner, fire.schedule),
            local_text(fire.at, fire.tz),
            utc_text(fire.at),
            due_text(fire.fire_at - now),
            fire.note,
        )
        for fire in fires
    ]
    rows += [(title(row["owner"], row["name"]), "paused", "", "", f"in {tz_of(row)}") for row in paused]
    print_table(("SCHEDULE", "LOCAL TIME", "UTC", "COUNTDOWN", "NOTE"), rows)


def schedules(
    owner: Annotated[str | None, typer.Option("--owner", help="Only of this owner.")] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Only with this event type.")] = None,
    status: Annotated[
        str | None, typer.Option("--status", help="active, paused, fired, ended, cancelled or failed.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most this many.")] = 1000,
    as_json: Json = False,
) -> None:
    """List the schedules, the next to fire first.

    \b
    Example:
      tocsin schedules --status paused
    """
    from tocsin.cli.schedule.render import recurrence_text, schedule_facts
    from tocsin.cli.schedule.results import result_text

    rows = finish(_schedules(owner, type_, status, limit))
    if as_json:
        print_json([schedule_facts(row) for row in rows])
        return
    if not rows:
        typer.echo("no schedules: add one with `tocsin schedule add` or `tocsin apply`")
        return
    print_table(
        ("SCHEDULE", "STATUS", "RECURRENCE", "NEXT FIRE", "TYPE", "GENERATION", "FROM", "LAST RESULT"),
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


async def _upcoming(count: int) -> tuple[datetime, list[dict[str, Any]], list[dict[str, Any]]]:
    from timers.schedules import list_schedules
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        now = await database_now(connection)
        # In the order of the ticks, so that the first `count` fires are of the first `count` schedules.
        active = await list_schedules(connection, status="active", limit=count)
        return now, active, await list_schedules(connection, status="paused", limit=_PAUSED_SHOWN)


async def _schedules(
    owner: str | None, type_: str | None, status: str | None, limit: int
) -> list[dict[str, Any]]:
    from timers.schedules import FINISHED, list_schedules
    from tocsin.cli.schedule.results import with_results
    from tocsin.cli.session import database
    from tocsin.core.errors import InvalidInput

    known = ("active", "paused", *FINISHED)
    if status is not None and status not in known:
        raise InvalidInput(f"unknown status {status!r}", remedy=f"use one of {', '.join(known)}")
    async with database() as connection:
        rows = await list_schedules(connection, owner=owner, type=type_, status=status, limit=limit)
        return await with_results(connection, rows)

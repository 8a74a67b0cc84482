"""`tocsin upcoming`: shows the next fires. Reads only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, OnlyOwner
from tocsin.cli.output import due_text, local_text, print_json, print_table, title, utc_text
from tocsin.cli.remote.over_http import over_http

if TYPE_CHECKING:
    from datetime import datetime

_MAX_PAUSED_SHOWN = 100


def upcoming(
    owner: OnlyOwner = None,
    schedule: Annotated[str | None, typer.Option("--schedule", help="Only of this schedule.")] = None,
    type_: Annotated[str | None, typer.Option("--type", help="Only with this type of event.")] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=10_000, help="How many fires.")] = 10,
    as_json: Json = False,
) -> None:
    """Show the next fires of active schedules.

    The next fire of each schedule comes before the second fire of any, up to --count.

    \b
    Examples:
      tocsin upcoming --count 20
      tocsin upcoming --schedule daily-digest --count 3
    """
    from timers.coming_fires import coming_fires, tz_of

    now, active, paused = run_command(_upcoming(owner, schedule, type_, count))
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
        typer.echo(_nothing_text(owner, schedule, type_))
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


def _nothing_text(*filters: str | None) -> str:
    if all(value is None for value in filters):
        return "no schedules: add one with `tocsin schedule add` or `tocsin apply`"
    return "no schedule that matches fires again: `tocsin schedules` lists all"


@over_http("schedules.upcoming")
async def _upcoming(
    owner: str | None, schedule: str | None, type_: str | None, count: int
) -> tuple[datetime, list[dict[str, Any]], list[dict[str, Any]]]:
    from timers.schedules import list_schedules
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        now = await database_now(connection)
        # In the order of their ticks, so the first `count` fires belong to the first `count` schedules.
        active = await list_schedules(
            connection, owner=owner, name=schedule, type=type_, status="active", limit=count
        )
        paused = await list_schedules(
            connection, owner=owner, name=schedule, type=type_, status="paused", limit=_MAX_PAUSED_SHOWN
        )
        return now, active, paused

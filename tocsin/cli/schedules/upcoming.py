"""`tocsin upcoming`: shows the next fires. Reads only."""

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
    from tocsin.cli.schedules.coming_fires import coming_fires, tz_of

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


async def _upcoming(count: int) -> tuple[datetime, list[dict[str, Any]], list[dict[str, Any]]]:
    from timers.schedules import list_schedules
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        now = await database_now(connection)
        # In the order of the ticks, so that the first `count` fires are of the first `count` schedules.
        active = await list_schedules(connection, status="active", limit=count)
        return now, active, await list_schedules(connection, status="paused", limit=_PAUSED_SHOWN)

"""`tocsin silence list`: lists silences, with the number of alarms that each one matches now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json
from tocsin.cli.output import countdown, print_json, print_table, shortened, since_text
from tocsin.cli.remote.over_http import over_http

if TYPE_CHECKING:
    from datetime import datetime

Row = dict[str, Any]
_LONGEST_MATCHER = 60


def list_silences(
    all_: Annotated[bool, typer.Option("--all", help="Also those that have ended.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=100_000, help="At most this many.")] = 100,
    as_json: Json = False,
) -> None:
    """List silences, with the number of open alarms that each matches.

    Windows of maintenance documents are silences too. The list has the next window of each.

    \b
    Example:
      tocsin silence list
    """
    now, rows = run_command(_list(all_, limit))
    if as_json:
        print_json(rows)
        return
    if not rows:
        typer.echo("no silences")
        return
    print_table(
        ("ID", "STATE", "ALARMS", "BY", "SOURCE", "WHERE", "REASON"),
        (
            (
                str(row["id"])[:8],
                _state_text(row, now),
                str(row["alarms"]),
                row["created_by"],
                row["source"],
                shortened(row["matcher"], _LONGEST_MATCHER),
                row["reason"],
            )
            for row in rows
        ),
    )


def _state_text(row: Row, now: datetime) -> str:
    ended_at = row["ended_at"] or row["ends_at"]
    if ended_at <= now:
        return f"ended {since_text(ended_at, now)}"
    if row["starts_at"] > now:
        return f"begins {countdown(row['starts_at'] - now)}"
    return f"ends {countdown(row['ends_at'] - now)}"


@over_http("alarms.list_silences")
async def _list(all_: bool, limit: int) -> tuple[datetime, list[Row]]:
    from rules.alarms.queries import list_alarms
    from rules.suppression import Silence, matched_alarm
    from rules.suppression.silence_store import list_silences
    from timers.working_set import database_now
    from tocsin.cli.session import database

    async with database() as connection:
        now = await database_now(connection)
        rows = await list_silences(connection, all=all_, limit=limit)
        alarms = [
            matched_alarm(row) for row in await list_alarms(connection, states=("open",), limit=100_000)
        ]
        for row in rows:
            silence = Silence(row["id"], row["matcher"], row["starts_at"], row["ends_at"])
            row["alarms"] = sum(silence.mutes(alarm) for alarm in alarms)
        return now, rows

"""`tocsin heartbeats`: lists jobs with their last check-in, the next one and its lateness. Reads only."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import Json, OnlyOwner
from tocsin.cli.output import countdown, local_text, print_json, print_table, since_text
from tocsin.cli.remote.over_http import over_http

if TYPE_CHECKING:
    from datetime import datetime

    from rules.alarms.heartbeats import HeartbeatRow

_BAD = ("late", "failed", "overrun", "held")


def heartbeats(
    name: Annotated[str | None, typer.Argument(help="Only this heartbeat.")] = None,
    owner: OnlyOwner = None,
    bad: Annotated[bool, typer.Option("--bad", help="Only late, failed, overrun and held ones.")] = False,
    as_json: Json = False,
) -> None:
    """List heartbeats: the last check-in, the next one, and how late it is.

    \b
    Examples:
      tocsin heartbeats
      tocsin heartbeats nightly-backup --json
      tocsin heartbeats --bad
    """
    now, rows = run_command(_heartbeats(name, owner))
    shown = [row for row in rows if not bad or row.status in _BAD]
    if as_json:
        print_json([_as_json(row) for row in shown])
    elif not shown:
        typer.echo("no heartbeat matches" if name or owner or bad else "no heartbeat is applied")
    else:
        print_table(
            ("HEARTBEAT", "OWNER", "STATUS", "LAST", "TOOK", "NEXT DUE", "LATE BY", "MISSED"),
            (_cells(row, now) for row in shown),
        )
        if any(row.status == "new" for row in shown):
            typer.echo("a ping URL for curl: `tocsin token ping NAME`", err=True)


def _cells(row: HeartbeatRow, now: datetime) -> tuple[str, ...]:
    last = "never" if row.last_at is None else f"{row.last_status} {since_text(row.last_at, now)}"
    return (
        row.name,
        row.owner,
        row.status,
        last,
        "" if row.last_duration_s is None else f"{row.last_duration_s:.1f}s",
        "" if row.expected_at is None else f"{local_text(row.expected_at, row.tz)} {_distance(row, now)}",
        "" if row.late_by is None else countdown(row.late_by).removeprefix("in "),
        str(row.missed) if row.missed else "",
    )


def _distance(row: HeartbeatRow, now: datetime) -> str:
    assert row.expected_at is not None
    text = countdown(row.expected_at - now)
    return f"({text}, after an outage)" if row.excused_at is not None else f"({text})"


def _as_json(row: HeartbeatRow) -> dict[str, object]:
    late_by = row.late_by
    fields = {key: value for key, value in row._asdict().items() if key != "late_by"}
    return {**fields, "late_by_s": None if late_by is None else late_by / timedelta(seconds=1)}


@over_http("instance.list_heartbeats")
async def _heartbeats(name: str | None, owner: str | None) -> tuple[datetime, list[HeartbeatRow]]:
    from rules.alarms.heartbeats import list_heartbeats
    from tocsin.cli.session import database

    async with database() as connection:
        return await list_heartbeats(connection, name=name, owner=owner)

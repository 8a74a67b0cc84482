"""`/calendar`: what fires in the coming week, and where is the herd? Fires per minute, with and without `spread`."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from timers.recurrence import parse_spec
from timers.recurrence.zones import zone
from tocsin.console.commands import command_line
from tocsin.console.page import console_page
from tocsin.console.visit import Visit
from tocsin.core.db import fetch_dicts
from tocsin.core.errors import TocsinError
from tocsin.pictures.herd import HerdMinute, week_ahead
from tocsin.policy import Operation

_WEEK = timedelta(days=7)
_SCHEDULES = 500
_SEARCHED = 10_000
_MOST_OF_ONE = 2_100
"""Fires of one schedule: every five minutes for a week. A more frequent one is named below the picture."""
_MOST_OF_ALL = 60_000


async def show_calendar(visit: Visit) -> Response:
    parameters = {"owners": visit.access.owners, "limit": _SCHEDULES, "within": _SEARCHED}
    rows = await fetch_dicts(visit.connection, "tocsin.console/list_next_fires", parameters)
    plain: Counter[datetime] = Counter()
    spread: Counter[datetime] = Counter()
    frequent, left = [], _MOST_OF_ALL
    for row in rows:
        instants = _instants(row, visit.now, min(_MOST_OF_ONE, left) + 1)
        if len(instants) > _MOST_OF_ONE:
            frequent.append(row)
            continue
        left -= len(instants)
        shift = row["fire_at"] - row["nominal_at"]
        plain.update(_minute(at) for at in instants)
        spread.update(_minute(at + shift) for at in instants)
    minutes = [HerdMinute(at, spread[at], plain[at]) for at in sorted({*plain, *spread})]
    home = zone(visit.tz)
    picture = week_ahead(minutes, visit.now.astimezone(home).date(), home, title="the coming week")
    busiest = sorted(minutes, key=lambda minute: -minute.fires)[:10]
    facts = {
        "picture": picture,
        "schedules": len(rows),
        "is_cut": len(rows) == _SCHEDULES or left <= 0,
        "frequent": frequent,
        "busiest": [minute for minute in busiest if minute.fires > 1],
        "command": command_line("upcoming", "--count", "100"),
    }
    return visit.page("pages/calendar.html", facts)


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


def _instants(row: dict[str, Any], now: datetime, most: int) -> list[datetime]:
    """The nominal times of a week, at most so many."""
    found: list[datetime] = []
    try:
        recurrence = parse_spec(row["recurrence"])
    except TocsinError:
        return found
    at = now
    while len(found) < most:
        occurrence = recurrence.occurrence_after(at)
        if occurrence is None or occurrence.at > now + _WEEK:
            break
        found.append(occurrence.at)
        at = occurrence.at
    return found


ROUTES = (Route("/calendar", console_page(Operation.VIEW_SCHEDULES, show_calendar), methods=["GET"]),)

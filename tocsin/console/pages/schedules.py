"""`/schedules`: does each run as it should? The recurrence in words, the next fire, the last occurrences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from clock.explain.recent import RecentOutcome, recent_outcomes
from timers.recurrence import parse_spec
from timers.recurrence.zones import zone
from tocsin.api.pages import Keyset
from tocsin.console.commands import command_line
from tocsin.console.page import console_page
from tocsin.console.visit import Visit
from tocsin.core.db import fetch_dicts
from tocsin.core.errors import InvalidInput, TocsinError
from tocsin.pictures.figure import Picture
from tocsin.pictures.strip import StripBar, occurrence_strip
from tocsin.policy import Operation

STATUSES = ("active", "paused", "ended", "fired", "cancelled", "failed")
_ROWS = 50
_SHOWN = 24
_BY_NAME = Keyset({"owner": str, "name": str})


async def show_schedules(visit: Visit) -> Response:
    filters = {name: visit.query(name) for name in ("owner", "name", "status")}
    if filters["status"] not in ("", *STATUSES):
        raise InvalidInput(f"unknown status {filters['status']!r}", remedy=f"use {', '.join(STATUSES)}")
    asked = visit.page_request(_ROWS)
    parameters = {
        "owners": visit.access.owners,
        "type": None,
        **{name: text or None for name, text in filters.items()},
        **_BY_NAME.after(asked),
    }
    rows = await fetch_dicts(visit.connection, "tocsin.api.v1/list_schedules", parameters)
    page = _BY_NAME.page(asked, rows, dict)
    recurring = [row for row in page.items if row["status"] in ("active", "paused")]
    outcomes = await recent_outcomes(visit.connection, recurring, visit.now, _SHOWN)
    facts = {
        "schedules": [{**row, **describe(row, outcomes.get(row["id"], ()))} for row in page.items],
        "cursor": page.next_cursor,
        "filters": filters,
        "statuses": STATUSES,
        "command": command_line("schedules"),
    }
    return visit.page("pages/schedules.html", facts)


def describe(row: dict[str, Any], outcomes: Iterable[RecentOutcome]) -> dict[str, Any]:
    """The words, the zone and the strip of a schedule."""
    tz = str(row["recurrence"].get("tz") or "UTC")
    found = list(outcomes)
    return {
        "words": recurrence_words(row),
        "tz": tz,
        "strip": strip(found, tz, row["name"]) if found else None,
    }


def recurrence_words(row: dict[str, Any]) -> str:
    try:
        return parse_spec(row["recurrence"]).describe()
    except TocsinError as error:
        return str(error)


def strip(outcomes: Iterable[RecentOutcome], tz: str, name: str) -> Picture:
    bars = [StripBar(each.at, each.kind, each.reason) for each in outcomes]
    return occurrence_strip(bars, zone(tz), name=name)


ROUTES = (Route("/schedules", console_page(Operation.VIEW_SCHEDULES, show_schedules), methods=["GET"]),)

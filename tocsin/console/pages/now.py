"""`/`: what is wrong, what comes next, and can the picture be trusted?"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from rules.alarms.notifications import list_notifications
from rules.alarms.queries import UNRESOLVED, list_alarms
from rules.health.queries import list_health
from timers.coming_fires import coming_fires
from timers.recurrence.zones import zone
from tocsin.api.v1.alarms import add_suppressions, alarm_view
from tocsin.console.alarm_pictures import DAY, severities_of_day
from tocsin.console.page import console_page
from tocsin.console.records_text import event_lines
from tocsin.console.visit import Visit
from tocsin.core.db import fetch_dicts
from tocsin.policy import Operation

_ALARMS = 8
_FIRES = 8
_EVENTS = 12
_SEARCHED = 10_000
_SYSTEMS = 60
_FAILING = 100
_MOST_COUNTED = 10_000
_SPANS = 2_000


async def show_now(visit: Visit) -> Response:
    facts: dict[str, Any] = {
        **await _alarms(visit),
        "fires": await _fires(visit),
        "systems": await _systems(visit),
        "events": await _events(visit),
        "dead_runs": await _dead_runs(visit),
    }
    return visit.page("pages/now.html", facts)


async def _alarms(visit: Visit) -> dict[str, Any]:
    owners = visit.access.owners
    parameters = {"owners": owners, "most": _MOST_COUNTED}
    counts = await fetch_dicts(visit.connection, "tocsin.console/count_active_alarms", parameters)
    rows = await list_alarms(visit.connection, states=UNRESOLVED, owners=owners, limit=_ALARMS)
    await add_suppressions(visit.connection, visit.access, rows)
    failing = await list_notifications(
        visit.connection, states=("failing", "failed"), owners=owners, limit=_FAILING
    )
    open_counts = [row for row in counts if row["state"] == "open"]
    since = visit.now - DAY
    spans = await fetch_dicts(
        visit.connection, "tocsin.console/list_open_spans", {"owners": owners, "since": since, "most": _SPANS}
    )
    return {
        "day": severities_of_day(spans, visit.now, zone(visit.tz)) if spans else None,
        "alarms": [alarm_view(row) for row in rows],
        "open_counts": open_counts,
        "open_alarms": sum(row["alarms"] for row in open_counts),
        "untaken": sum(row["alarms"] - row["acknowledged"] for row in open_counts),
        "pending_alarms": sum(row["alarms"] for row in counts if row["state"] == "pending"),
        "failing": _by_channel(failing),
    }


def _by_channel(failing: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The notifications that fail, with one row for each channel: how many, since when, and the last error."""
    channels: dict[str, dict[str, Any]] = {}
    for row in failing:
        found = channels.setdefault(row["channel"], {**row, "count": 0})
        found["count"] += 1
    return list(channels.values())


async def _fires(visit: Visit) -> list[Any] | None:
    """The next fire of the schedules that are due first; None if the caller may view none."""
    if not visit.can(Operation.VIEW_SCHEDULES):
        return None
    parameters = {
        "owners": visit.access.owners_of(Operation.VIEW_SCHEDULES),
        "limit": _FIRES,
        "within": _SEARCHED,
    }
    rows = await fetch_dicts(visit.connection, "tocsin.console/list_next_fires", parameters)
    return coming_fires(rows, len(rows))


async def _systems(visit: Visit) -> list[dict[str, Any]] | None:
    if not visit.can(Operation.VIEW_HEALTH):
        return None
    return (await list_health(visit.connection))[:_SYSTEMS]


async def _events(visit: Visit) -> list[Any] | None:
    if not visit.can(Operation.VIEW_EVENTS):
        return None
    parameters = {
        "owners": visit.access.owners_of(Operation.VIEW_EVENTS),
        "limit": _EVENTS,
        "within": _SEARCHED,
    }
    return event_lines(await fetch_dicts(visit.connection, "tocsin.console/list_newest_events", parameters))


async def _dead_runs(visit: Visit) -> int:
    if not visit.can(Operation.VIEW_ACTIONS):
        return 0
    parameters = {"owners": visit.access.owners_of(Operation.VIEW_ACTIONS), "most": _MOST_COUNTED}
    rows = await fetch_dicts(visit.connection, "tocsin.console/count_dead_runs", parameters)
    return int(rows[0]["runs"])


ROUTES = (Route("/", console_page(Operation.VIEW_ALARMS, show_now), methods=["GET"]),)

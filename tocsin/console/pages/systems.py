"""`/systems`: how healthy is each, since when, because of whom? `/heartbeats`: which jobs did not check in?"""

from __future__ import annotations

from datetime import timedelta

from starlette.responses import Response
from starlette.routing import Route

from rules.alarms.heartbeats import list_heartbeats
from rules.health.queries import list_health
from timers.recurrence.zones import zone
from tocsin.console.commands import command_line
from tocsin.console.page import console_page
from tocsin.console.visit import ROWS, Visit
from tocsin.core.db import fetch_dicts
from tocsin.pictures.health import SystemHealth, health_strip
from tocsin.pictures.lanes import Span
from tocsin.pictures.time_axis import TimeView
from tocsin.pictures.tones import Tone
from tocsin.policy import Operation, decide

_SHOWN = timedelta(days=7)
_MOST_CHANGES = 2_000
_SYSTEMS = 40
_TONES: dict[str, Tone] = {"ok": "ok", "degraded": "late", "outage": "missed", "unknown": "unknown"}
_ROWS = 5 * ROWS


async def show_systems(visit: Visit) -> Response:
    rows = await list_health(visit.connection)
    names = [row["system"] for row in rows[:_SYSTEMS]]
    start = visit.now - _SHOWN
    parameters = {"systems": names, "since": start, "limit": _MOST_CHANGES}
    changes = await fetch_dicts(visit.connection, "tocsin.console/list_health_changes", parameters)
    strips = []
    for row in rows[:_SYSTEMS]:
        own = [(change["ts"], change["health"]) for change in changes if change["system"] == row["system"]]
        if row["since"] is not None and not own:
            own = [(max(row["since"], start), row["health"])]
        ends = [*(at for at, _ in own[1:]), visit.now]
        spans = [
            Span(max(at, start), end, _TONES.get(health, "unknown"), health)
            for (at, health), end in zip(own, ends, strict=True)
            if end > start
        ]
        strips.append(SystemHealth(row["system"], spans))
    view = TimeView(start, visit.now, zone(visit.tz), visit.now)
    facts = {
        "systems": rows[:_ROWS],
        "picture": health_strip(strips, view, title="health of the last seven days") if strips else None,
        "command": command_line("health"),
    }
    return visit.page("pages/systems.html", facts)


async def show_heartbeats(visit: Visit) -> Response:
    _, rows = await list_heartbeats(visit.connection)
    own = [row for row in rows if decide(visit.caller.principal, Operation.VIEW_SERIES, row.owner).allowed]
    facts = {"heartbeats": own[:_ROWS], "is_cut": len(own) > _ROWS, "command": command_line("heartbeats")}
    return visit.page("pages/heartbeats.html", facts)


ROUTES = (
    Route("/systems", console_page(Operation.VIEW_HEALTH, show_systems), methods=["GET"]),
    Route("/heartbeats", console_page(Operation.VIEW_SERIES, show_heartbeats), methods=["GET"]),
)

"""`/alarms`: who must act? Alarms by state and filters, grouped, with who took them and why they are quiet."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from starlette.responses import Response
from starlette.routing import Route

from rules.alarms.matching_alarms import compile_where, matching_alarms
from rules.alarms.queries import STATES, UNRESOLVED, list_alarms
from schemas.values.severities import level, severities
from timers.recurrence.zones import zone
from tocsin.api.v1.alarms import AlarmView, add_suppressions, alarm_view
from tocsin.api.v1.alarms import list_alarms as list_newest
from tocsin.console.alarm_pictures import alarm_lanes
from tocsin.console.commands import command_line
from tocsin.console.page import console_page
from tocsin.console.visit import ROWS, Visit
from tocsin.core.db import fetch_dicts
from tocsin.core.errors import InvalidInput
from tocsin.policy import Operation

VIEWS = {
    "active": UNRESOLVED,
    "open": ("open",),
    "pending": ("pending",),
    "resolved": ("resolved",),
    "all": STATES,
}
GROUPS = ("", "rule", "owner", "severity")
_SEVERE = ("active", "open", "pending")
_MOST_COUNTED = 10_000


class AlarmGroup(NamedTuple):
    name: str
    alarms: Sequence[AlarmView]


class AlarmFilter(NamedTuple):
    """What the query of the page selects."""

    state: str
    rule: str
    owner: str
    severity: str
    where: str
    group: str

    @classmethod
    def of(cls, visit: Visit) -> AlarmFilter:
        names = ("state", "rule", "owner", "severity", "where", "group")
        values = {name: visit.query(name) for name in names}
        values["state"] = values["state"] or "active"
        if values["state"] not in VIEWS:
            raise InvalidInput(f"unknown state {values['state']!r}", remedy=f"use {', '.join(VIEWS)}")
        if values["group"] not in GROUPS:
            raise InvalidInput(f"unknown group {values['group']!r}", remedy=f"use {', '.join(GROUPS[1:])}")
        return cls(**values)

    @property
    def is_narrowed(self) -> bool:
        return bool(self.rule or self.owner or self.severity or self.where)

    @property
    def command(self) -> str:
        options = [] if self.state == "active" else ["--state", self.state]
        for name in ("rule", "owner", "severity"):
            if text := getattr(self, name):
                options += [f"--{name}", text]
        return command_line("alarms", *options)


async def show_alarms(visit: Visit) -> Response:
    chosen = AlarmFilter.of(visit)
    alarms, cursor, is_cut = await _read(visit, chosen)
    counts = await fetch_dicts(
        visit.connection,
        "tocsin.console/count_active_alarms",
        {"owners": visit.access.owners, "most": _MOST_COUNTED},
    )
    return visit.page(
        "pages/alarms.html",
        {
            "chosen": chosen,
            "groups": group_alarms(alarms, chosen.group),
            "shown": len(alarms),
            "lanes": alarm_lanes(alarms, visit.now, zone(visit.tz)) if alarms else None,
            "cursor": cursor,
            "is_cut": is_cut,
            "counts": {
                state: sum(row["alarms"] for row in counts if row["state"] == state) for state in UNRESOLVED
            },
            "views": VIEWS,
            "severities": list(severities()),
        },
    )


async def _read(visit: Visit, chosen: AlarmFilter) -> tuple[list[AlarmView], str | None, bool]:
    """The alarms, the cursor behind them, and whether more are there that no cursor reaches."""
    connection, owners = visit.connection, visit.access.owners
    lowest = level(chosen.severity) if chosen.severity else 0
    states = VIEWS[chosen.state]
    if chosen.where:
        matcher = compile_where(chosen.where, "where")
        rows = await matching_alarms(connection, matcher, states, owners=owners, limit=_MOST_COUNTED)
        rows = [row for row in rows if row["severity"] >= lowest]
        rows = [
            row
            for row in rows
            if chosen.rule in ("", row["event_rule"]) and chosen.owner in ("", row["owner"])
        ]
    elif chosen.state in _SEVERE:
        rows = await list_alarms(
            connection,
            states=states,
            rule=chosen.rule or None,
            owner=chosen.owner or None,
            owners=owners,
            min_severity=lowest,
            limit=2 * ROWS + 1,
        )
    else:
        page = await list_newest(
            visit.access,
            visit.page_request(),
            state=chosen.state,  # type: ignore[arg-type] # one of VIEWS
            rule=chosen.rule or None,
            owner=chosen.owner or None,
            severity=chosen.severity or None,
        )
        return page.items, page.next_cursor, False
    shown = rows[: 2 * ROWS]
    await add_suppressions(connection, visit.access, shown)
    return [alarm_view(row) for row in shown], None, len(rows) > len(shown)


def group_alarms(alarms: Sequence[AlarmView], by: str) -> list[AlarmGroup]:
    """The groups with the most severe alarms first; one group without a name if nothing groups them."""
    if not by:
        return [AlarmGroup("", alarms)] if alarms else []
    ordered = sorted(alarms, key=lambda alarm: str(getattr(alarm, by)))
    groups = [
        AlarmGroup(str(name), list(members))
        for name, members in groupby(ordered, lambda alarm: getattr(alarm, by))
    ]
    return sorted(groups, key=lambda group: (-max(alarm.level for alarm in group.alarms), group.name))


ROUTES = (Route("/alarms", console_page(Operation.VIEW_ALARMS, show_alarms), methods=["GET"]),)

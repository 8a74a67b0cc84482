"""Every screen of the console that is read, by the path of its route."""

from __future__ import annotations

import uuid

from tests.api.recorded import Recorded
from tocsin.api.route_group import guarded_routes
from tocsin.console.routes import CONSOLE

_QUERIES = {f"/alarms/{verb}": "?where=true" for verb in ("ack", "snooze", "resolve")} | {
    "/silences/new": "?where=true"
}
# They need NATS or a document in force: their own tests open them.
_OWN_TESTS = ("/dead-letters", "/editor/history", "/lineage/{id}", "/tocsin/doctor")


PAGES = sorted(
    route.path
    for route in guarded_routes([CONSOLE])
    if "GET" in route.methods
    and not route.is_public
    and route.path not in _OWN_TESTS
    and "{name}" not in route.path
)


def path_of(route: str, of: Recorded) -> str:
    """The path of a screen about what an owner has."""
    by_path = {"alarms": of.alarm, "actions": of.run, "schedules": of.schedule}
    id = by_path.get(route.split("/")[1], uuid.uuid4())
    return route.format(id=id) + _QUERIES.get(route, "")

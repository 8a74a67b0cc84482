"""`/explain`: why did a schedule fire or not at an instant? The facts of the records, in a page to share."""

from __future__ import annotations

from datetime import datetime

from starlette.responses import Response
from starlette.routing import Route

from clock.explain.records import explain_schedule
from timers.natural_time import parse_absolute
from timers.schedules import find_schedule
from tocsin.console.commands import command_line
from tocsin.console.page import console_page
from tocsin.console.visit import Visit
from tocsin.core.errors import InvalidInput, NotFound
from tocsin.policy import Operation, decide


async def explain(visit: Visit) -> Response:
    name, owner, at = visit.query("name"), visit.query("owner"), visit.query("at")
    if not name:
        return visit.page("pages/explain.html", {"name": "", "owner": owner, "at": at, "explained": None})
    may_view = decide(visit.caller.principal, Operation.VIEW_SCHEDULES, owner).allowed
    row = await find_schedule(visit.connection, owner, name) if may_view else None
    if row is None:
        of_owner = f" of owner {owner!r}" if owner else ""
        raise NotFound(f"there is no schedule {name!r}{of_owner}")
    explained = await explain_schedule(visit.connection, owner, name, visit.now, _instant(at, visit.tz))
    command = command_line(
        "explain", name, *(("--owner", owner) if owner else ()), *(("--at", at) if at else ())
    )
    facts = {"name": name, "owner": owner, "at": at, "explained": explained, "row": row, "command": command}
    return visit.page("pages/explain.html", facts)


def _instant(text: str, tz: str) -> datetime | None:
    """The instant of a text, in the zone of the reader if it names none."""
    if not text:
        return None
    found = parse_absolute(text, tz)
    if found is None:
        raise InvalidInput(
            f"{text!r} is not an instant", remedy="write it as 2026-03-08T07:00Z, or 2026-03-08 08:00"
        )
    return found


ROUTES = (Route("/explain", console_page(Operation.VIEW_SCHEDULES, explain), methods=["GET"]),)

"""`/find`: screens, alarms, schedules and rules whose name or id has a text. The palette reads it as JSON."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tocsin.console.filters import name_of, short
from tocsin.console.frame import NAVIGATION
from tocsin.console.page import console_page
from tocsin.console.visit import Visit
from tocsin.core.db import fetch_dicts
from tocsin.policy import Operation

_MOST = 8
_SEARCHED = 10_000


class Found(NamedTuple):
    kind: str
    name: str
    detail: str
    path: str


async def find(visit: Visit) -> Response:
    text = visit.query("q")[:200]
    found = [*_screens(visit, text), *(await _rows(visit, text) if text else [])]
    if "application/json" in visit.request.headers.get("accept", ""):
        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        return JSONResponse([each._asdict() for each in found], headers=headers)
    return visit.page("pages/find.html", {"text": text, "found": found})


def _screens(visit: Visit, text: str) -> list[Found]:
    links = [link for _, links in NAVIGATION for link in links if visit.can(link.operation)]
    return [
        Found("screen", link.name, "", link.path) for link in links if text.casefold() in link.name.casefold()
    ]


async def _rows(visit: Visit, text: str) -> list[Found]:
    parameters = {"part": text, "most": _MOST, "within": _SEARCHED}
    found: list[Found] = []
    alarms = {**parameters, "owners": visit.access.owners}
    for row in await fetch_dicts(visit.connection, "tocsin.console/find_alarms", alarms):
        name = name_of(row["owner"], row["event_rule"])
        found.append(Found("alarm", name, f"{row['state']}, {short(row['id'])}", f"/alarms/{row['id']}"))
    if visit.can(Operation.VIEW_SCHEDULES):
        schedules = {**parameters, "owners": visit.access.owners_of(Operation.VIEW_SCHEDULES)}
        for row in await fetch_dicts(visit.connection, "tocsin.console/find_schedules", schedules):
            found.append(
                Found(
                    "schedule", name_of(row["owner"], row["name"]), row["status"], f"/schedules/{row['id']}"
                )
            )
    if visit.can(Operation.VIEW_RULES):
        for row in await fetch_dicts(visit.connection, "tocsin.console/find_rules", parameters):
            path = f"/rules/{row['kind']}/{quote(row['name'], safe='')}"
            found.append(Found(row["kind"].replace("_", " "), row["name"], "", path))
    return found


ROUTES = (Route("/find", console_page(Operation.VIEW_ALARMS, find), methods=["GET"]),)

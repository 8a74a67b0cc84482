"""Forms for people who do not write YAML: an event_rule, and a channel. Both lead to the plan of their document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from rules.documents.applied import list_channels
from schemas.values.severities import severities
from tocsin.console.commands import command_line
from tocsin.console.document_text import (
    CHANNEL_TYPES,
    CONDITIONS,
    channel_from,
    rule_from,
    yaml_of,
)
from tocsin.console.form import read_form
from tocsin.console.page import console_page
from tocsin.console.pages.rules import read_document, show_plan
from tocsin.console.visit import Visit
from tocsin.core.errors import InvalidInput
from tocsin.policy import Operation

_FORMS = {"event_rule": rule_from, "channel": channel_from}
_NOUNS = {"event_rule": "rule", "channel": "channel"}


def edit(kind: str, *, is_new: bool) -> Callable[[Visit], Awaitable[Response]]:
    async def screen(visit: Visit) -> Response:
        document: dict[str, Any] = {}
        if not is_new:
            document = (await read_document(visit, kind, visit.request.path_params["name"]))["document"]
        channels = [channel["name"] for channel in await list_channels(visit.connection)]
        facts = {
            "kind": kind,
            "noun": _NOUNS[kind],
            "is_new": is_new,
            "document": document,
            "severities": list(severities()),
            "conditions": CONDITIONS,
            "condition": next((key for key in CONDITIONS if document.get(key) is not None), ""),
            "types": CHANNEL_TYPES,
            "type": next((key for key in (*CHANNEL_TYPES, "apprise", "pagerduty") if document.get(key)), ""),
            "channels": channels,
        }
        return visit.page(f"pages/{_NOUNS[kind]}_form.html", facts)

    return screen


def send(kind: str, *, is_new: bool) -> Callable[[Visit], Awaitable[Response]]:
    async def screen(visit: Visit) -> Response:
        form = await read_form(visit.request)
        before = None
        if not is_new:
            before = (await read_document(visit, kind, visit.request.path_params["name"]))["document"]
            if form.text("name") != before["name"]:
                raise InvalidInput("a name cannot change", remedy="create another one, and delete this one")
        document = _FORMS[kind](form, before)
        verb = "Create" if is_new else "Edit"
        return await show_plan(visit, yaml_of(kind, document), f"{verb} {_NOUNS[kind]} {document['name']}")

    return screen


async def show_channels(visit: Visit) -> Response:
    channels = await list_channels(visit.connection)
    return visit.page("pages/channels.html", {"channels": channels, "command": command_line("channels")})


def _routes(kind: str, folder: str) -> tuple[Route, ...]:
    plan = Operation.PLAN_RULES
    return (
        Route(f"{folder}/new", console_page(plan, edit(kind, is_new=True)), methods=["GET"]),
        Route(f"{folder}/new", console_page(plan, send(kind, is_new=True)), methods=["POST"]),
        Route(f"{folder}/{{name}}/edit", console_page(plan, edit(kind, is_new=False)), methods=["GET"]),
        Route(f"{folder}/{{name}}/edit", console_page(plan, send(kind, is_new=False)), methods=["POST"]),
    )


ROUTES = (
    Route("/channels", console_page(Operation.VIEW_RULES, show_channels), methods=["GET"]),
    *_routes("channel", "/channels"),
    *_routes("event_rule", "/rules/event_rule"),
)

"""`/alarms/ack`, `/alarms/snooze`, `/alarms/resolve`: one act on several alarms, by selection or by a matcher.

GET shows how many alarms it is about, the first of them, and the command; its form does it. The number that
was shown guards the act: if another number matches meanwhile, it is refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from tocsin.api.access.permission import Access
from tocsin.api.v1.many_alarms import (
    ManyChanged,
    ManySnoozed,
    ManyWithNote,
    ack_alarms,
    resolve_alarms,
    snooze_alarms,
)
from tocsin.console.commands import alarms_command, with_note
from tocsin.console.filters import count
from tocsin.console.form import read_form
from tocsin.console.page import console_page
from tocsin.console.visit import Visit
from tocsin.core.errors import InvalidInput
from tocsin.policy import Operation

_MOST_IDS = 500


@dataclass(frozen=True)
class Act:
    verb: str
    name: str
    participle: str
    operation: Operation
    effect: str
    has_note: bool = True

    async def do(self, access: Access, values: dict[str, Any]) -> ManyChanged:
        if self.verb == "snooze":
            return await snooze_alarms(access, ManySnoozed.model_validate(values))
        change = ack_alarms if self.verb == "ack" else resolve_alarms
        return await change(access, ManyWithNote.model_validate(values))


ACTS = (
    Act(
        "ack",
        "Acknowledge",
        "acknowledged",
        Operation.ACKNOWLEDGE_ALARM,
        "The alarms stay open, and their escalations end.",
    ),
    Act(
        "snooze",
        "Snooze",
        "snoozed",
        Operation.SNOOZE_ALARM,
        "The alarms stay open. Notifications and steps that are due meanwhile are held.",
        has_note=False,
    ),
    Act(
        "resolve",
        "Resolve",
        "resolved",
        Operation.RESOLVE_ALARM,
        "Their runbooks end. The rule opens another alarm when its condition holds again.",
    ),
)


def _ids(texts: Sequence[str]) -> list[uuid.UUID]:
    if len(texts) > _MOST_IDS:
        raise InvalidInput(
            f"{len(texts):,} alarms are selected", remedy=f"choose at most {_MOST_IDS}, or use a matcher"
        )
    try:
        return [uuid.UUID(text) for text in dict.fromkeys(texts)]
    except ValueError:
        raise InvalidInput("an id is not that of an alarm", remedy="choose the alarms again") from None


def _choice(ids: list[uuid.UUID], where: str) -> dict[str, Any]:
    return {"where": where} if where else {"ids": ids}


def preview(act: Act) -> Callable[[Visit], Awaitable[Response]]:
    async def screen(visit: Visit) -> Response:
        ids = _ids(visit.request.query_params.getlist("id"))
        where = visit.query("where")
        found = await act.do(visit.access, {**_choice(ids, where), "preview": True})
        before = ("2h",) if act.verb == "snooze" else ()
        facts = {
            "act": act,
            "found": found,
            "ids": ids,
            "where": where,
            "command": alarms_command(act.verb, ids, where, before=before),
        }
        return visit.page("pages/many_alarms.html", facts)

    return screen


def perform(act: Act) -> Callable[[Visit], Awaitable[Response]]:
    async def screen(visit: Visit) -> Response:
        form = await read_form(visit.request)
        ids, where = _ids(form.texts("id")), form.text("where")
        note, duration = form.text("note"), form.text("for")
        values = {**_choice(ids, where), "expected": form.number("expected")}
        if act.has_note:
            values["note"] = note
        elif duration:
            values["for"] = duration
        done = await act.do(visit.access, values)
        changed = [each for each in done.changed if each.changed]
        same = len(done.changed) - len(changed)
        text = f"{act.participle} {count(len(changed), 'alarm')}"
        if same:
            text += (
                f"; {count(same, 'alarm')} already was"
                if same == 1
                else f"; {count(same, 'alarm')} already were"
            )
        before = (duration or "--off",) if act.verb == "snooze" else ()
        command = alarms_command(act.verb, ids, where, before=before, options=with_note(note))
        return visit.done("/alarms", text, failed=[each.detail for each in done.failed], command=command)

    return screen


ROUTES = tuple(
    Route(f"/alarms/{act.verb}", console_page(act.operation, screen), methods=[method])
    for act in ACTS
    for method, screen in (("GET", preview(act)), ("POST", perform(act)))
)

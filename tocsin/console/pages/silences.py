"""`/silences`: which alarms are muted, until when and why? Adding one, with a preview of what it matches."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from tocsin.api.v1.silences import SilenceRequest, add_one_silence, expire_one_silence, list_silences
from tocsin.console.commands import command_line
from tocsin.console.filters import count, short
from tocsin.console.form import read_form
from tocsin.console.page import console_page
from tocsin.console.visit import Visit
from tocsin.core.errors import InvalidInput
from tocsin.policy import Operation

DURATIONS = ("30m", "1h", "2h", "4h", "8h", "1d", "7d")


async def show_silences(visit: Visit) -> Response:
    has_all = visit.query("all") == "yes"
    page = await list_silences(visit.access, visit.page_request(), all=has_all)
    facts = {
        "silences": page.items,
        "cursor": page.next_cursor,
        "has_all": has_all,
        "durations": DURATIONS,
        "command": command_line("silence", "list", *(("--all",) if has_all else ())),
    }
    return visit.page("pages/silences.html", facts)


def _request(where: str, duration: str, reason: str, **more: Any) -> SilenceRequest:
    if not where:
        raise InvalidInput("the silence has no matcher", remedy="write one, such as 'labels.site == \"ams\"'")
    return SilenceRequest.model_validate({"matcher": where, "for": duration, "reason": reason, **more})


def _command(where: str, duration: str, reason: str) -> str:
    because = ("--reason", reason) if reason else ()
    return command_line("silence", "add", "--where", where, "--for", duration, *because)


async def preview(visit: Visit) -> Response:
    """What a silence would mute now, before it exists."""
    where, duration, reason = visit.query("where"), visit.query("for", "2h"), visit.query("reason")
    found = await add_one_silence(visit.access, _request(where, duration, reason, preview=True))
    facts = {
        "where": where,
        "duration": duration,
        "reason": reason,
        "found": found,
        "command": _command(where, duration, reason),
    }
    return visit.page("pages/silence_new.html", facts)


async def add(visit: Visit) -> Response:
    form = await read_form(visit.request)
    where, duration, reason = form.text("where"), form.text("for", "2h"), form.text("reason")
    done = await add_one_silence(visit.access, _request(where, duration, reason))
    text = f"added silence {short(done.silence.id)}, which matches {count(done.matches, 'alarm')} now, seq {done.seq}"
    return visit.done("/silences", text, command=_command(where, duration, reason))


async def expire(visit: Visit) -> Response:
    id = visit.path_id("silence")
    done = await expire_one_silence(visit.access, id)
    command = command_line("silence", "expire", short(id))
    return visit.done("/silences", f"ended silence {short(id)}, seq {done.seq}", command=command)


ROUTES = (
    Route("/silences", console_page(Operation.VIEW_RULES, show_silences), methods=["GET"]),
    Route("/silences/new", console_page(Operation.SILENCE_ALARMS, preview), methods=["GET"]),
    Route("/silences/new", console_page(Operation.SILENCE_ALARMS, add), methods=["POST"]),
    Route("/silences/{id}/expire", console_page(Operation.SILENCE_ALARMS, expire), methods=["POST"]),
)

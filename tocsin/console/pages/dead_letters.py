"""`/dead-letters`: which messages were rejected, and why? Putting them back."""

from __future__ import annotations

from typing import get_args

from starlette.responses import Response
from starlette.routing import Route

from tocsin.api.v1.dead_letters import (
    DeadLetterRetryRequest,
    LetterKind,
    list_dead_letters,
    retry_dead_letters,
)
from tocsin.console.commands import command_line
from tocsin.console.filters import count
from tocsin.console.form import read_form
from tocsin.console.page import console_page
from tocsin.console.visit import ROWS, Visit
from tocsin.core.errors import InvalidInput
from tocsin.policy import Operation

_KINDS = get_args(LetterKind)


async def show_letters(visit: Visit) -> Response:
    kind = visit.query("kind")
    if kind not in ("", *_KINDS):
        raise InvalidInput(f"unknown kind {kind!r}", remedy=f"use {', '.join(_KINDS)}")
    page = await list_dead_letters(visit.access, kind or None, ROWS)  # type: ignore[arg-type] # one of LetterKind
    facts = {
        "letters": page.items,
        "kind": kind,
        "kinds": _KINDS,
        "command": command_line("dead-letters", *(("--kind", kind) if kind else ())),
    }
    return visit.page("pages/dead_letters.html", facts)


async def retry(visit: Visit) -> Response:
    form = await read_form(visit.request)
    seqs = form.texts("id")
    if not seqs or not all(text.isascii() and text.isdigit() and len(text) <= 18 for text in seqs):
        raise InvalidInput("no dead letter is selected", remedy="choose rows, and send the form again")
    body = DeadLetterRetryRequest(seqs=[int(text) for text in seqs])
    done = await retry_dead_letters(visit.access, body)
    return visit.done(
        "/dead-letters",
        f"put back {count(len(done.put_back), 'dead letter')}",
        failed=[f"{kept.get('seq')}: {kept.get('reason') or kept.get('error')}" for kept in done.kept],
        command=command_line("dead-letters", "retry", *seqs[:6]),
    )


ROUTES = (
    Route("/dead-letters", console_page(Operation.VIEW_DEAD_LETTERS, show_letters), methods=["GET"]),
    Route("/dead-letters/retry", console_page(Operation.RETRY_DEAD_LETTER, retry), methods=["POST"]),
)

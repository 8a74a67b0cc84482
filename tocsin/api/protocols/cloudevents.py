"""`/cloudevents`: events in the HTTP binding of CloudEvents 1.0.

`POST` takes one, binary or structured, or a batch: 202 when JetStream has stored all; 400 names the
events that are rejected, and the others are stored. `GET ?after=SEQ` returns a batch of the events that
the caller may view, in the order of the log, as they are in the record stream. `tocsin-next-after` is the
`after` of the next call.
"""

from __future__ import annotations

import json

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from schemas.error_text import error_text
from schemas.wire.event import EventRow
from schemas.wire.ingest_event import IngestEvent
from tocsin.api.access.permission import Access, guarded
from tocsin.api.problems import problem_response
from tocsin.api.protocols.metrics import parts_of
from tocsin.api.protocols.outbox import send_events, summary_of
from tocsin.core.db import fetch_all
from tocsin.core.errors import InvalidInput
from tocsin.policy import Operation, decide
from tocsin.protocols.cloudevents import BATCHED, MAX_CLOUDEVENTS_BYTES, read_cloudevents

_MAX_LISTED = 500
_MAX_SEQ = 2**62
_MAX_DIGITS = 19


async def post_cloudevents(request: Request, access: Access) -> Response:
    read, problems = read_cloudevents(request.headers, await request.body())
    events = []
    for fields in read:
        try:
            if not decide(access.caller.principal, Operation.EMIT_EVENT, fields["owner"]).allowed:
                raise ValueError(f"{access.caller.name!r} may not emit events for owner {fields['owner']!r}")
            events.append(IngestEvent.model_validate_json(json.dumps(fields)))
        except ValidationError as invalid:
            problems.append(f"the event {fields['id'][:80]!r}: {error_text(invalid)}")
        except ValueError as error:
            problems.append(f"the event {fields['id'][:80]!r}: {error}")
    await send_events(access.context, events)
    if problems:
        await parts_of(access).rejections.keep(access, request.url.path, problems)
        return problem_response("malformed", summary_of(problems), remedy="the other events are stored")
    return JSONResponse({"events": [str(event.event_id) for event in events]}, 202)


async def get_cloudevents(request: Request, access: Access) -> Response:
    after = _number(request, "after", 0, _MAX_SEQ)
    limit = _number(request, "limit", 100, _MAX_LISTED)
    async with access.session() as connection:
        rows = await fetch_all(
            connection,
            "tocsin.api.protocols/list_events_after",
            {"after": after, "owners": access.owners, "limit": limit},
        )
    events = [EventRow(*row) for row in rows]
    body = b"[" + b",".join(event.body(access.context.settings.source) for event in events) + b"]"
    headers = {"tocsin-next-after": str(events[-1].seq if events else after), "cache-control": "no-store"}
    return Response(body, media_type=BATCHED, headers=headers)


def _number(request: Request, name: str, default: int, largest: int) -> int:
    text = request.query_params.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > _MAX_DIGITS or int(text) > largest:
        raise InvalidInput(f"{name}={text[:40]!r} cannot be used", remedy=f"send a number up to {largest}")
    return int(text)


ROUTES = (
    Route("/cloudevents", guarded(Operation.VIEW_EVENTS, get_cloudevents), methods=["GET"]),
    Route(
        "/cloudevents",
        guarded(Operation.EMIT_EVENT, post_cloudevents, max_body_bytes=MAX_CLOUDEVENTS_BYTES),
        methods=["POST"],
    ),
)

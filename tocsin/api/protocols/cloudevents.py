"""`POST /cloudevents`: events in the HTTP binding of CloudEvents 1.0, one or a batch.

202 when JetStream has stored all. 400 names the events that are rejected; the others are stored.
"""

from __future__ import annotations

import json

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tocsin.api.access.permission import Access, guarded
from tocsin.api.problems import problem_response

from schemas.error_text import error_text
from schemas.wire.ingest_event import IngestEvent
from tocsin.api.protocols.metrics import parts_of
from tocsin.api.protocols.outbox import send_events, summary_of
from tocsin.policy import Operation, decide
from tocsin.protocols.cloudevents import MAX_CLOUDEVENTS_BYTES, read_cloudevents


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


ROUTES = (
    Route(
        "/cloudevents",
        guarded(Operation.EMIT_EVENT, post_cloudevents, max_body_bytes=MAX_CLOUDEVENTS_BYTES),
        methods=["POST"],
    ),
)

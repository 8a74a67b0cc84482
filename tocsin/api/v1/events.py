"""`/v1/events`: events of the record log, and emitting one.

Without `after` the newest come first, with a cursor to older ones. With `after` they come in the order
of the log, behind that seq; the seq of the last one is the next `after`.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from schemas.values.severities import level_name
from tocsin.api.access.permission import Access, may
from tocsin.api.pages import Keyset, Page, Paged, big_integer
from tocsin.api.v1.inputs import MAX_SEQ, OptionalText
from tocsin.client.producer import Producer
from tocsin.core.db import fetch_dicts
from tocsin.policy import Operation

router = APIRouter(tags=["events"])
_BY_SEQ = Keyset({"seq": big_integer})
_EMIT_WITHIN_S = 5.0


class EventView(BaseModel):
    seq: int = Field(description="Position in the record log, and in the record stream.")
    id: uuid.UUID
    ts: datetime = Field(description="Nominal time: the instant that the event is for.")
    recorded_at: datetime
    origin: str = Field(description="caused, derived, external or scheduled.")
    type: str
    schedule: str
    rule: str
    action: str
    owner: str
    fire_at: datetime | None
    alarm_id: uuid.UUID | None
    severity: str | None
    level: int | None
    source_event_id: uuid.UUID | None
    correlation_id: uuid.UUID
    payload: dict[str, Any]
    epoch: int | None = Field(description="Epoch of the clock that fired it; null for others.")


class NewEventRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")
    type: str = Field(max_length=128)
    owner: str = Field(default="", max_length=128)
    payload: dict[str, JsonValue] = Field(default_factory=dict)
    key: str | None = Field(
        default=None, min_length=1, max_length=512, description="An event with the same key is stored once."
    )
    severity: str | None = Field(default=None, max_length=40)
    ts: AwareDatetime | None = None
    correlation_id: uuid.UUID | None = None


class EventSent(BaseModel):
    id: uuid.UUID


@router.get("/events", summary="List events, the newest first, or those after a seq")
async def list_events(  # noqa: PLR0913 - one argument per filter
    access: Annotated[Access, may(Operation.VIEW_EVENTS)],
    page: Paged,
    after: Annotated[
        int | None, Query(ge=0, le=MAX_SEQ, description="Events behind this seq, the oldest first.")
    ] = None,
    owner: OptionalText = None,
    rule: OptionalText = None,
    type: OptionalText = None,
    schedule: OptionalText = None,
    origin: Annotated[Literal["caused", "derived", "external", "scheduled"] | None, Query()] = None,
    correlation_id: uuid.UUID | None = None,
) -> Page[EventView]:
    filters = {
        "owners": access.owners,
        "owner": owner,
        "rule": rule,
        "type": type,
        "schedule": schedule,
        "origin": origin,
        "correlation_id": correlation_id,
    }
    async with access.session() as connection:
        if after is not None:
            parameters = {**filters, "after": after, "limit": page.limit}
            rows = await fetch_dicts(connection, "tocsin.api.v1/list_events_after", parameters)
            return Page[EventView](items=[event_view(row) for row in rows])
        parameters = {**filters, **_BY_SEQ.after(page)}
        rows = await fetch_dicts(connection, "tocsin.api.v1/list_events", parameters)
    return _BY_SEQ.page(page, rows, event_view)


@router.post("/events", status_code=202, summary="Emit an event")
async def emit_event(
    access: Annotated[Access, may(Operation.EMIT_EVENT)], body: NewEventRequest
) -> EventSent:
    access.require(body.owner)
    bus = await access.context.bus()
    async with Producer(access.context.settings, timeout_s=_EMIT_WITHIN_S, bus=bus) as producer:
        id = await producer.emit(**body.model_dump())
    return EventSent(id=id)


def event_view(row: dict[str, Any]) -> EventView:
    level = row["severity"]
    return EventView(**{**row, "severity": None if level is None else level_name(level), "level": level})

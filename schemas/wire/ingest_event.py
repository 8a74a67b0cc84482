"""An event of a producer, on `ingest.event` or on `ingest.event.<owner>`. It is appended to the log as
`external`, once per `id`.

On `ingest.event.<owner>` the event belongs to that owner, and its `id` is one of that owner alone: NATS
permissions decide who may publish there, so no other producer can take the id first, or send for the owner.

Guarantee: an event that `read_ingest_event` returns can be appended, evaluated and published: names
are safe tokens, the payload is plain JSON of bounded depth, instants are aware. The id of the event
is derived from the `id` of the message, so the same message is the same event whenever it is sent.

On failure: `InvalidInput` with one sentence that has the location and the remedy.
"""

from __future__ import annotations

import re
import uuid
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator

from schemas.error_text import error_text
from schemas.values.event_types import FreeEventType
from schemas.values.json_shape import check_json_shape
from schemas.values.names import Owner, check_storable
from schemas.values.severities import level
from tocsin.core.errors import InvalidInput

MAX_BYTES = 229_376
_EVENT_IDS = uuid.UUID("5a0f7c64-3b1e-5a57-9f0e-2d6f7b1c8e43")
_FIRST_YEAR, _LAST_YEAR = 1970, 9998
_OWNED_KEY = re.compile("~[0-9a-f]{64}")


class IngestEvent(BaseModel):
    """A message on `ingest.event` or `ingest.event.<owner>`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        description="Idempotency key: a second message with it is the same event.",
        examples=["order-17/shipped"],
    )
    type: FreeEventType = Field(
        description="Type of the event, in the past tense.", examples=["order-shipped"]
    )
    owner: Owner = Field("", description="Owner of the event.", examples=["plant-7"])
    payload: dict[str, Any] = Field(default_factory=dict, description="Payload of the event, plain JSON.")
    ts: AwareDatetime | None = Field(None, description="Instant of the event; by default its arrival.")
    severity: str | None = Field(None, description="Name of a severity level.", examples=["high"])
    correlation_id: uuid.UUID | None = Field(
        None, description="The same for all records with one cause; by default the id of the event."
    )

    @property
    def event_id(self) -> uuid.UUID:
        return ingested_id(self.id)

    @property
    def rank(self) -> int | None:
        return None if self.severity is None else level(self.severity)

    @field_validator("id")
    @classmethod
    def _is_storable(cls, text: str) -> str:
        if _OWNED_KEY.fullmatch(text):
            raise ValueError("ids of this form are those of events by owner: choose another")
        return check_storable(text)

    @field_validator("payload")
    @classmethod
    def _is_plain(cls, payload: dict[str, Any]) -> dict[str, Any]:
        check_json_shape(payload)
        return payload

    @field_validator("ts")
    @classmethod
    def _is_plausible(cls, ts: datetime | None) -> datetime | None:
        if ts is not None and not _FIRST_YEAR <= ts.year <= _LAST_YEAR:
            raise ValueError(f"ts {ts.isoformat()} is not plausible: use a year from {_FIRST_YEAR} on")
        return ts

    @field_validator("severity")
    @classmethod
    def _is_a_level(cls, name: str | None) -> str | None:
        if name is not None:
            level(name)
        return name


def ingested_id(key: str) -> uuid.UUID:
    """The id of the event whose message has an idempotency key."""
    return uuid.uuid5(_EVENT_IDS, key)


def read_ingest_event(body: bytes) -> IngestEvent:
    if len(body) > MAX_BYTES:
        raise InvalidInput(f"the event has {len(body)} bytes", remedy=f"send at most {MAX_BYTES}")
    try:
        return IngestEvent.model_validate_json(body)
    except ValidationError as invalid:
        raise InvalidInput(f"the event is not accepted: {error_text(invalid)}") from None


def owned_event(event: IngestEvent, owner: str) -> IngestEvent:
    """The event of a message whose subject names its owner. `InvalidInput` if it names another one."""
    if event.owner not in ("", owner):
        raise InvalidInput(
            f"the event has the owner {event.owner!r}, and its subject {owner!r}",
            remedy="publish it on the subject of its owner",
        )
    return event.model_copy(update={"owner": owner, "id": owned_key(owner, event.id)})


def owned_key(owner: str, key: str) -> str:
    """The idempotency key of an owner, which no producer of others can send."""
    return "~" + sha256(f"{owner}\0{key}".encode()).hexdigest()

"""An event that somebody hands in, on `ingest.event`: it enters the log as `external`, once per `id`.

Guarantee: what `read_ingest_event` returns can be appended, judged and published: names are safe tokens, the payload is
plain JSON of bounded depth, instants are aware. The event's own id is made from the key, so the same key is the same
event wherever and whenever it is handed in.

On failure: `InvalidInput` with one sentence that names the place and the remedy.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator

from schemas.refusals import refusal
from schemas.values.json_shape import check_json_shape
from schemas.values.names import Name, Owner, without_nul
from schemas.values.severities import level
from tocsin.core.errors import InvalidInput

MOST_BYTES = 229_376
_KEYS = uuid.UUID("5a0f7c64-3b1e-5a57-9f0e-2d6f7b1c8e43")
_FIRST_YEAR, _LAST_YEAR = 1970, 9998


class IngestEvent(BaseModel):
    """The body of a message on `ingest.event`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        description="Idempotency key: the same one again is the same event.", examples=["order-17/shipped"]
    )
    type: Name = Field(description="What happened, in the past tense.", examples=["order-shipped"])
    owner: Owner = Field("", description="Whom it concerns.", examples=["plant-7"])
    payload: dict[str, Any] = Field(default_factory=dict, description="Anything, as plain JSON.")
    ts: AwareDatetime | None = Field(None, description="When it happened; without it, when it arrives.")
    severity: str | None = Field(None, description="Name of a severity level.", examples=["high"])
    correlation_id: uuid.UUID | None = Field(
        None, description="Shared by everything that one cause led to; its own id by default."
    )

    @property
    def event_id(self) -> uuid.UUID:
        return uuid.uuid5(_KEYS, self.id)

    @property
    def rank(self) -> int | None:
        return None if self.severity is None else level(self.severity)

    @field_validator("id")
    @classmethod
    def _is_storable(cls, text: str) -> str:
        return without_nul(text)

    @field_validator("payload")
    @classmethod
    def _is_plain(cls, payload: dict[str, Any]) -> dict[str, Any]:
        check_json_shape(payload)
        return payload

    @field_validator("ts")
    @classmethod
    def _is_in_our_time(cls, ts: datetime | None) -> datetime | None:
        if ts is not None and not _FIRST_YEAR <= ts.year <= _LAST_YEAR:
            raise ValueError(f"ts {ts.isoformat()} is not of our time: use a year from {_FIRST_YEAR} on")
        return ts

    @field_validator("severity")
    @classmethod
    def _is_a_level(cls, name: str | None) -> str | None:
        if name is not None:
            level(name)
        return name


def read_ingest_event(body: bytes) -> IngestEvent:
    if len(body) > MOST_BYTES:
        raise InvalidInput(f"the event has {len(body)} bytes", remedy=f"send at most {MOST_BYTES}")
    try:
        return IngestEvent.model_validate_json(body)
    except ValidationError as invalid:
        raise InvalidInput(f"the event is not accepted: {refusal(invalid)}") from None

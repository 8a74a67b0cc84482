"""An event as it crosses to JetStream: CloudEvents 1.0, structured JSON, our fields as extension attributes.

Guarantee: the body's `id` is the row's id and `seq` its place in commit order, which is also its sequence
in the stream. Attributes without a value are left out. Fields are only ever added within `v1`.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from schemas.subjects import event_subject


class EventRow(NamedTuple):
    """One row of `event`, in the column order of cdc/read_records."""

    seq: int
    id: UUID
    ts: datetime
    recorded_at: datetime
    origin: str
    type: str
    schedule: str
    rule: str
    action: str
    owner: str
    fire_at: datetime | None
    alarm_id: UUID | None
    severity: int | None
    source_event_id: UUID | None
    correlation_id: UUID
    payload: str
    epoch: int | None

    def subject(self, prefix: str) -> str:
        name = self.schedule or self.rule or self.action
        return event_subject(prefix, self.origin, self.type, name, self.owner)

    def body(self, source: str) -> bytes:
        attributes: dict[str, Any] = {
            "specversion": "1.0",
            "id": str(self.id),
            "source": source,
            "type": self.type,
            "time": instant_text(self.ts),
            "datacontenttype": "application/json",
            "seq": self.seq,
            "origin": self.origin,
            "recordedat": instant_text(self.recorded_at),
            "correlationid": str(self.correlation_id),
        }
        for name, value in (
            ("schedule", self.schedule),
            ("rule", self.rule),
            ("action", self.action),
            ("owner", self.owner),
        ):
            if value:
                attributes[name] = value
        if self.fire_at is not None:
            attributes["fireat"] = instant_text(self.fire_at)
        if self.alarm_id is not None:
            attributes["alarmid"] = str(self.alarm_id)
        if self.severity is not None:
            attributes["severity"] = self.severity
        if self.source_event_id is not None:
            attributes["sourceeventid"] = str(self.source_event_id)
        head = json.dumps(attributes, ensure_ascii=False, separators=(",", ":"))
        return f'{head[:-1]},"data":{self.payload}}}'.encode()


class Event(BaseModel):
    """What a consumer reads; the JSON Schema of the stream is made from it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    specversion: Literal["1.0"]
    id: UUID = Field(
        description="Same as the row's id in the table `event`; derived from the occurrence for fires."
    )
    source: str = Field(description="`tocsin/` and the namespace that published it.")
    type: str = Field(description="What happened, in the past tense, such as `schedule-fired`.")
    time: datetime = Field(description="Nominal time: the instant the event is for.")
    datacontenttype: Literal["application/json"]
    seq: Annotated[int, Field(ge=1)] = Field(description="Commit order, equal to the sequence in the stream.")
    origin: Literal["caught", "caused", "derived", "scheduled"]
    recordedat: datetime = Field(description="When it was committed, by the database's clock.")
    correlationid: UUID = Field(description="Shared by everything that one cause led to.")
    schedule: str = ""
    rule: str = ""
    action: str = ""
    owner: str = ""
    fireat: datetime | None = Field(None, description="When the fire was due: nominal time and spread.")
    alarmid: UUID | None = None
    severity: int | None = None
    sourceeventid: UUID | None = None
    data: dict[str, JsonValue] = Field(description="The payload, verbatim.")

    def facts(self) -> dict[str, Any]:
        """The variables of a rule's condition."""
        return {
            "id": str(self.id),
            "seq": self.seq,
            "origin": self.origin,
            "type": self.type,
            "schedule": self.schedule,
            "rule": self.rule,
            "action": self.action,
            "owner": self.owner,
            "correlation_id": str(self.correlationid),
            "severity": self.severity or 0,
            "ts": self.time,
            "recorded_at": self.recordedat,
            "payload": self.data,
        }


def instant_text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")

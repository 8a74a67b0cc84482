"""A step of a run on JetStream, in the same stream as the events."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Literal, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from schemas.values.priority import Priority
from schemas.wire.subjects import action_subject
from tocsin.core.instant import instant_text


class StepRow(NamedTuple):
    """One row of `action_step`."""

    seq: int
    id: UUID
    action_id: UUID
    name: str
    owner: str
    step: int
    attempt: int
    state: str
    recorded_at: datetime
    correlation_id: UUID
    source_event_id: UUID | None
    result: str
    priority: str | None = None
    """None: normal."""

    def subject(self, prefix: str) -> str:
        return action_subject(prefix, self.name, self.priority if self.state == "due" else None)

    def body(self, source: str) -> bytes:
        attributes = {
            "specversion": "1.0",
            "id": str(self.id),
            "source": source,
            "type": f"action-step-{self.state}",
            "time": instant_text(self.recorded_at),
            "datacontenttype": "application/json",
            "seq": self.seq,
            "correlationid": str(self.correlation_id),
            "action": self.name,
            "actionid": str(self.action_id),
            "step": self.step,
            "attempt": self.attempt,
            "state": self.state,
        }
        if self.owner:
            attributes["owner"] = self.owner
        if self.priority is not None:
            attributes["priority"] = self.priority
        if self.source_event_id is not None:
            attributes["sourceeventid"] = str(self.source_event_id)
        head = json.dumps(attributes, ensure_ascii=False, separators=(",", ":"))
        return f'{head[:-1]},"data":{self.result}}}'.encode()


class ActionStep(BaseModel):
    """A message on `action.>`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    specversion: Literal["1.0"]
    id: UUID
    source: str
    type: str = Field(description="`action-step-` and the state.")
    time: datetime = Field(
        description="Instant at which the step reached this state, by the clock of the database."
    )
    datacontenttype: Literal["application/json"]
    seq: Annotated[int, Field(ge=1)] = Field(description="Commit order, equal to the sequence in the stream.")
    correlationid: UUID
    action: str = Field(description="Name of the action.")
    actionid: UUID = Field(description="Id of the run.")
    step: int
    attempt: int
    state: Literal["due", "waiting", "completed", "failed", "timed_out", "cancelled", "skipped"]
    owner: str = ""
    priority: Priority = Field("normal", description="Priority of the run.")
    sourceeventid: UUID | None = Field(None, description="Id of the event that started the run.")
    data: dict[str, JsonValue] = Field(description="Result of the step.")

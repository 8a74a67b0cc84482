"""A tombstone: what stands in the stream at the sequence of a record that cannot be sent.

Guarantee: it has the record's id and seq, and says why. So one row that is too large, or that cannot be
read, neither stops the log nor leaves a hole in it: the record itself stays in its table.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from schemas.event import instant_text
from schemas.subjects import tombstone_subject

Kind = Literal["event", "action-step", "calculated-datapoint"]


class TombstoneRow(NamedTuple):
    seq: int
    id: UUID
    kind: Kind
    recorded_at: datetime | None
    reason: str

    def subject(self, prefix: str) -> str:
        return tombstone_subject(prefix, self.kind)

    def body(self, source: str) -> bytes:
        attributes: dict[str, Any] = {
            "specversion": "1.0",
            "id": str(self.id),
            "source": source,
            "type": "record-unsendable",
            "datacontenttype": "application/json",
            "seq": self.seq,
            "kind": self.kind,
            "data": {"reason": self.reason},
        }
        if self.recorded_at is not None:
            attributes["time"] = instant_text(self.recorded_at)
        return json.dumps(attributes, ensure_ascii=False, separators=(",", ":")).encode()


class TombstoneData(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    reason: str = Field(description="Why the record could not be sent.")


class Tombstone(BaseModel):
    """What a consumer of `tombstone.>` reads; the JSON Schema is made from it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    specversion: Literal["1.0"]
    id: UUID = Field(description="Id of the record in its table.")
    source: str
    type: Literal["record-unsendable"]
    time: datetime | None = Field(None, description="When the record was committed, if that can be read.")
    datacontenttype: Literal["application/json"]
    seq: Annotated[int, Field(ge=1)] = Field(description="Commit order, equal to the sequence in the stream.")
    kind: Kind = Field(description="Which table has the record.")
    data: TombstoneData

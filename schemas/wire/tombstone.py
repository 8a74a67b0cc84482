"""A tombstone: a message that fills the sequence of a record that cannot be published or was lost.

Guarantee: it has the seq of the record and the reason. So a row that is too large or cannot be read
neither stops the publisher nor leaves a gap in the stream; the record itself stays in its table,
with the same id. The tombstones of a recorded gap of the log (`kind` is `gap`) have ids that are
derived from the seq.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID, uuid5

from pydantic import BaseModel, ConfigDict, Field

from schemas.wire.subjects import tombstone_subject
from tocsin.core.instant import instant_text

Kind = Literal["event", "action-step", "calculated-datapoint"]
_GAP_IDS = UUID("4d3c35d2-53a8-5b0e-9f0d-2f0a5c1f6f3b")


class TombstoneRow(NamedTuple):
    """A tombstone for a record that is in its table."""

    seq: int
    id: UUID
    kind: Kind
    recorded_at: datetime | None
    reason: str

    def subject(self, prefix: str) -> str:
        return tombstone_subject(prefix, self.kind)

    def body(self, source: str) -> bytes:
        data = {"reason": self.reason}
        return _body(self.seq, self.id, source, self.kind, "record-unsendable", self.recorded_at, data)


class GapRow(NamedTuple):
    """A tombstone for a record that is not in its table."""

    seq: int
    from_seq: int
    until_seq: int
    reason: str
    at: datetime

    @property
    def id(self) -> UUID:
        return uuid5(_GAP_IDS, str(self.seq))

    def subject(self, prefix: str) -> str:
        return tombstone_subject(prefix, "gap")

    def body(self, source: str) -> bytes:
        data = {"reason": self.reason, "from_seq": self.from_seq, "until_seq": self.until_seq}
        return _body(self.seq, self.id, source, "gap", "record-missing", self.at, data)


def _body(
    seq: int, id: UUID, source: str, kind: str, type: str, at: datetime | None, data: dict[str, Any]
) -> bytes:
    attributes: dict[str, Any] = {
        "specversion": "1.0",
        "id": str(id),
        "source": source,
        "type": type,
        "datacontenttype": "application/json",
        "seq": seq,
        "kind": kind,
        "data": data,
    }
    if at is not None:
        attributes["time"] = instant_text(at)
    return json.dumps(attributes, ensure_ascii=False, separators=(",", ":")).encode()


class TombstoneData(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    reason: str = Field(description="Why the record could not be published, or why it was lost.")
    from_seq: int | None = Field(None, description="First seq of a gap.")
    until_seq: int | None = Field(None, description="Last seq of a gap.")


class Tombstone(BaseModel):
    """A message on `tombstone.>`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    specversion: Literal["1.0"]
    id: UUID = Field(description="Id of the record in its table; that of a gap is derived from the seq.")
    source: str
    type: Literal["record-unsendable", "record-missing"]
    time: datetime | None = Field(
        None,
        description="Instant of the commit, if it can be read; for a gap, the instant at which it was recorded.",
    )
    datacontenttype: Literal["application/json"]
    seq: Annotated[int, Field(ge=1)] = Field(description="Commit order, equal to the sequence in the stream.")
    kind: Literal[Kind, "gap"] = Field(description="Kind of the record; `gap` if it is in no table.")
    data: TombstoneData

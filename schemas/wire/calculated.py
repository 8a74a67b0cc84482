"""A calculated datapoint in the record stream: freshness of a series, health, or a calculated value.

Guarantee: `seq` is its position in commit order and its sequence in the stream. `time` is the
instant that it is for, such as the deadline that passed, or the end of a window. Staleness is
published on `staleness.>`, health on `health.>`, values of calc_rules on `calc.>`.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from schemas.wire.subjects import calculated_subject
from tocsin.core.instant import instant_text

CalculatedKind = Literal["stale", "fresh", "health", "calc"]
HEALTH_KEY = "system.health"
"""The key of the series with the health of a system. Its owner is the system."""
CALC_PREFIX = "calc."
"""The beginning of the keys of the series of calc_rules. No producer may send such a key."""


class CalculatedRow(NamedTuple):
    """One row of `datapoint_calculated`."""

    seq: int
    id: UUID
    owner: str
    key: str
    ts: datetime
    recorded_at: datetime
    kind: str
    payload: str
    correlation_id: UUID

    def subject(self, prefix: str) -> str:
        return calculated_subject(prefix, self.kind, self.owner, self.key)

    def body(self, source: str) -> bytes:
        attributes: dict[str, Any] = {
            "specversion": "1.0",
            "id": str(self.id),
            "source": source,
            "type": f"datapoint-{self.kind}",
            "time": instant_text(self.ts),
            "datacontenttype": "application/json",
            "seq": self.seq,
            "recordedat": instant_text(self.recorded_at),
            "correlationid": str(self.correlation_id),
            "owner": self.owner,
            "key": self.key,
            "kind": self.kind,
        }
        head = json.dumps(attributes, ensure_ascii=False, separators=(",", ":"))
        return f'{head[:-1]},"data":{self.payload}}}'.encode()


class CalculatedDatapoint(BaseModel):
    """A message that a consumer of `staleness.>`, `health.>` or `calc.>` reads."""

    model_config = ConfigDict(extra="allow", frozen=True)

    specversion: Literal["1.0"]
    id: UUID
    source: str
    type: str = Field(description="`datapoint-` and the kind.")
    time: datetime = Field(description="The instant that it is for, such as the deadline that passed.")
    datacontenttype: Literal["application/json"]
    seq: Annotated[int, Field(ge=1)] = Field(description="Commit order, equal to the sequence in the stream.")
    recordedat: datetime = Field(description="When it was committed, by the database's clock.")
    correlationid: UUID
    owner: str
    key: str
    kind: CalculatedKind
    data: dict[str, JsonValue] = Field(
        description="Last value, its age, the health and its reason, or a calculated value."
    )

"""New records as data: events, steps and calculated datapoints.

`tocsin.core.record_log` appends them. This module is separate so that code which decides about
records needs no database driver.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class NewEvent:
    ts: datetime
    origin: str
    type: str
    payload: Mapping[str, Any] = field(default_factory=dict)
    schedule: str = ""
    rule: str = ""
    action: str = ""
    owner: str = ""
    alarm_id: uuid.UUID | None = None
    severity: int | None = None
    source_event_id: uuid.UUID | None = None
    correlation_id: uuid.UUID | None = None
    id: uuid.UUID = field(default_factory=uuid.uuid4)


@dataclass(frozen=True)
class NewStep:
    action_id: uuid.UUID
    name: str
    owner: str
    step: int
    attempt: int
    state: str
    correlation_id: uuid.UUID
    source_event_id: uuid.UUID | None = None
    result: Mapping[str, Any] = field(default_factory=dict)
    id: uuid.UUID = field(default_factory=uuid.uuid4)


@dataclass(frozen=True)
class NewCalculated:
    owner: str
    key: str
    ts: datetime
    kind: str
    payload: Mapping[str, Any]
    id: uuid.UUID
    correlation_id: uuid.UUID | None = None


@dataclass(frozen=True)
class NewRecords:
    """The records of one transaction, appended in this order: events, steps, calculated datapoints."""

    events: Sequence[NewEvent] = ()
    steps: Sequence[NewStep] = ()
    calculated: Sequence[NewCalculated] = ()
    observations: Sequence[Mapping[str, Any]] | None = None
    """Observations of members (`rules.health.observations`) as JSON; None: those that follow from the
    records."""

    @classmethod
    def joined(cls, parts: Iterable[NewRecords]) -> NewRecords:
        parts = list(parts)
        return cls(
            [event for part in parts for event in part.events],
            [step for part in parts for step in part.steps],
            [datapoint for part in parts for datapoint in part.calculated],
            None
            if all(part.observations is None for part in parts)
            else [observation for part in parts for observation in part.observations or ()],
        )

"""The Python face of `tocsin.append`: records of our own short transactions.

The last thing a transaction does: the log stays locked until it commits.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from tocsin.core.db import Connection, statement


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
    verdict: str
    payload: Mapping[str, Any]
    id: uuid.UUID
    correlation_id: uuid.UUID | None = None


@dataclass(frozen=True)
class Records:
    """What one transaction appends: events first, then steps, then calculated datapoints, each in their order."""

    events: Sequence[NewEvent] = ()
    steps: Sequence[NewStep] = ()
    calculated: Sequence[NewCalculated] = ()

    @classmethod
    def joined(cls, parts: Iterable[Records]) -> Records:
        parts = list(parts)
        return cls(
            [event for part in parts for event in part.events],
            [step for part in parts for step in part.steps],
            [one for part in parts for one in part.calculated],
        )


_EVENT = (
    *("id", "ts", "origin", "type", "schedule", "rule", "action", "owner"),
    *("alarm_id", "severity", "source_event_id", "correlation_id"),
)
_STEP = ("id", "action_id", "name", "owner", "step", "attempt", "state", "correlation_id", "source_event_id")
_CALCULATED = ("id", "owner", "key", "ts", "verdict", "correlation_id")


async def append_events(
    connection: Connection, events: Sequence[NewEvent], *, epoch: int | None = None
) -> int:
    """The seq of the last one. With `epoch`, also the proof that we still lead."""
    columns = {**_columns(events, _EVENT), "payload": [Jsonb(dict(event.payload)) for event in events]}
    row = await (
        await connection.execute(statement("clock/append_events"), {**columns, "epoch": epoch})
    ).fetchone()
    assert row is not None
    return int(row[0])


async def append_records(connection: Connection, records: Records) -> int | None:
    """All of them at once; the seq of the last one. The log is not touched when there are none."""
    if not (records.events or records.steps or records.calculated):
        return None
    parameters = {
        **_columns(records.events, _EVENT, "event_"),
        "event_payload": [Jsonb(dict(event.payload)) for event in records.events],
        **_columns(records.steps, _STEP, "step_"),
        "step_result": [Jsonb(dict(step.result)) for step in records.steps],
        **_columns(records.calculated, _CALCULATED, "calculated_"),
        "calculated_payload": [Jsonb(dict(one.payload)) for one in records.calculated],
    }
    row = await (await connection.execute(statement("clock/append_records"), parameters)).fetchone()
    assert row is not None
    return int(row[0])


def _columns(rows: Sequence[object], names: Sequence[str], prefix: str = "") -> dict[str, list[Any]]:
    return {f"{prefix}{name}": [getattr(row, name) for row in rows] for name in names}

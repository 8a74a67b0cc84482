"""The Python face of `tocsin.append`: events of our own short transactions.

The last thing a transaction does: the log stays locked until it commits.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
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


async def append_events(
    connection: Connection, events: Sequence[NewEvent], *, epoch: int | None = None
) -> int:
    """The seq of the last one. With `epoch`, also the proof that we still lead."""
    columns = {
        name: [getattr(event, name) for event in events]
        for name in (
            "id",
            "ts",
            "origin",
            "type",
            "schedule",
            "rule",
            "action",
            "owner",
            "alarm_id",
            "severity",
            "source_event_id",
            "correlation_id",
        )
    }
    columns["payload"] = [Jsonb(dict(event.payload)) for event in events]
    row = await (
        await connection.execute(statement("clock/append_events"), {**columns, "epoch": epoch})
    ).fetchone()
    assert row is not None
    return int(row[0])

"""Appends records through `tocsin.append`, in our own short transactions.

Appending is the last statement of a transaction, because the log stays locked until the commit. One
exception: a step that starts to wait for an event inserts its wait after the append, because the
wait stores the seq that the append assigned.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from tocsin.core.columns import column
from tocsin.core.db import Connection, fetch_value, statement
from tocsin.core.records import NewEvent, NewRecords

_EVENT = (
    *("id", "ts", "origin", "type", "schedule", "rule", "action", "owner"),
    *("alarm_id", "severity", "source_event_id", "correlation_id"),
)
_STEP = ("id", "action_id", "name", "owner", "step", "attempt", "state", "correlation_id", "source_event_id")
_CALCULATED = ("id", "owner", "key", "ts", "kind", "correlation_id")


async def append_events(
    connection: Connection, events: Sequence[NewEvent], *, epoch: int | None = None
) -> int:
    """Append events and return the seq of the last one.

    With `epoch`, proves that this clock still leads.
    """
    columns = {**_columns(events, _EVENT), "payload": column(event.payload for event in events)}
    return int(await fetch_value(connection, "tocsin.core/append_events", {**columns, "epoch": epoch}))


async def append_records(connection: Connection, records: NewRecords) -> int | None:
    """Append all records and return the seq of the last one.

    Without records the log is not locked.
    """
    if not (records.events or records.steps or records.calculated or records.observations):
        return None
    parameters = {
        **_columns(records.events, _EVENT, "event_"),
        "event_payload": column(event.payload for event in records.events),
        **_columns(records.steps, _STEP, "step_"),
        "step_result": column(step.result for step in records.steps),
        **_columns(records.calculated, _CALCULATED, "calculated_"),
        "calculated_payload": column(datapoint.payload for datapoint in records.calculated),
        "observations": None if records.observations is None else json.dumps(list(records.observations)),
    }
    return int(await fetch_value(connection, "tocsin.core/append_records", parameters))


async def extend_log(connection: Connection) -> None:
    """Create partitions ahead of the head of the log, long before they are needed."""
    await connection.execute(statement("tocsin.core/extend_log"))


def _columns(rows: Sequence[object], names: Sequence[str], prefix: str = "") -> dict[str, str]:
    return {f"{prefix}{name}": column(getattr(row, name) for row in rows) for name in names}

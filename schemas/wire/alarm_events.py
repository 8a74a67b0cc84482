"""The event of a sustain that is over, the same in live time, in rule tests and in a backtest. Pure.

Guarantee: its id follows from the alarm, the edge and, for a snooze, the instant: whoever finds it, the event is one.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from tocsin.core.records import NewEvent


class AlarmRef(NamedTuple):
    """What an event says of the alarm that it is about."""

    id: uuid.UUID
    rule: str
    owner: str
    severity: int
    correlation_id: uuid.UUID
    source_event_id: uuid.UUID | None = None


class Edge(NamedTuple):
    needs: str
    """The state of the alarm; in any other nothing happens."""
    type: str
    name: str
    """In the id of the event."""


EDGES = {
    "open": Edge("pending", "alarm-opened", "opened"),
    "clear": Edge("open", "alarm-resolved", "resolved"),
    "snooze": Edge("open", "alarm-snooze-ended", "snooze-ended"),
}
"""What each key of a sustain does."""


def sustain_event(alarm: AlarmRef, key: str, at: datetime, payload: Mapping[str, Any]) -> NewEvent:
    edge = EDGES[key]
    # An alarm opens and resolves once; a snooze may end several times.
    name = f"{edge.name}/{at.isoformat()}" if key == "snooze" else edge.name
    return NewEvent(
        id=uuid.uuid5(alarm.id, name),
        ts=at,
        origin="derived",
        type=edge.type,
        payload=payload,
        rule=alarm.rule,
        owner=alarm.owner,
        alarm_id=alarm.id,
        severity=alarm.severity,
        source_event_id=alarm.source_event_id,
        correlation_id=alarm.correlation_id,
    )


def snooze_payload(who: str) -> dict[str, Any]:
    """What the timer of a snooze carries, and the event of its end says."""
    return {"snoozed_by": who}

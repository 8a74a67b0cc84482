"""The event of an alarm that opens or resolves, the same in live time, in rule tests and in a backtest. Pure.

Guarantee: its id follows from the alarm and the edge, so that whoever finds the edge first, the event is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from clock.records import NewEvent
from rules.engine import Alarm, Edge, edge_event_id


def edge_event(
    alarm: Alarm, edge: Edge, at: datetime, payload: Mapping[str, Any], correlation_id: UUID
) -> NewEvent:
    return NewEvent(
        id=edge_event_id(alarm.id, edge),
        ts=at,
        origin="derived",
        type=f"alarm-{edge}",
        payload=payload,
        rule=alarm.rule,
        owner=alarm.owner,
        alarm_id=alarm.id,
        severity=alarm.severity,
        source_event_id=alarm.source_event_id,
        correlation_id=correlation_id,
    )

"""The event of an alarm that opens or resolves, the same in live time, in rule tests and in a backtest. Pure.

Guarantee: its id follows from the alarm and the edge, so that whoever finds the edge first, the event is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from rules.engine import Alarm, Edge
from schemas.wire.alarm_events import AlarmRef, sustain_event
from tocsin.core.records import NewEvent

_KEYS = {"opened": "open", "resolved": "clear"}
"""Of the sustain that would have said the same: whoever comes first, the event is one."""


def edge_event(
    alarm: Alarm, edge: Edge, at: datetime, payload: Mapping[str, Any], correlation_id: UUID
) -> NewEvent:
    ref = AlarmRef(alarm.id, alarm.rule, alarm.owner, alarm.severity, correlation_id, alarm.source_event_id)
    return sustain_event(ref, _KEYS[edge], at, payload)

"""What people do to alarms, as events: the same in live time and in rule tests. Pure.

On failure: `InvalidInput` if a snooze would end before it begins, or in more than a year.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from schemas.fields import LONGEST_SNOOZE
from schemas.wire.alarm_events import AlarmRef
from tocsin.core.errors import InvalidInput
from tocsin.core.records import NewEvent


class Said(NamedTuple):
    type: str
    payload: dict[str, Any]


def acknowledgement(who: str, via: str, note: str = "") -> Said:
    return Said("alarm-acknowledged", {"who": who, "via": via, "note": note})


def silence(who: str, via: str, until: datetime | None) -> Said:
    """Until an instant; None ends it."""
    type = "alarm-snoozed" if until is not None else "alarm-unsnoozed"
    return Said(type, {"who": who, "via": via, "until": until and until.isoformat()})


def check_snooze(now: datetime, until: datetime) -> None:
    if not now < until <= now + LONGEST_SNOOZE:
        raise InvalidInput(
            f"{until.isoformat()} is not within the next {LONGEST_SNOOZE.days} days",
            remedy="snooze until then at most",
        )


def act_event(alarm: AlarmRef, at: datetime, said: Said) -> NewEvent:
    return NewEvent(
        ts=at,
        origin="caused",
        type=said.type,
        payload=said.payload,
        rule=alarm.rule,
        owner=alarm.owner,
        alarm_id=alarm.id,
        severity=alarm.severity,
        correlation_id=alarm.correlation_id,
    )

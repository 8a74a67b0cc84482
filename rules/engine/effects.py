"""What the engine concludes, as data: live workers persist it, tests and backtests collect it.

Guarantee: the effects of a step are in the order in which they happened, each with its nominal instant, and
complete: a shell needs no other knowledge of the rule to store an alarm, arm its timer and write its events.
The ids are derived from what happened, so live, test and backtest give one alarm the same id.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from schemas.wire.alarm_events import AlarmRef

_ALARMS = uuid.UUID("7b1d3f52-6a0e-5c1b-9f57-2f5f0c8a4e11")

SustainKey = Literal["open", "clear"]


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm as it begins. `payload` is the payload of its `alarm-opened` event: plain JSON."""

    id: uuid.UUID
    rule: str
    owner: str
    severity: int
    since: datetime
    payload: dict[str, Any]
    source_event_id: uuid.UUID | None = None

    def ref(self, correlation_id: uuid.UUID) -> AlarmRef:
        return AlarmRef(self.id, self.rule, self.owner, self.severity, correlation_id, self.source_event_id)


@dataclass(frozen=True, slots=True)
class Pend:
    """The condition began: keep the alarm as pending."""

    alarm: Alarm


@dataclass(frozen=True, slots=True)
class DropPending:
    """The condition ended before its `for`: the pending alarm never was."""

    alarm_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class ArmSustain:
    """Arm, or move, the timer (for-sustain, alarm_id, key). When it fires, the pending alarm opens, or the open one
    resolves, with an event at `at` that has this payload."""

    alarm_id: uuid.UUID
    key: SustainKey
    at: datetime
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CancelSustain:
    """Delete the timer. When it is gone already the clock was first: read the state and judge again."""

    alarm_id: uuid.UUID
    key: SustainKey


@dataclass(frozen=True, slots=True)
class Open:
    """The alarm is open from `at`: the pending one, or a new one if none is."""

    alarm: Alarm
    at: datetime

    @property
    def payload(self) -> dict[str, Any]:
        """Of its `alarm-opened` event."""
        return self.alarm.payload


@dataclass(frozen=True, slots=True)
class Resolve:
    """The alarm ends at `at`; `payload` is that of its `alarm-resolved` event, with the reason."""

    alarm: Alarm
    at: datetime
    payload: dict[str, Any]

    @property
    def reason(self) -> str:
        return str(self.payload["reason"])


@dataclass(frozen=True, slots=True)
class MessageFailed:
    """The `message` of the rule could not be filled for a new alarm, which has the default text."""

    error: str


Effect = Pend | DropPending | ArmSustain | CancelSustain | Open | Resolve | MessageFailed
Effects = tuple[Effect, ...]


def alarm_id(
    rule: str,
    owner: str,
    since: datetime,
    again: int = 0,
    told_at: datetime | None = None,
    event_id: str = "",
) -> uuid.UUID:
    """An instant may begin several alarms. Those over events are told apart by the event that began them: many share
    the instant of their commit, and an apply between two of them forgets the first. Those over series by `again`,
    which counts the earlier ones, because a message may bring several values at once; and by `told_at` those that a
    rule and its later namesake made of one silence."""
    name = f"{rule}/{owner}/{since.astimezone(UTC).isoformat()}"
    if event_id:
        name += f"/{event_id}"
    elif again:
        name += f"/{again}"
    if told_at is not None:
        name += f"/told {told_at.astimezone(UTC).isoformat()}"
    return uuid.uuid5(_ALARMS, name)

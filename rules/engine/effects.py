"""Effects of a step, as data: live workers store them, rule tests and backtests collect them.

Guarantee: the effects of a step are in the order in which they happened, each with its nominal
instant. They are complete: a shell needs to know nothing else about the rule to store an alarm, arm
its timer and write its events. Ids are derived from what happened, so an alarm has the same id in
live workers, rule tests and backtests.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from schemas.wire.alarm_events import AlarmRef

_ALARMS = uuid.UUID("7b1d3f52-6a0e-5c1b-9f57-2f5f0c8a4e11")

SustainKey = Literal["open", "clear"]
Cause = Literal["fired", "no_data", "late", "failed", "overrun"]
"""Why a series fires. The last three are those of a heartbeat."""


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
    instance: str = ""
    """What the alarm is about: `Rule.instance_of`."""
    lead: str = ""
    """The key of the series that the payload describes; empty if the alarm is over events."""
    series: tuple[str, ...] = ()
    """The keys of all series that are part of the alarm."""
    cause: Cause = "fired"
    changes: int = 0
    """The number of `Changed` transitions so far."""

    def ref(self, correlation_id: uuid.UUID) -> AlarmRef:
        return AlarmRef(
            *(
                self.id,
                self.rule,
                self.owner,
                self.severity,
                correlation_id,
                self.source_event_id,
                self.payload,
            )
        )


@dataclass(frozen=True, slots=True)
class Pend:
    """The condition began: store the alarm as pending."""

    alarm: Alarm


@dataclass(frozen=True, slots=True)
class Describe:
    """The pending alarm has another payload or severity: store it."""

    alarm: Alarm


@dataclass(frozen=True, slots=True)
class DropPending:
    """The condition ended before its `for`: delete the pending alarm."""

    alarm_id: uuid.UUID


@dataclass(frozen=True, slots=True)
class ArmSustain:
    """Arm the timer (for-sustain, alarm_id, key), or move it.

    When it fires, the pending alarm opens or the open one resolves, with an event at `at` that has
    this payload.
    """

    alarm_id: uuid.UUID
    key: SustainKey
    at: datetime
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CancelSustain:
    """Delete the timer.

    If it is already gone, the clock fired it first: read the state and step again.
    """

    alarm_id: uuid.UUID
    key: SustainKey


@dataclass(frozen=True, slots=True)
class Open:
    """The alarm is open from `at`: the pending alarm, or a new one if none is pending."""

    alarm: Alarm
    at: datetime

    @property
    def payload(self) -> dict[str, Any]:
        """The payload of the `alarm-opened` event."""
        return self.alarm.payload


@dataclass(frozen=True, slots=True)
class Changed:
    """Other series are part of the open alarm, or its severity is another one.

    `payload` is the payload of its `alarm-changed` event.
    """

    alarm: Alarm
    at: datetime
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resolve:
    """The alarm ends at `at`.

    `payload` is the payload of its `alarm-resolved` event, with the reason.
    """

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


@dataclass(frozen=True, slots=True)
class Suppressed:
    """An event changed nothing, because too many transitions led to it (`cascade_depth`)."""

    at: datetime
    event_id: str
    depth: int
    reason: str


Effect = (
    Suppressed
    | Pend
    | Describe
    | DropPending
    | ArmSustain
    | CancelSustain
    | Open
    | Changed
    | Resolve
    | MessageFailed
)
Effects = tuple[Effect, ...]


def alarm_id(
    rule: str,
    owner: str,
    instance: str,
    since: datetime,
    repeats: int = 0,
    reevaluated_at: datetime | None = None,
    event_id: str = "",
) -> uuid.UUID:
    """The id of an alarm. Several alarms of one instance may begin at one instant.

    - Over events, `event_id` distinguishes them: many events share the instant of their commit, and
      an apply between two of them deletes the state of the first.
    - Over series, `repeats` counts the earlier ones: a message may carry several values.
    - `reevaluated_at` distinguishes the alarms that a rule and its later namesake began for one
      series that stayed stale.
    """
    name = f"{rule}/{owner}/{instance}/{since.astimezone(UTC).isoformat()}"
    if event_id:
        name += f"/{event_id}"
    elif repeats:
        name += f"/{repeats}"
    if reevaluated_at is not None:
        # The word is part of stored ids.
        name += f"/told {reevaluated_at.astimezone(UTC).isoformat()}"
    return uuid.uuid5(_ALARMS, name)

"""Events of alarms: the one definition for the clock, the workers, rule tests and backtests.

Guarantee: the id of an event that Tocsin derives depends on the alarm and the transition alone, and
for the end of a snooze also on its instant. The clock and a worker that reach the same transition
write the same event, and a replay computes the same id. Events of operators have random ids.

Pure: no I/O.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from schemas.fields import MAX_SNOOZE
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text
from tocsin.core.records import NewEvent

RuleTransition = Literal["opened", "changed", "resolved"]
"""Transitions that an event_rule decides."""
DerivedTransition = Literal[RuleTransition, "snooze-ended"]
"""Transitions that Tocsin derives: they need no operator."""
ActionTransition = Literal[RuleTransition, "acknowledged", "snoozed", "snooze-ended"]
"""Transitions that an action_rule can select."""
Transition = Literal[ActionTransition, "unsnoozed"]


ALARM_FACTS = (
    *("instance", "key", "value", "first_value", "unit", "threshold", "labels", "series", "since"),
    *("message", "title", "runbook_url", "event_type", "payload"),
)
"""Members of an alarm's payload that every transition carries, so that routes by label match it."""


class AlarmRef(NamedTuple):
    """The facts about an alarm that all its events carry."""

    id: uuid.UUID
    rule: str
    owner: str
    severity: int
    correlation_id: uuid.UUID
    source_event_id: uuid.UUID | None = None
    payload: Mapping[str, Any] = MappingProxyType({})
    """The payload of the alarm, of which the events of operators carry `ALARM_FACTS`."""


class TimedTransition(NamedTuple):
    """The effect of a for-sustain timer that fires."""

    required_state: str
    """The state that the alarm must have; in any other state the timer has no effect."""
    transition: DerivedTransition


TIMED_TRANSITIONS = {
    "open": TimedTransition("pending", "opened"),
    "clear": TimedTransition("open", "resolved"),
    "snooze": TimedTransition("open", "snooze-ended"),
}
"""The transition of each key of a for-sustain timer."""


SUPPRESSED = "rules-suppressed"


def event_type(transition: Transition) -> str:
    return f"alarm-{transition}"


def is_transition(facts: Mapping[str, Any]) -> bool:
    """Whether an event is a transition of an alarm: of a rule (`derived`) or of an operator
    (`caused`). The type alone does not tell: an event of a producer or of a step `emit` that has one
    of these types, from before they were reserved, is none."""
    if not facts["type"].startswith("alarm-"):
        return False
    return facts["origin"] == "derived" or (facts["origin"] == "caused" and not facts["action"])


OPERATOR_EVENT_TYPES = (event_type("acknowledged"), event_type("snoozed"), event_type("unsnoozed"))


def transition_event_id(
    alarm_id: uuid.UUID, transition: DerivedTransition, at: datetime, number: int = 0
) -> uuid.UUID:
    """`number` counts the changes of an alarm."""
    # An alarm opens once and resolves once. A snooze can end several times.
    name = f"{transition}/{at.isoformat()}" if transition == "snooze-ended" else transition
    if number:
        name += f"/{number}"
    return uuid.uuid5(alarm_id, name)


def transition_event(
    alarm: AlarmRef, transition: DerivedTransition, at: datetime, payload: Mapping[str, Any]
) -> NewEvent:
    number = int(payload["change"]) if transition == "changed" else 0
    return NewEvent(
        id=transition_event_id(alarm.id, transition, at, number),
        ts=at,
        origin="derived",
        type=event_type(transition),
        payload=payload,
        rule=alarm.rule,
        owner=alarm.owner,
        alarm_id=alarm.id,
        severity=alarm.severity,
        source_event_id=alarm.source_event_id,
        correlation_id=alarm.correlation_id,
    )


def suppressed_event(rule: str, owner: str, at: datetime, event_id: str, depth: int, reason: str) -> NewEvent:
    """The record that an event did not change the alarms of a rule, because too many transitions led
    to it. It has the depth of that event, so that no rule continues from it."""
    source = uuid.UUID(event_id) if event_id else None
    return NewEvent(
        id=uuid.uuid5(source, f"suppressed/{rule}") if source else uuid.uuid4(),
        ts=at,
        origin="derived",
        type=SUPPRESSED,
        payload={"reason": reason, "depth": depth},
        rule=rule,
        owner=owner,
        source_event_id=source,
    )


def snooze_ended_payload(who: str, alarm: Mapping[str, Any]) -> dict[str, Any]:
    """The payload of the snooze timer, and of the event that it writes when it fires."""
    return {**_facts_of(alarm), "snoozed_by": who}


def _facts_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {name: payload[name] for name in ALARM_FACTS if name in payload}


def acknowledged_event(alarm: AlarmRef, at: datetime, *, who: str, via: str, note: str = "") -> NewEvent:
    return _operator_event(alarm, "acknowledged", at, {"who": who, "via": via, "note": note})


def snoozed_event(alarm: AlarmRef, at: datetime, *, who: str, via: str, until: datetime | None) -> NewEvent:
    """The event of a snooze. An `until` of None ends the snooze that runs."""
    transition: Transition = "unsnoozed" if until is None else "snoozed"
    payload = {"who": who, "via": via, "until": None if until is None else instant_text(until)}
    return _operator_event(alarm, transition, at, payload)


def check_snooze(now: datetime, until: datetime) -> None:
    """Raise `InvalidInput` if a snooze would end before it begins, or in more than a year."""
    if not now < until <= now + MAX_SNOOZE:
        raise InvalidInput(
            f"{until.isoformat()} is not within the next {MAX_SNOOZE.days} days",
            remedy="snooze until then at most",
        )


def _operator_event(
    alarm: AlarmRef, transition: Transition, at: datetime, payload: Mapping[str, Any]
) -> NewEvent:
    return NewEvent(
        ts=at,
        origin="caused",
        type=event_type(transition),
        payload={**_facts_of(alarm.payload), **payload},
        rule=alarm.rule,
        owner=alarm.owner,
        alarm_id=alarm.id,
        severity=alarm.severity,
        correlation_id=alarm.correlation_id,
    )

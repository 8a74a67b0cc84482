"""Transitions of the one alarm of a rule, an owner and an instance, from the series that fire.

Guarantee: an alarm opens once before it resolves, and at most one sustain is armed. Every change of
the armed sustain is an effect, in this order: cancel, drop, pend, arm. An alarm is identified by
(rule, owner, instance, since), where `since` is when the series that causes it began to fire. If that series
stops while another fires, the pending alarm is replaced by another alarm.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any, NamedTuple

from rules.engine import messages
from rules.engine.effects import (
    Alarm,
    ArmSustain,
    CancelSustain,
    DropPending,
    Effects,
    MessageFailed,
    Open,
    Pend,
    Resolve,
    alarm_id,
)
from rules.engine.inputs import Value
from rules.engine.rule import Rule
from rules.engine.state import FiringSeries, FiringSeriesByKey, RuleState
from schemas.values.series_key import base_key


class EvaluatedInput(NamedTuple):
    """The input that changed which series fire. `value` is the one that the conditions saw."""

    at: datetime
    owner: str
    instance: str
    key: str
    value: Value | None
    is_stale: bool = False
    depth: int = 0
    """The depth of the transitions that the input causes (`cascade_depth`); 0: they have none."""


def transition(
    rule: Rule, state: RuleState, firing_series: FiringSeriesByKey, input: EvaluatedInput
) -> tuple[RuleState, Effects]:
    """The state and the effects that follow from the series that fire now."""
    state = state._replace(firing_series=firing_series, fingerprint=rule.fingerprint)
    if state.phase in ("open", "clearing"):
        return _transition_open(rule, state, input)
    return _transition_closed(rule, state, input)


def advance(state: RuleState, until: datetime) -> tuple[RuleState, Effects]:
    """Handle the deadline that is due at or before an instant, at its nominal time."""
    due_at, alarm = state.due_at, state.alarm
    if due_at is None or due_at > until or alarm is None:
        return state, ()
    if state.phase == "pending":
        opened = state._replace(phase="open", due_at=None, last_opened_at=due_at)
        return opened, (CancelSustain(alarm.id, "open"), Open(alarm, due_at))
    resolve = Resolve(alarm, due_at, state.resolution or {})
    return _ended(state), (CancelSustain(alarm.id, "clear"), resolve)


def adopt(rule: Rule, state: RuleState, at: datetime) -> tuple[RuleState, Effects]:
    """Continue a state that a rule with other conditions made.

    An open alarm stays open until the new rule clears it, and everything else is evaluated again
    from the next input on. An alarm is resolved if the new rule covers none of its series.
    """
    if state.fingerprint == rule.fingerprint:
        return state, ()
    state = state._replace(fingerprint=rule.fingerprint, tracks={})
    if state.alarm is None or state.phase == "pending":
        return _dropped(state._replace(firing_series={}))
    covered = {
        key: firing._replace(cause="fired", clear_due_at=None)
        for key, firing in state.firing_series.items()
        if (rule.document.event is not None if not key else rule.covers(key))
    }
    if not covered:
        return end(state, at, "rule-changed", "the rule no longer covers it")
    effects = _cancel_clearing(state, state.alarm)
    return state._replace(phase="open", due_at=None, resolution=None, firing_series=covered), effects


def end(state: RuleState, at: datetime, reason: str, why: str) -> tuple[RuleState, Effects]:
    """End the state of a rule that was removed or disabled. `why` completes the message."""
    alarm = state.alarm
    if alarm is None or state.phase == "pending":
        return _dropped(state._replace(firing_series={}))
    payload = messages.resolved_payload(
        alarm.payload,
        reason=reason,
        message=messages.ended_text(alarm.rule, alarm.owner, why),
        opened_at=state.last_opened_at or at,
    )
    return _ended(state), (*_cancel_clearing(state, alarm), Resolve(alarm, at, payload))


def _transition_closed(rule: Rule, state: RuleState, input: EvaluatedInput) -> tuple[RuleState, Effects]:
    """No alarm, or a pending one."""
    if not state.firing_series:
        return _dropped(state)
    key, first = min(state.firing_series.items(), key=lambda item: (item[1].due_at, item[1].since, item[0]))
    begun = state.alarm and (state.alarm.since, messages.series_of_payload(state.alarm.payload)[0])
    if begun == (first.since, key):
        return state, ()
    state, effects = _dropped(state)
    due_at = first.due_at
    if state.last_opened_at is not None:
        due_at = max(due_at, state.last_opened_at + rule.cooldown)
    repeats = state.repeats + 1 if state.last_since == first.since else 0
    alarm, failed = _alarm(rule, input, key, first, repeats)
    if failed is not None:
        effects = (*effects, failed)
    state = state._replace(alarm=alarm, last_since=first.since, repeats=repeats)
    if due_at <= input.at:
        return state._replace(phase="open", last_opened_at=input.at), (*effects, Open(alarm, input.at))
    arm = ArmSustain(alarm.id, "open", due_at, alarm.payload)
    return state._replace(phase="pending", due_at=due_at), (*effects, Pend(alarm), arm)


def _transition_open(rule: Rule, state: RuleState, input: EvaluatedInput) -> tuple[RuleState, Effects]:
    """An open alarm, or one that is clearing."""
    alarm = state.alarm
    assert alarm is not None
    if any(firing.clear_due_at is None for firing in state.firing_series.values()):
        if state.phase == "open":
            return state, ()
        state = state._replace(phase="open", due_at=None, resolution=None)
        return state, (CancelSustain(alarm.id, "clear"),)
    clear_due_ats = (firing.clear_due_at for firing in state.firing_series.values())
    due_at = max((due_at for due_at in clear_due_ats if due_at), default=input.at)
    text = messages.stale_text if input.is_stale else messages.cleared_text
    payload = messages.resolved_payload(
        alarm.payload,
        reason="no-data" if input.is_stale else "cleared",
        message=text(rule, input.owner, input.key, input.value, input.at),
        opened_at=state.last_opened_at or alarm.since,
        key=base_key(input.key),
        value=input.value,
    )
    payload = {**{name: value for name, value in payload.items() if name != "depth"}, **_depth(input)}
    if due_at <= input.at:
        return _ended(state), (*_cancel_clearing(state, alarm), Resolve(alarm, input.at, payload))
    state = state._replace(phase="clearing", due_at=due_at, resolution=payload)
    return state, (ArmSustain(alarm.id, "clear", due_at, payload),)


def _alarm(
    rule: Rule, input: EvaluatedInput, key: str, firing: FiringSeries, repeats: int
) -> tuple[Alarm, MessageFailed | None]:
    owner, instance = input.owner, input.instance
    payload, failed = messages.opened_payload(rule, owner, instance, key, firing)
    payload |= _depth(input)
    alarm = Alarm(
        id=alarm_id(
            rule.name, owner, instance, firing.since, repeats, firing.reevaluated_at, firing.event_id
        ),
        rule=rule.name,
        owner=owner,
        severity=rule.severity,
        since=firing.since,
        payload=payload,
        source_event_id=uuid.UUID(firing.event_id) if firing.event_id else None,
        instance=instance,
    )
    return alarm, failed


def _depth(input: EvaluatedInput) -> dict[str, Any]:
    return {"depth": input.depth} if input.depth else {}


def _cancel_clearing(state: RuleState, alarm: Alarm) -> Effects:
    return (CancelSustain(alarm.id, "clear"),) if state.phase == "clearing" else ()


def _dropped(state: RuleState) -> tuple[RuleState, Effects]:
    if state.alarm is None:
        return state, ()
    effects: Effects = (CancelSustain(state.alarm.id, "open"), DropPending(state.alarm.id))
    return state._replace(phase="ok", alarm=None, due_at=None), effects


def _ended(state: RuleState) -> RuleState:
    return state._replace(phase="ok", alarm=None, due_at=None, resolution=None, firing_series={})

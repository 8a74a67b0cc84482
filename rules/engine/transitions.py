"""From the verdicts about the series of an owner to the one alarm they make.

Guarantee: an alarm opens once before it resolves, and at most one sustain is armed. Every change of the armed
sustain is an effect, in the order: cancel, drop, pend, arm. The identity of an alarm is (rule, owner, since),
where `since` is the beginning of the series that makes it; when that series stops and another still fires, the
pending alarm is another.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import NamedTuple

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


class Turn(NamedTuple):
    """The input under which the verdicts changed."""

    at: datetime
    owner: str
    key: str
    value: Value | None
    is_silence: bool = False


def settle(
    rule: Rule, state: RuleState, firing_series: FiringSeriesByKey, turn: Turn
) -> tuple[RuleState, Effects]:
    """The state and effects that follow from the verdicts as they are now."""
    state = state._replace(firing_series=firing_series, fingerprint=rule.fingerprint)
    if state.phase in ("open", "clearing"):
        return _settle_held(rule, state, turn)
    return _settle_beginning(rule, state, turn)


def advance(state: RuleState, until: datetime) -> tuple[RuleState, Effects]:
    """Realise the deadline that is due at or before an instant, at its nominal time."""
    due_at, alarm = state.due_at, state.alarm
    if due_at is None or due_at > until or alarm is None:
        return state, ()
    if state.phase == "pending":
        opened = state._replace(phase="open", due_at=None, last_opened_at=due_at)
        return opened, (CancelSustain(alarm.id, "open"), Open(alarm, due_at))
    resolve = Resolve(alarm, due_at, state.resolution or {})
    return _ended(state), (CancelSustain(alarm.id, "clear"), resolve)


def adopt(rule: Rule, state: RuleState, at: datetime) -> tuple[RuleState, Effects]:
    """Continue a state that other conditions made: an open alarm is kept until the new rule clears it, and everything
    else is judged anew from the next input. An alarm none of whose series the rule still covers is resolved."""
    if state.fingerprint == rule.fingerprint:
        return state, ()
    state = state._replace(fingerprint=rule.fingerprint, tracks={})
    if state.alarm is None or state.phase == "pending":
        return _dropped(state._replace(firing_series={}))
    held = {
        key: current._replace(cause="fired", clear_due_at=None)
        for key, current in state.firing_series.items()
        if (rule.document.event is not None if not key else rule.covers(key))
    }
    if not held:
        return end(state, at, "rule-changed", "the rule no longer covers it")
    effects: Effects = (CancelSustain(state.alarm.id, "clear"),) if state.phase == "clearing" else ()
    return state._replace(phase="open", due_at=None, resolution=None, firing_series=held), effects


def end(state: RuleState, at: datetime, reason: str, why: str) -> tuple[RuleState, Effects]:
    """Nothing judges the owner any more: the rule is removed or disabled. `why` completes the message."""
    alarm = state.alarm
    if alarm is None or state.phase == "pending":
        return _dropped(state._replace(firing_series={}))
    effects: Effects = (CancelSustain(alarm.id, "clear"),) if state.phase == "clearing" else ()
    payload = messages.resolved_payload(
        alarm.payload,
        reason=reason,
        message=messages.ended_text(alarm.rule, alarm.owner, why),
        opened_at=state.last_opened_at or at,
    )
    return _ended(state), (*effects, Resolve(alarm, at, payload))


def _settle_beginning(rule: Rule, state: RuleState, turn: Turn) -> tuple[RuleState, Effects]:
    if not state.firing_series:
        return _dropped(state)
    key, first = min(state.firing_series.items(), key=lambda item: (item[1].due_at, item[1].since, item[0]))
    begun = state.alarm and (state.alarm.since, state.alarm.payload.get("key", ""))
    if begun == (first.since, key):
        return state, ()
    state, effects = _dropped(state)
    due_at = first.due_at
    if state.last_opened_at is not None:
        due_at = max(due_at, state.last_opened_at + rule.cooldown)
    again = state.again + 1 if state.last_since == first.since else 0
    alarm, failed = _alarm(rule, turn.owner, key, first, again)
    if failed is not None:
        effects = (*effects, failed)
    state = state._replace(alarm=alarm, last_since=first.since, again=again)
    if due_at <= turn.at:
        return state._replace(phase="open", last_opened_at=turn.at), (*effects, Open(alarm, turn.at))
    arm = ArmSustain(alarm.id, "open", due_at, alarm.payload)
    return state._replace(phase="pending", due_at=due_at), (*effects, Pend(alarm), arm)


def _settle_held(rule: Rule, state: RuleState, turn: Turn) -> tuple[RuleState, Effects]:
    alarm = state.alarm
    assert alarm is not None
    if any(current.clear_due_at is None for current in state.firing_series.values()):
        if state.phase == "open":
            return state, ()
        state = state._replace(phase="open", due_at=None, resolution=None)
        return state, (CancelSustain(alarm.id, "clear"),)
    due_at = max(
        (one.clear_due_at for one in state.firing_series.values() if one.clear_due_at), default=turn.at
    )
    say = messages.silent_text if turn.is_silence else messages.cleared_text
    payload = messages.resolved_payload(
        alarm.payload,
        reason="no-data" if turn.is_silence else "cleared",
        message=say(rule, turn.owner, turn.key, turn.value, turn.at),
        opened_at=state.last_opened_at or alarm.since,
        key=turn.key,
        value=turn.value,
    )
    if due_at <= turn.at:
        effects: Effects = (CancelSustain(alarm.id, "clear"),) if state.phase == "clearing" else ()
        return _ended(state), (*effects, Resolve(alarm, turn.at, payload))
    state = state._replace(phase="clearing", due_at=due_at, resolution=payload)
    return state, (ArmSustain(alarm.id, "clear", due_at, payload),)


def _alarm(
    rule: Rule, owner: str, key: str, current: FiringSeries, again: int
) -> tuple[Alarm, MessageFailed | None]:
    payload, failed = messages.opened_payload(rule, owner, key, current)
    alarm = Alarm(
        id=alarm_id(rule.name, owner, current.since, again, current.told_at, current.event_id),
        rule=rule.name,
        owner=owner,
        severity=rule.severity,
        since=current.since,
        payload=payload,
        source_event_id=uuid.UUID(current.event_id) if current.event_id else None,
    )
    return alarm, failed


def _dropped(state: RuleState) -> tuple[RuleState, Effects]:
    if state.alarm is None:
        return state, ()
    effects: Effects = (CancelSustain(state.alarm.id, "open"), DropPending(state.alarm.id))
    return state._replace(phase="ok", alarm=None, due_at=None), effects


def _ended(state: RuleState) -> RuleState:
    return state._replace(phase="ok", alarm=None, due_at=None, resolution=None, firing_series={})

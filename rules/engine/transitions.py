"""Transitions of the one alarm of a rule, an owner and an instance, from the series that fire.

Guarantee: an alarm opens once before it resolves, and at most one sustain is armed. Every change of
the armed sustain is an effect, in this order: cancel, drop, pend, arm. An alarm is identified by
(rule, owner, instance, since), where `since` is when the series that causes it began to fire. If
that series stops while another fires, the pending alarm is replaced by another alarm.

A series joins an open alarm once it has fired for its own `for`, and leaves it once it was clear
for `keep_firing_for`. If the set of series or the severity changes while the alarm is open, this is
a transition of its own (`Changed`), whose message names what fires now. The alarm resolves when no
series is left.

An alarm that an operator resolved leaves its series behind as `is_resolved`: they open no other
alarm before they were clear.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from rules.engine import messages
from rules.engine.effects import (
    Alarm,
    ArmSustain,
    CancelSustain,
    Changed,
    Describe,
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
    is_time: bool = False
    """No input, but an instant that has passed: no other input of that instant can follow."""
    inactive: str = ""
    """Why nothing fires at this instant (`active_in`), if that is the reason."""

    def is_over(self, due_at: datetime | None) -> bool:
        """Whether a deadline has passed. An input at its very instant comes first."""
        return due_at is not None and (due_at < self.at or (self.is_time and due_at == self.at))

    def has_joined(self, firing: FiringSeries) -> bool:
        """Whether a series has fired for long enough."""
        return not firing.is_resolved and (self.is_over(firing.due_at) or firing.due_at == firing.since)


def transition(
    rule: Rule, state: RuleState, firing_series: FiringSeriesByKey, input: EvaluatedInput
) -> tuple[RuleState, Effects]:
    """The state and the effects that follow from the series that fire now."""
    state = state._replace(firing_series=firing_series, fingerprint=rule.fingerprint)
    effects: Effects = ()
    if state.phase in ("open", "clearing"):
        state, effects = _transition_open(rule, state, input)
    if state.phase in ("ok", "pending"):
        state, more = _transition_closed(rule, state, input)
        effects += more
        if more and state.phase == "open":
            # Events that are counted leave by themselves.
            state, more = _transition_open(rule, state, input)
            effects += more
    return state._replace(join_at=_next_join(state, input.at)), effects


def advance(state: RuleState, until: datetime) -> tuple[RuleState, Effects]:
    """Handle the sustain that is due at or before an instant, at its nominal time."""
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
    # Which alarms are open does not depend on the condition of a rule over alarms.
    tracks = {} if rule.composite is None else state.tracks
    state = state._replace(fingerprint=rule.fingerprint, tracks=tracks, expire_at=None, join_at=None)
    if state.alarm is None or state.phase == "pending":
        return _dropped(state._replace(firing_series={}))
    covered = {
        key: firing._replace(cause="fired", clear_due_at=None)
        for key, firing in state.firing_series.items()
        if not firing.is_resolved and (rule.document.datapoint is None if not key else rule.covers(key))
    }
    if not covered:
        return end(state, at, "rule-changed", "the rule no longer covers it")
    effects = _cancel_clearing(state, state.alarm)
    return state._replace(phase="open", due_at=None, resolution=None, firing_series=covered), effects


def end(state: RuleState, at: datetime, reason: str, why: str) -> tuple[RuleState, Effects]:
    """End the state of a rule that was removed or disabled. `why` completes the message."""
    alarm = state.alarm
    state = state._replace(expire_at=None, join_at=None)
    if alarm is None or state.phase == "pending":
        return _dropped(state._replace(firing_series={}))
    payload = messages.resolved_payload(
        alarm.payload,
        reason=reason,
        message=messages.ended_text(alarm.rule, alarm.owner, why),
        opened_at=state.last_opened_at or at,
    )
    ended = _ended(state)._replace(firing_series={})
    return ended, (*_cancel_clearing(state, alarm), Resolve(alarm, at, payload))


def resolve_by_operator(
    state: RuleState, at: datetime, facts: dict[str, Any], *, is_over_events: bool
) -> tuple[RuleState, Effects]:
    """Resolve an open alarm, as an operator asks. `facts` complete the payload of the event.

    Its series must be clear before they open another alarm, and so must a condition over other
    alarms. An event that fires opens another one at once: it is something new.
    """
    alarm = state.alarm
    if alarm is None or state.phase not in ("open", "clearing"):
        return state, ()
    payload = messages.resolved_payload(
        alarm.payload,
        reason="operator",
        message=messages.ended_text(alarm.rule, alarm.owner, f"resolved by {facts.get('who', '')}"),
        opened_at=state.last_opened_at or at,
    )
    kept = {
        key: firing
        if firing.clear_due_at is None and firing.due_at > at
        else firing._replace(is_resolved=True)
        for key, firing in state.firing_series.items()
        if firing.clear_due_at is None or firing.clear_due_at > at
    }
    effects: Effects = (*_cancel_clearing(state, alarm), Resolve(alarm, at, {**payload, **facts}))
    state = state._replace(phase="ok", alarm=None, due_at=None, resolution=None)
    # The tracks of a rule over alarms are named by alarms, those of events have no name.
    is_over_alarms = any(state.tracks)
    return state._replace(firing_series={} if is_over_events and not is_over_alarms else kept), effects


def _transition_closed(rule: Rule, state: RuleState, input: EvaluatedInput) -> tuple[RuleState, Effects]:
    """No alarm, or a pending one."""
    firing_series = {
        key: firing
        for key, firing in state.firing_series.items()
        if not firing.is_resolved and not input.is_over(firing.clear_due_at)
    }
    if not firing_series:
        return _dropped(state)
    key, first = min(firing_series.items(), key=lambda item: (item[1].due_at, item[1].since, item[0]))
    due_at = first.due_at
    if state.last_opened_at is not None:
        due_at = max(due_at, state.last_opened_at + rule.cooldown)
    series = tuple(sorted(name for name, firing in firing_series.items() if firing.due_at <= due_at))
    severity = max(firing_series[name].severity for name in series)
    if state.alarm is not None and (state.alarm.since, state.alarm.lead) == (first.since, key):
        return _updated_pending(rule, state, _described(rule, state.alarm, key, first, series, severity)[0])
    state, effects = _dropped(state)
    repeats = state.repeats + 1 if state.last_since == first.since else 0
    blank = Alarm(
        id=alarm_id(
            *(rule.name, input.owner, input.instance, first.since, repeats),
            *(first.reevaluated_at, first.event_id),
        ),
        rule=rule.name,
        owner=input.owner,
        severity=severity,
        since=first.since,
        payload=_depth(input),
        source_event_id=uuid.UUID(first.event_id) if first.event_id else None,
        instance=input.instance,
    )
    alarm, failed = _described(rule, blank, key, first, series, severity)
    if failed is not None:
        effects = (*effects, failed)
    state = state._replace(alarm=alarm, last_since=first.since, repeats=repeats)
    if due_at <= input.at:
        return state._replace(phase="open", last_opened_at=input.at), (*effects, Open(alarm, input.at))
    arm = ArmSustain(alarm.id, "open", due_at, alarm.payload)
    return state._replace(phase="pending", due_at=due_at), (*effects, Pend(alarm), arm)


def _updated_pending(rule: Rule, state: RuleState, alarm: Alarm) -> tuple[RuleState, Effects]:
    """The pending alarm has the last value, which its event will have."""
    if alarm == state.alarm:
        return state, ()
    assert state.due_at is not None
    arm = ArmSustain(alarm.id, "open", state.due_at, alarm.payload)
    return state._replace(alarm=alarm), (Describe(alarm), arm)


def _transition_open(rule: Rule, state: RuleState, input: EvaluatedInput) -> tuple[RuleState, Effects]:
    """An open alarm, or one that is clearing."""
    alarm = state.alarm
    assert alarm is not None
    kept = {
        key: firing for key, firing in state.firing_series.items() if not input.is_over(firing.clear_due_at)
    }
    members = {key: firing for key, firing in kept.items() if input.has_joined(firing)}
    if any(firing.clear_due_at is None for firing in members.values()):
        effects = _cancel_clearing(state, alarm)
        state = state._replace(phase="open", due_at=None, resolution=None, firing_series=kept)
        changed, more = _changed(rule, state, members, input.at)
        return changed, effects + more
    state = state._replace(firing_series=kept)
    effects = ()
    if rule.count is not None and members:
        # A count has a deadline from its first event on, and its severity may rise until then.
        state, effects = _changed(rule, state, members, input.at)
    due_at = max((firing.clear_due_at or input.at for firing in members.values()), default=input.at)
    payload = state.resolution
    if payload is None or state.phase != "clearing" or input.key or effects:
        assert state.alarm is not None
        alarm = state.alarm
        payload = _resolution(rule, state, alarm, input)
    if due_at <= input.at:
        return _ended(state), (*_cancel_clearing(state, alarm), Resolve(alarm, input.at, payload))
    if state.phase == "clearing" and (due_at, payload) == (state.due_at, state.resolution):
        return state, effects
    state = state._replace(phase="clearing", due_at=due_at, resolution=payload)
    return state, (*effects, ArmSustain(alarm.id, "clear", due_at, payload))


def _resolution(rule: Rule, state: RuleState, alarm: Alarm, input: EvaluatedInput) -> dict[str, Any]:
    """The payload of the `alarm-resolved` event."""
    key = input.key or alarm.lead
    if input.inactive:
        reason, text = "inactive", messages.inactive_text(input.owner, key, input.inactive)
    elif input.is_stale:
        reason, text = "no-data", messages.stale_text(rule, input.owner, key, input.value, input.at)
    else:
        reason, text = "cleared", messages.cleared_text(rule, input.owner, key, input.value, input.at)
    payload = messages.resolved_payload(
        alarm.payload,
        reason=reason,
        message=text,
        opened_at=state.last_opened_at or alarm.since,
        key=base_key(key),
        value=input.value,
    )
    return {**{name: value for name, value in payload.items() if name != "depth"}, **_depth(input)}


def _changed(
    rule: Rule, state: RuleState, members: dict[str, FiringSeries], at: datetime
) -> tuple[RuleState, Effects]:
    """Report that other series are part of the open alarm, or that its severity is another one."""
    alarm = state.alarm
    assert alarm is not None
    series, severity = tuple(sorted(members)), max(firing.severity for firing in members.values())
    firing_members = {
        key: firing for key, firing in members.items() if firing.clear_due_at is None
    } or members
    lead = alarm.lead
    top = max(firing.severity for firing in firing_members.values())
    is_outranked = lead in firing_members and firing_members[lead].severity < top
    if is_outranked or lead not in firing_members:
        ranked = [(firing.since, key) for key, firing in firing_members.items() if firing.severity == top]
        lead = min(ranked)[1]
    cause = firing_members[lead].cause
    if not is_outranked and (series, severity, cause) == (alarm.series, alarm.severity, alarm.cause):
        return state, ()
    described, failed = _described(rule, alarm, lead, firing_members[lead], series, severity)
    number = alarm.changes + 1
    described = replace(described, changes=number, payload={**described.payload, "change": number})
    payload = {
        **described.payload,
        "joined": [key for key in series if key not in alarm.series][: messages.MAX_SERIES],
        "left": [key for key in alarm.series if key not in series][: messages.MAX_SERIES],
        "previous_severity": alarm.severity,
    }
    effects: Effects = () if failed is None else (failed,)
    return state._replace(alarm=described), (*effects, Changed(described, at, payload))


def _described(
    rule: Rule, alarm: Alarm, lead: str, firing: FiringSeries, series: tuple[str, ...], severity: int
) -> tuple[Alarm, MessageFailed | None]:
    """The alarm with the payload that describes what fires."""
    payload, failed = messages.opened_payload(
        rule, alarm.owner, alarm.instance, lead, firing, series, severity
    )
    # An alarm keeps the instant at which it began, whichever series it names.
    payload["since"] = messages.since_text(alarm.since)
    if "depth" in alarm.payload:
        payload["depth"] = alarm.payload["depth"]
    alarm = replace(alarm, payload=payload, severity=severity, lead=lead, series=series, cause=firing.cause)
    return alarm, failed


def _next_join(state: RuleState, at: datetime) -> datetime | None:
    """When a series joins or leaves, if no input comes; None for an alarm with one series."""
    if len(state.firing_series) < 2:
        return None
    instants = {firing.due_at for firing in state.firing_series.values() if not firing.is_resolved}
    instants |= {firing.clear_due_at for firing in state.firing_series.values() if firing.clear_due_at}
    if state.due_at is not None:
        # The sustain comes first, and may leave series that have still to join.
        instants.add(state.due_at)
    return min((instant for instant in instants if instant > at), default=None)


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
    """The state without its alarm; series that fire and have still to join stay."""
    firing_series = {
        key: firing for key, firing in state.firing_series.items() if firing.clear_due_at is None
    }
    return state._replace(phase="ok", alarm=None, due_at=None, resolution=None, firing_series=firing_series)

"""Rules over events and over other alarms: what an event of an owner changes. Pure.

Guarantee: a rule does not react to the events of its own alarms, and an event at the depth of
`cascade_depth.MAX_DEPTH` changes no alarm.
"""

from __future__ import annotations

from collections.abc import Mapping

from rules.engine.cascade_depth import MAX_DEPTH, depth_of, reason_of
from rules.engine.effects import Effects, Suppressed
from rules.engine.evaluate import fires
from rules.engine.firing_entries import EVENTS_KEY, NO_LABELS, continue_firing, firing_entry, is_open_entry
from rules.engine.inputs import EventSeen
from rules.engine.over_alarms import see_transition
from rules.engine.rule import Rule
from rules.engine.state import FiringSeries, RuleState, Track
from rules.engine.transitions import EvaluatedInput, transition
from tocsin.core.instant import instant_of, microseconds_of


def see_event(rule: Rule, state: RuleState, event: EventSeen) -> tuple[RuleState, Effects]:
    depth = depth_of(event.facts)
    see = _see_event if rule.composite is None else see_transition
    after, effects = see(rule, state, event, depth + 1 if depth else 0)
    if depth < MAX_DEPTH or not effects:
        return after, effects
    if rule.composite is not None:
        # It goes on knowing which alarms are open.
        state = state._replace(tracks=after.tracks, fingerprint=after.fingerprint)
    return state, (
        Suppressed(event.at, str(event.facts.get("id") or ""), depth, reason_of(rule.name, depth)),
    )


def _see_event(rule: Rule, state: RuleState, event: EventSeen, depth: int) -> tuple[RuleState, Effects]:
    if event.facts.get("rule") == rule.name:
        # The rule's own events would keep its alarm open forever.
        return state, ()
    activation = rule.activation_of_event(event)
    if rule.where is not None and not rule.where.matches(activation):
        return state, ()
    firing = firing_entry(state, EVENTS_KEY, event.at)
    evaluated = EvaluatedInput(event.at, event.owner, rule.instance_of(event), EVENTS_KEY, None, depth=depth)
    if rule.count is not None:
        return _count_event(rule, state, event, firing, evaluated)
    is_firing = fires(rule, activation, is_open_entry(state, firing))
    if is_firing and rule.inactive_reason(event.at, event.at + rule.sustain) is not None:
        return state, ()
    if is_firing and firing is None:
        begun = _begun_by(rule, event)
        return transition(rule, state, {**state.firing_series, EVENTS_KEY: begun}, evaluated)
    severity = _severity_of(rule, event)
    if is_firing and firing is not None and severity > firing.severity:
        escalated = firing._replace(severity=severity, clear_due_at=None)
        return transition(rule, state, {**state.firing_series, EVENTS_KEY: escalated}, evaluated)
    return continue_firing(rule, state, firing, is_firing, rule.keep_firing_for, evaluated)


def _count_event(
    rule: Rule, state: RuleState, event: EventSeen, firing: FiringSeries | None, evaluated: EvaluatedInput
) -> tuple[RuleState, Effects]:
    """Fires while `count` events that fire lie within `over`. Older ones leave by the passing of time."""
    activation = rule.activation_of_event(event)
    assert rule.count is not None
    if firing is not None and rule.clear is not None and rule.clear.matches(activation):
        # It does not wait for the events to become too old.
        counting = firing._replace(clear_due_at=None)
        return continue_firing(
            rule, state._replace(tracks={}), counting, False, rule.keep_firing_for, evaluated
        )
    if rule.fire.evaluate(activation) is not True or rule.inactive_reason(event.at, event.at) is not None:
        return state, ()
    before = state.tracks.get(EVENTS_KEY)
    oldest = microseconds_of(event.at - rule.count_over)
    instants = [bucket for bucket in (before.buckets if before else ()) if bucket[0] > oldest]
    instants = [*instants, (microseconds_of(event.at),)][-rule.count :]
    track = Track(len(instants), event.at, event.at, tuple(instants))
    state = state.tracking(EVENTS_KEY, track, rule.fingerprint)
    if len(instants) < rule.count:
        return state, ()
    clear_due_at = instant_of(int(instants[0][0])) + rule.count_over + rule.keep_firing_for
    if firing is None:
        begun = _begun_by(rule, event)._replace(clear_due_at=clear_due_at)
    else:
        severity = max(firing.severity, _severity_of(rule, event))
        begun = firing._replace(clear_due_at=clear_due_at, severity=severity)
    return transition(rule, state, {**state.firing_series, EVENTS_KEY: begun}, evaluated)


def _begun_by(rule: Rule, event: EventSeen) -> FiringSeries:
    payload = event.facts.get("payload")
    return FiringSeries(
        since=event.at,
        due_at=event.at + rule.sustain,
        cause="fired",
        value=None,
        labels=NO_LABELS,
        event_id=str(event.facts.get("id") or ""),
        event_type=str(event.facts.get("type") or ""),
        severity=_severity_of(rule, event),
        payload=dict(payload) if isinstance(payload, Mapping) else {},
    )


def _severity_of(rule: Rule, event: EventSeen) -> int:
    severity = event.facts.get("severity")
    return int(severity) if rule.takes_severity_of_event and severity else rule.severity

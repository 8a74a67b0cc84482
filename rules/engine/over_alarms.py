"""Rules over other alarms of the same owner: which of them are open, and what follows. Pure.

Guarantee: the state of such a rule holds the open alarms of the rules that it refers to, as their
transitions left them in the order of the record log. Nothing else is read, so live workers, rule
tests and backtests conclude the same at the same record.

An alarm is known by its rule and instance: at most one alarm of them is open at a time. When the
rule comes into force or changes, `OpenAlarms` replaces what the state knew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rules.engine.effects import Effects
from rules.engine.firing_entries import EVENTS_KEY, NO_LABELS, continue_firing, firing_entry
from rules.engine.inputs import EventSeen, OpenAlarm, OpenAlarms
from rules.engine.rule import Rule
from rules.engine.state import FiringSeries, RuleState, Track, Tracks
from rules.engine.transitions import EvaluatedInput, transition
from schemas.wire.alarm_events import event_type, is_transition
from tocsin.core.instant import instant_text

_OPENED, _RESOLVED = event_type("opened"), event_type("resolved")
_MAX_LISTED = 100
"""Alarms that a payload lists."""


def see_transition(rule: Rule, state: RuleState, event: EventSeen, depth: int) -> tuple[RuleState, Effects]:
    """Evaluate the rule after a transition of an alarm that it refers to."""
    facts = event.facts
    if not is_transition(facts) or facts["rule"] not in rule.references:
        return state, ()
    alarm = alarm_of(facts)
    key = _track_key(alarm)
    if facts["type"] == _OPENED and key not in state.tracks:
        tracks: Tracks = {**state.tracks, key: _track(alarm)}
    elif facts["type"] == _RESOLVED and key in state.tracks:
        tracks = {other: track for other, track in state.tracks.items() if other != key}
    else:
        return state, ()
    evaluated = EvaluatedInput(event.at, event.owner, "", EVENTS_KEY, None, depth=depth)
    cause = (str(facts.get("id") or ""), str(facts["type"]))
    return _evaluate(rule, _with_tracks(rule, state, tracks), evaluated, cause)


def read_open_alarms(rule: Rule, state: RuleState, read: OpenAlarms) -> tuple[RuleState, Effects]:
    """Replace what the state knows by the alarms that are open, and evaluate the rule."""
    known = (alarm for alarm in read.alarms if alarm.rule in rule.references)
    tracks = {_track_key(alarm): _track(alarm) for alarm in known}
    if not tracks and not state.tracks and state.alarm is None:
        return state, ()
    evaluated = EvaluatedInput(read.at, read.owner, "", EVENTS_KEY, None)
    return _evaluate(rule, _with_tracks(rule, state, tracks), evaluated)


def alarm_of(facts: Mapping[str, Any]) -> OpenAlarm:
    """The alarm of a transition; `since` is the instant of the transition."""
    instance = str((facts.get("payload") or {}).get("instance") or "")
    return OpenAlarm(str(facts["rule"]), instance, facts["ts"])


def open_alarms(state: RuleState) -> list[OpenAlarm]:
    """The alarms that the state of a rule over alarms knows to be open, in order."""
    return [
        OpenAlarm(rule, instance, track.at)
        for key, track in sorted(state.tracks.items())
        if key
        for rule, _, instance in [key.partition(" ")]
    ]


def _evaluate(
    rule: Rule, state: RuleState, evaluated: EvaluatedInput, cause: tuple[str, str] = ("", "")
) -> tuple[RuleState, Effects]:
    assert rule.composite is not None
    opened = open_alarms(state)
    is_firing = rule.composite.holds(Counter(alarm.rule for alarm in opened))
    firing = firing_entry(state, EVENTS_KEY, evaluated.at)
    if is_firing and firing is None:
        event_id, event_type = cause
        begun = FiringSeries(
            since=evaluated.at,
            due_at=evaluated.at + rule.sustain,
            cause="fired",
            value=None,
            labels=NO_LABELS,
            event_id=event_id,
            event_type=event_type,
            reevaluated_at=None if event_id else evaluated.at,
            severity=rule.severity,
            payload={"alarms": _listed(opened)},
        )
        return transition(rule, state, {**state.firing_series, EVENTS_KEY: begun}, evaluated)
    return continue_firing(rule, state, firing, is_firing, rule.keep_firing_for, evaluated)


def _listed(alarms: Iterable[OpenAlarm]) -> list[dict[str, str]]:
    """The alarms as the payload of an event has them."""
    return [
        {"rule": alarm.rule, "instance": alarm.instance, "since": instant_text(alarm.since)}
        for alarm in alarms
    ][:_MAX_LISTED]


def _track_key(alarm: OpenAlarm) -> str:
    # Names of rules have no space.
    return f"{alarm.rule} {alarm.instance}"


def _track(alarm: OpenAlarm) -> Track:
    return Track(True, alarm.since, alarm.since)


def _with_tracks(rule: Rule, state: RuleState, tracks: Tracks) -> RuleState:
    return state._replace(tracks=tracks, fingerprint=rule.fingerprint)

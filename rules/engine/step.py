"""The engine: `(rule, state, input) -> (state, effects)`, without a clock and without I/O.

Guarantee: decisions depend on the inputs alone, never on when or how often `pass_time` is called. A
deadline before the instant of an input is handled first, at its nominal time; `pass_time` does the
same if no input comes. An input that changes nothing returns the very same state and no
effects. There is one state and at most one alarm per rule, owner and instance (`Rule.instance_of`). With
`per: owner` it is open while any series of the owner fires.

A series that is not part of an open alarm is evaluated with `fire`, one that is with `clear`
(default: `fire` is false). A condition that fails to evaluate is undecided, and the series stays as
it was. The alarm is pending from the datapoint that fires until `for` has passed for its series. It
is clearing while all its series are clear and `keep_firing_for` runs. An alarm opens only after
`cooldown` has passed since the last one opened, and only if the condition is still true then.

An input at the very instant of a sustain comes first: a condition that stops exactly at the end of
`for` did not hold for that long, as in Prometheus. More inputs of one instant may follow, so a shell
handles a sustain only once it has read beyond its instant.

A value that leaves a window may change the result of the rule. It does so at the instant at which
its bucket expires, before an arrival of the same instant. A window without a result does not fire.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from rules.engine.effects import Effects
from rules.engine.evaluate import fires_on_arrival, fires_when_stale
from rules.engine.firing_entries import continue_firing, firing_entry, is_open_entry
from rules.engine.heartbeat_rule import HeartbeatRule
from rules.engine.heartbeat_step import pass_heartbeat, step_heartbeat
from rules.engine.inputs import Arrival, Input, OpenAlarms, Value, WentStale
from rules.engine.over_alarms import read_open_alarms
from rules.engine.over_events import see_event
from rules.engine.rule import Rule
from rules.engine.state import BLANK, FiringSeries, RuleState, Track
from rules.engine.tracks import counted, next_expiry, track_of
from rules.engine.transitions import EvaluatedInput, adopt, advance, transition
from rules.engine.windows import Window
from tocsin.core.instant import MICROSECOND


def step(rule: Rule, state: RuleState, input: Input) -> tuple[RuleState, Effects]:
    """Evaluate an input.

    The rule must cover its key or event type: `CompiledRules` finds such rules.
    """
    if rule.is_heartbeat:
        assert isinstance(rule, HeartbeatRule)
        return step_heartbeat(rule, state, input) if isinstance(input, Arrival) else (state, ())
    effects: Effects = ()
    if state is not BLANK:
        if state.fingerprint != rule.fingerprint:
            state, effects = advance(state, input.at - MICROSECOND)
            state, more = adopt(rule, state, input.at)
            effects += more
        elif state.due_at is not None or state.join_at is not None or state.expire_at is not None:
            state, effects = _pass_time(rule, input.owner, state, input.at, input.at - MICROSECOND)
    if isinstance(input, Arrival):
        state, more = _arrive(rule, state, input)
    elif isinstance(input, WentStale):
        state, more = _go_stale(rule, state, input)
    elif isinstance(input, OpenAlarms):
        state, more = read_open_alarms(rule, state, input)
    else:
        state, more = see_event(rule, state, input)
    return state, effects + more if effects else more


def pass_time(rule: Rule, owner: str, state: RuleState, until: datetime) -> tuple[RuleState, Effects]:
    """Handle everything that is due at or before an instant without an input, in order."""
    if isinstance(rule, HeartbeatRule):
        return pass_heartbeat(rule, owner, state, until)
    if state.expire_at is not None and state.fingerprint != rule.fingerprint:
        # An apply changes the states that have an alarm. The others still have values of the rule before.
        state, effects = advance(state, until)
        state, more = adopt(rule, state, until)
        return state, effects + more
    return _pass_time(rule, owner, state, until, until)


def _pass_time(
    rule: Rule, owner: str, state: RuleState, until: datetime, sustain_until: datetime
) -> tuple[RuleState, Effects]:
    """At one instant values leave windows first, then sustains are due, then series join and leave."""
    effects: Effects = ()
    while True:
        expire_at, due_at, join_at = state.expire_at, state.due_at, state.join_at
        if expire_at is not None and expire_at <= min(until, due_at or until, join_at or until):
            state, more = _expire_all(rule, owner, state, expire_at)
        elif due_at is not None and due_at <= min(sustain_until, join_at or sustain_until):
            state, more = advance(state, due_at)
        elif join_at is not None and join_at <= sustain_until:
            passed = EvaluatedInput(join_at, owner, "", "", None, is_time=True)
            state, more = transition(rule, state, state.firing_series, passed)
        else:
            return state, effects
        effects += more


def _expire_all(rule: Rule, owner: str, state: RuleState, at: datetime) -> tuple[RuleState, Effects]:
    effects: Effects = ()
    for key in sorted(state.tracks) if len(state.tracks) > 1 else state.tracks:
        state, more = _expire(rule, owner, state, key, at)
        effects += more
    return state.expiring(next_expiry(rule, state)), effects


def _expire(rule: Rule, owner: str, state: RuleState, key: str, at: datetime) -> tuple[RuleState, Effects]:
    """Values of a series have left its window."""
    track = state.tracks[key]
    assert rule.window is not None
    buckets = rule.window.trimmed(track.buckets, at)
    if buckets is track.buckets:
        return state, ()
    track = track._replace(buckets=buckets)
    state = state.tracking(key, track, rule.fingerprint, state.expire_at)
    last = Arrival(at, 0, owner, key, track.value, track.ts, track.labels)
    return _evaluate_series(rule, state, last, None, track, is_expiry=True)


def _arrive(rule: Rule, state: RuleState, arrival: Arrival) -> tuple[RuleState, Effects]:
    if arrival.is_late and rule.reads_values:
        return _arrive_late(rule, state, arrival)
    if rule.where is not None and not rule.covers_series(arrival):
        firing = firing_entry(state, arrival.key, arrival.at) if state.firing_series else None
        return _leave(rule, state, arrival, firing)
    if not rule.needs_track:
        return _evaluate_series(rule, state, arrival, None, None)
    before = state.tracks.get(arrival.key)
    track = track_of(rule, before, arrival)
    state = state.tracking(arrival.key, track, rule.fingerprint, state.expire_at)
    state, effects = _evaluate_series(rule, state, arrival, before, track)
    if rule.window is not None and state.expire_at is None:
        state = state.expiring(next_expiry(rule, state))
    return state, effects


def _arrive_late(rule: Rule, state: RuleState, arrival: Arrival) -> tuple[RuleState, Effects]:
    """A value that is older than the newest one proves that the series has data, and nothing else."""
    firing = firing_entry(state, arrival.key, arrival.at) if state.firing_series else None
    if firing is None or firing.cause != "no_data":
        return state, ()
    evaluated = _evaluated(rule, arrival, arrival.value)
    return continue_firing(rule, state, firing, False, rule.keep_firing_for, evaluated)


def _evaluate_series(
    rule: Rule,
    state: RuleState,
    arrival: Arrival,
    before: Track | None,
    track: Track | None,
    *,
    is_expiry: bool = False,
) -> tuple[RuleState, Effects]:
    """Evaluate the conditions for a datapoint, or, when a window expires, for the one that came last."""
    firing = firing_entry(state, arrival.key, arrival.at) if state.firing_series else None
    value: Value | None = arrival.value
    if rule.window is not None and track is not None:
        # Values that leave the window up to this instant were handled before (`_pass_time`).
        value = _amount(rule.window, track)
    had_no_data = firing is not None and firing.cause == "no_data"
    is_open = firing is not None and is_open_entry(state, firing)
    is_firing = fires_on_arrival(rule, arrival, value, before, is_open)
    if rule.window is not None and value is None:
        is_firing = False
    if rule.samples is not None and track is not None and is_firing is not None:
        state, is_firing = _sample(rule, state, arrival, track, is_firing, is_open)
    if is_firing is None and had_no_data:
        # Undecided, but the series has data again.
        is_firing = False
    inactive = rule.inactive_reason(
        arrival.at, arrival.at + rule.sustain if firing is None else firing.due_at
    )
    if inactive is not None:
        is_firing = False
    if not is_firing and (firing is None or (is_expiry and had_no_data)):
        # Values that leave a window are no data.
        return state, ()
    if is_firing and (firing is None or had_no_data):
        return _begin(rule, state, arrival, value, rule.sustain, firing)
    if is_firing and firing is not None and not firing.is_resolved and firing.clear_due_at is None:
        return _follow(rule, state, arrival, value, firing)
    evaluated = _evaluated(rule, arrival, value)._replace(inactive=inactive or "")
    return continue_firing(rule, state, firing, is_firing, rule.keep_firing_for, evaluated)


def _amount(window: Window, track: Track, at: datetime | None = None) -> float | None:
    return window.amount(track.buckets, counted(track.value, track.resets), track.ts, at)


def _follow(
    rule: Rule, state: RuleState, arrival: Arrival, value: Value | None, firing: FiringSeries
) -> tuple[RuleState, Effects]:
    """A series goes on firing: a pending alarm has its last value, an open one its level."""
    severity = rule.severity_of(value)
    if state.phase == "pending" or firing.due_at > arrival.at:
        labels = rule.types.labels(arrival.key, arrival.labels)
        followed = firing._replace(value=value, labels=labels, severity=severity)
    elif severity != firing.severity and rule.levels:
        followed = firing._replace(value=value, severity=severity)
    else:
        return state, ()
    if followed == firing:
        return state, ()
    series = {**state.firing_series, arrival.key: followed}
    return transition(rule, state, series, _evaluated(rule, arrival, value))


def _sample(
    rule: Rule, state: RuleState, arrival: Arrival, track: Track, is_firing: bool, is_open: bool
) -> tuple[RuleState, bool]:
    """Whether enough of the last datapoints fire. `clear` decides about an open alarm, if there is one."""
    assert rule.samples is not None
    fired = (track.fired + ("1" if is_firing else "0"))[-rule.samples.of :]
    track = track._replace(fired=fired)
    state = state.tracking(arrival.key, track, rule.fingerprint, state.expire_at)
    if is_open and rule.clear is not None:
        return state, is_firing
    return state, fired.count("1") >= rule.samples.at_least


def _go_stale(rule: Rule, state: RuleState, went_stale: WentStale) -> tuple[RuleState, Effects]:
    firing = firing_entry(state, went_stale.key, went_stale.at)
    if not rule.covers_series(went_stale):
        return _leave(rule, state, went_stale, firing)
    value: Value | None = went_stale.value
    if rule.window is not None:
        track = state.tracks.get(went_stale.key)
        value = None if track is None else _amount(rule.window, track, went_stale.at)
    evaluated = _evaluated(rule, went_stale, value)
    if rule.reads_freshness:
        is_firing = fires_when_stale(rule, went_stale, value, is_open_entry(state, firing))
        if is_firing and firing is None:
            return _begin(rule, state, went_stale, value, rule.sustain)
        return continue_firing(rule, state, firing, is_firing, rule.keep_firing_for, evaluated)
    if rule.no_data == "keep":
        return state, ()
    if rule.no_data == "alarm" and firing is None:
        return _begin(rule, state, went_stale, value, rule.no_data_for)
    return continue_firing(rule, state, firing, rule.no_data == "alarm", rule.no_data_for, evaluated)


def _begin(
    rule: Rule,
    state: RuleState,
    input: Arrival | WentStale,
    value: Value | None,
    sustain: timedelta,
    before: FiringSeries | None = None,
) -> tuple[RuleState, Effects]:
    """A series begins to fire. `before`: it had no data, which was firing already."""
    if before is not None and state.phase not in ("open", "clearing"):
        before = None
    is_stale = isinstance(input, WentStale)
    due_at = input.at + sustain
    begun = FiringSeries(
        since=input.at if before is None else before.since,
        # It stays part of the alarm that the missing data opened.
        due_at=due_at if before is None else min(due_at, before.due_at),
        cause="no_data" if is_stale and not rule.reads_freshness else "fired",
        value=value,
        labels=rule.types.labels(input.key, input.labels),
        age_s=(input.at - input.last_arrival).total_seconds() if isinstance(input, WentStale) else 0.0,
        reevaluated_at=input.reevaluated_at if isinstance(input, WentStale) else None,
        severity=rule.severity_of(value),
        first_value=value,
        is_resolved=before is not None and before.is_resolved,
    )
    series = {**state.firing_series, input.key: begun}
    return transition(rule, state, series, _evaluated(rule, input, value))


def _leave(
    rule: Rule, state: RuleState, input: Arrival | WentStale, firing: FiringSeries | None
) -> tuple[RuleState, Effects]:
    """The labels changed, and a series that the rule no longer covers counts as clear."""
    return continue_firing(
        rule, state, firing, False, rule.keep_firing_for, _evaluated(rule, input, input.value)
    )


def _evaluated(rule: Rule, input: Arrival | WentStale, value: Value | None) -> EvaluatedInput:
    instance = input.key if rule.is_per_series else ""
    return EvaluatedInput(input.at, input.owner, instance, input.key, value, isinstance(input, WentStale))

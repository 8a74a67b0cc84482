"""The engine: `(rule, state, input) -> (state, effects)`, without a clock and without I/O.

Guarantee: decisions depend on the inputs alone, never on when or how often `advance` is called. A
deadline at or before the instant of an input is handled first, at its nominal time; `advance` does
the same if no input comes. An input that changes nothing returns the very same state and no
effects. There is one state and at most one alarm per rule, owner and instance (`Rule.instance_of`). With
`per: owner` it is open while any series of the owner fires.

A series that is not part of an open alarm is evaluated with `fire`, one that is with `clear`
(default: `fire` is false). A condition that fails to evaluate is undecided, and the series stays as
it was. The alarm is pending from the datapoint that fires until `for` has passed for its series. It
is clearing while all its series are clear and `keep_firing_for` runs. An alarm opens only after
`cooldown` has passed since the last one opened, and only if the condition is still true then.

Why a deadline comes before an input of the same instant: a condition that was true for exactly
`for` was true for long enough. The clock fires up to the last arrival that it knows, and must
decide alike.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from rules.engine.cascade_depth import MAX_DEPTH, depth_of, reason_of
from rules.engine.effects import Effects, Suppressed
from rules.engine.evaluate import fires, fires_on_arrival, fires_when_stale
from rules.engine.inputs import Arrival, EventSeen, Input, Value, WentStale
from rules.engine.rule import Rule
from rules.engine.state import BLANK, FiringSeries, RuleState, Track
from rules.engine.transitions import EvaluatedInput, adopt, advance, transition

_NO_LABELS: dict[str, str] = {}
_EVENTS_KEY = ""
"""The key of the entry in `firing_series` that stands for the events of an owner."""


def step(rule: Rule, state: RuleState, input: Input) -> tuple[RuleState, Effects]:
    """Evaluate an input.

    The rule must cover its key or event type: `CompiledRules` finds such rules.
    """
    effects: Effects = ()
    if state.due_at is not None and state.due_at <= input.at:
        state, effects = advance(state, input.at)
    if state is not BLANK and state.fingerprint != rule.fingerprint:
        state, more = adopt(rule, state, input.at)
        effects += more
    if isinstance(input, Arrival):
        state, more = _arrive(rule, state, input)
    elif isinstance(input, WentStale):
        state, more = _go_stale(rule, state, input)
    else:
        state, more = _see_within_depth(rule, state, input)
    return state, effects + more if effects else more


def _arrive(rule: Rule, state: RuleState, arrival: Arrival) -> tuple[RuleState, Effects]:
    firing = _firing_series(state, arrival.key, arrival.at) if state.firing_series else None
    if rule.where is not None and not rule.covers_series(arrival):
        return _leave(rule, state, arrival, firing)
    value: Value | None = arrival.value
    before = None
    if rule.needs_track:
        before = state.tracks.get(arrival.key)
        track = _track(rule, before, arrival)
        state = state.tracking(arrival.key, track, rule.fingerprint)
        if rule.window is not None:
            value = rule.window.amount(track.buckets, track.value, track.at, arrival.at)
    had_no_data = firing is not None and firing.cause == "no_data"
    is_open = firing is not None and _is_open(state, firing)
    is_firing = fires_on_arrival(rule, arrival, value, before, is_open)
    if is_firing is None and had_no_data:
        # Undecided, but the series has data again.
        is_firing = False
    if not is_firing and firing is None:
        return state, ()
    if is_firing and (firing is None or had_no_data):
        return _begin(rule, state, arrival, value, rule.sustain)
    return _continue(rule, state, firing, is_firing, rule.keep_firing_for, _evaluated(rule, arrival, value))


def _go_stale(rule: Rule, state: RuleState, went_stale: WentStale) -> tuple[RuleState, Effects]:
    firing = _firing_series(state, went_stale.key, went_stale.at)
    if not rule.covers_series(went_stale):
        return _leave(rule, state, went_stale, firing)
    value: Value | None = went_stale.value
    track = state.tracks.get(went_stale.key)
    if rule.window is not None:
        value = (
            None if track is None else rule.window.amount(track.buckets, track.value, track.at, went_stale.at)
        )
    evaluated = _evaluated(rule, went_stale, value)
    if rule.reads_freshness:
        is_firing = fires_when_stale(rule, went_stale, value, _is_open(state, firing))
        if is_firing and firing is None:
            return _begin(rule, state, went_stale, value, rule.sustain)
        return _continue(rule, state, firing, is_firing, rule.keep_firing_for, evaluated)
    if rule.no_data == "keep":
        return state, ()
    if rule.no_data == "alarm" and firing is None:
        return _begin(rule, state, went_stale, value, rule.no_data_for)
    return _continue(rule, state, firing, rule.no_data == "alarm", rule.no_data_for, evaluated)


def _see_within_depth(rule: Rule, state: RuleState, event: EventSeen) -> tuple[RuleState, Effects]:
    depth = depth_of(event.facts)
    after, effects = _see_event(rule, state, event, depth + 1 if depth else 0)
    if depth < MAX_DEPTH or not effects:
        return after, effects
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
    firing = _firing_series(state, _EVENTS_KEY, event.at)
    is_firing = fires(rule, activation, _is_open(state, firing))
    evaluated = EvaluatedInput(event.at, event.owner, rule.instance_of(event), _EVENTS_KEY, None, depth=depth)
    if is_firing and firing is None:
        begun = FiringSeries(
            since=event.at,
            due_at=event.at + rule.sustain,
            cause="fired",
            value=None,
            labels=_NO_LABELS,
            event_id=str(event.facts.get("id") or ""),
            event_type=str(event.facts.get("type") or ""),
        )
        return transition(rule, state, {**state.firing_series, _EVENTS_KEY: begun}, evaluated)
    return _continue(rule, state, firing, is_firing, rule.keep_firing_for, evaluated)


def _begin(
    rule: Rule, state: RuleState, input: Arrival | WentStale, value: Value | None, sustain: timedelta
) -> tuple[RuleState, Effects]:
    """A series begins to fire."""
    is_stale = isinstance(input, WentStale)
    begun = FiringSeries(
        since=input.at,
        due_at=input.at + sustain,
        cause="no_data" if is_stale and not rule.reads_freshness else "fired",
        value=value,
        labels=rule.types.labels(input.key, input.labels),
        age_s=(input.at - input.last_arrival).total_seconds() if isinstance(input, WentStale) else 0.0,
        reevaluated_at=input.reevaluated_at if isinstance(input, WentStale) else None,
    )
    return transition(rule, state, {**state.firing_series, input.key: begun}, _evaluated(rule, input, value))


def _continue(
    rule: Rule,
    state: RuleState,
    firing: FiringSeries | None,
    is_firing: bool | None,
    clear_for: timedelta,
    evaluated: EvaluatedInput,
) -> tuple[RuleState, Effects]:
    """A series that fires was evaluated again.

    It stays as it is if the conditions are undecided.
    """
    if firing is None or is_firing is None or is_firing == (firing.clear_due_at is None):
        return state, ()
    if is_firing:
        firing_again = firing._replace(clear_due_at=None)
        return transition(rule, state, {**state.firing_series, evaluated.key: firing_again}, evaluated)
    if state.phase == "pending":
        others = {key: other for key, other in state.firing_series.items() if key != evaluated.key}
        return transition(rule, state, others, evaluated)
    cleared = firing._replace(clear_due_at=evaluated.at + clear_for)
    return transition(rule, state, {**state.firing_series, evaluated.key: cleared}, evaluated)


def _leave(
    rule: Rule, state: RuleState, input: Arrival | WentStale, firing: FiringSeries | None
) -> tuple[RuleState, Effects]:
    """The labels changed, and a series that the rule no longer covers counts as clear."""
    return _continue(rule, state, firing, False, rule.keep_firing_for, _evaluated(rule, input, input.value))


def _firing_series(state: RuleState, key: str, at: datetime) -> FiringSeries | None:
    """The entry of a series that fires.

    None once it was clear for long enough, even if others keep the alarm open.
    """
    firing = state.firing_series.get(key)
    if firing is None or (firing.clear_due_at is not None and firing.clear_due_at <= at):
        return None
    return firing


def _is_open(state: RuleState, firing: FiringSeries | None) -> bool:
    """Whether `clear` decides.

    A series that only had no data has not met `fire`, so `fire` decides.
    """
    return firing is not None and firing.cause == "fired" and state.phase in ("open", "clearing")


def _track(rule: Rule, before: Track | None, arrival: Arrival) -> Track:
    if rule.window is None:
        return Track(arrival.value, arrival.at)
    buckets = () if before is None else before.buckets
    return Track(arrival.value, arrival.at, rule.window.add(buckets, arrival.value, arrival.at))


def _evaluated(rule: Rule, input: Arrival | WentStale, value: Value | None) -> EvaluatedInput:
    instance = input.key if rule.is_per_series else ""
    return EvaluatedInput(input.at, input.owner, instance, input.key, value, isinstance(input, WentStale))

"""The engine: `(rule, state, input) -> (state, effects)`, without a clock and without I/O.

Guarantee: verdicts depend on the inputs alone, never on when or how often anybody looked. A deadline at or
before the instant of an input is realised first, at its nominal time; `advance` does the same when no input
comes. An input that changes nothing gives back the very same state and no effects. There is one alarm per rule
and owner: it holds while any series of the owner fires.

How a series is judged: outside of an open alarm by `fire`, as part of one by `clear` (default: `fire` is false). A
condition that fails to evaluate is neither, so the verdict stays. The alarm is pending from the datapoint that fires
until `for` has passed for its series; it is clearing while all its series are clear and `keep_firing_for` runs. An
opening waits for the end of `cooldown` after the last one, and then happens if the condition still holds.

Why a deadline goes before an input of the same instant: what was true for exactly `for` has been true for long
enough, and the clock, which fires up to the last arrival it knows of, must come to the same current.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from rules.engine.effects import Effects
from rules.engine.evaluate import fires, fires_on_arrival, fires_on_silence
from rules.engine.inputs import Arrival, EventSeen, Input, Value, WentStale
from rules.engine.rule import Rule
from rules.engine.state import BLANK, FiringSeries, RuleState, Track
from rules.engine.transitions import Turn, adopt, advance, settle

_NO_LABELS: dict[str, str] = {}
_OF_EVENTS = ""
"""The key under which the verdict about an owner's events is kept."""


def step(rule: Rule, state: RuleState, given: Input) -> tuple[RuleState, Effects]:
    """The rule must cover the key of a datapoint, or the type of an event: `CompiledRules` finds the rules that do."""
    effects: Effects = ()
    if state.due_at is not None and state.due_at <= given.at:
        state, effects = advance(state, given.at)
    if state is not BLANK and state.fingerprint != rule.fingerprint:
        state, more = adopt(rule, state, given.at)
        effects += more
    if isinstance(given, Arrival):
        state, more = _arrived(rule, state, given)
    elif isinstance(given, WentStale):
        state, more = _went_stale(rule, state, given)
    else:
        state, more = _seen(rule, state, given)
    return state, effects + more if effects else more


def _arrived(rule: Rule, state: RuleState, given: Arrival) -> tuple[RuleState, Effects]:
    current = _standing(state, given.key, given.at) if state.firing_series else None
    if rule.where is not None and not rule.is_about(given):
        return _left(rule, state, given, current)
    value: Value | None = given.value
    before = None
    if rule.looks_back:
        before = state.tracks.get(given.key)
        track = _track(rule, before, given)
        state = state.tracking(given.key, track, rule.fingerprint)
        if rule.window is not None:
            value = rule.window.amount(track.buckets, track.value, track.at, given.at)
    was_silent = current is not None and current.cause == "no_data"
    is_held = current is not None and _is_held(state, current)
    firing = fires_on_arrival(rule, given, value, before, is_held)
    if firing is None and was_silent:
        # Whatever it is, it is not silent any more.
        firing = False
    if not firing and current is None:
        return state, ()
    if firing and (current is None or was_silent):
        return _began(rule, state, given, value, rule.sustain)
    return _continued(rule, state, current, firing, rule.keep_firing_for, _turn(given, value))


def _went_stale(rule: Rule, state: RuleState, given: WentStale) -> tuple[RuleState, Effects]:
    current = _standing(state, given.key, given.at)
    if not rule.is_about(given):
        return _left(rule, state, given, current)
    value: Value | None = given.value
    track = state.tracks.get(given.key)
    if rule.window is not None:
        value = None if track is None else rule.window.amount(track.buckets, track.value, track.at, given.at)
    turn = _turn(given, value)
    if rule.reads_silence:
        firing = fires_on_silence(rule, given, value, _is_held(state, current))
        if firing and current is None:
            return _began(rule, state, given, value, rule.sustain)
        return _continued(rule, state, current, firing, rule.keep_firing_for, turn)
    if rule.no_data == "keep":
        return state, ()
    if rule.no_data == "alarm" and current is None:
        return _began(rule, state, given, value, rule.no_data_for)
    return _continued(rule, state, current, rule.no_data == "alarm", rule.no_data_for, turn)


def _seen(rule: Rule, state: RuleState, given: EventSeen) -> tuple[RuleState, Effects]:
    if given.facts.get("rule") == rule.name:
        # Its own alarm's events: they would hold the alarm for ever.
        return state, ()
    activation = rule.activation_of_event(given)
    if rule.where is not None and not rule.where.matches(activation):
        return state, ()
    current = _standing(state, _OF_EVENTS, given.at)
    firing = fires(rule, activation, _is_held(state, current))
    turn = Turn(given.at, given.owner, _OF_EVENTS, None)
    if firing and current is None:
        began = FiringSeries(
            since=given.at,
            due_at=given.at + rule.sustain,
            cause="fired",
            value=None,
            labels=_NO_LABELS,
            event_id=str(given.facts.get("id") or ""),
            event_type=str(given.facts.get("type") or ""),
        )
        return settle(rule, state, {**state.firing_series, _OF_EVENTS: began}, turn)
    return _continued(rule, state, current, firing, rule.keep_firing_for, turn)


def _began(
    rule: Rule, state: RuleState, given: Arrival | WentStale, value: Value | None, sustain: timedelta
) -> tuple[RuleState, Effects]:
    is_silence = isinstance(given, WentStale)
    began = FiringSeries(
        since=given.at,
        due_at=given.at + sustain,
        cause="no_data" if is_silence and not rule.reads_silence else "fired",
        value=value,
        labels=rule.types.labels(given.key, given.labels),
        age_s=(given.at - given.last_arrival).total_seconds() if isinstance(given, WentStale) else 0.0,
        told_at=given.told_at if isinstance(given, WentStale) else None,
    )
    return settle(rule, state, {**state.firing_series, given.key: began}, _turn(given, value))


def _continued(
    rule: Rule,
    state: RuleState,
    current: FiringSeries | None,
    firing: bool | None,
    after: timedelta,
    turn: Turn,
) -> tuple[RuleState, Effects]:
    """A series that has a current, judged again; it stays what it is when the conditions do not say."""
    if current is None or firing is None or firing == (current.clear_due_at is None):
        return state, ()
    if firing:
        return settle(
            rule, state, {**state.firing_series, turn.key: current._replace(clear_due_at=None)}, turn
        )
    if state.phase == "pending":
        others = {key: other for key, other in state.firing_series.items() if key != turn.key}
        return settle(rule, state, others, turn)
    cleared = current._replace(clear_due_at=turn.at + after)
    return settle(rule, state, {**state.firing_series, turn.key: cleared}, turn)


def _left(
    rule: Rule, state: RuleState, given: Arrival | WentStale, current: FiringSeries | None
) -> tuple[RuleState, Effects]:
    """Its labels changed, and the rule is not about the series any more: as if it were clear."""
    return _continued(rule, state, current, False, rule.keep_firing_for, _turn(given, given.value))


def _standing(state: RuleState, key: str, at: datetime) -> FiringSeries | None:
    """The verdict about a series; one that was clear for long enough is over, even if others hold the alarm."""
    current = state.firing_series.get(key)
    if current is None or (current.clear_due_at is not None and current.clear_due_at <= at):
        return None
    return current


def _is_held(state: RuleState, current: FiringSeries | None) -> bool:
    """Whether `clear` decides. A series that was only silent has not met `fire`, so `fire` does."""
    return current is not None and current.cause == "fired" and state.phase in ("open", "clearing")


def _track(rule: Rule, before: Track | None, given: Arrival) -> Track:
    if rule.window is None:
        return Track(given.value, given.at)
    buckets = () if before is None else before.buckets
    return Track(given.value, given.at, rule.window.add(buckets, given.value, given.at))


def _turn(given: Arrival | WentStale, value: Value | None) -> Turn:
    return Turn(given.at, given.owner, given.key, value, isinstance(given, WentStale))

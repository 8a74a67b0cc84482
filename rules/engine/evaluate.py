"""Evaluates the conditions of a rule for one input.

Guarantee: apart from `value`, and when stale `age` and `freshness`, only the variables that the rule
reads are bound. `previous` and `rate` do not exist at the first arrival, and `value` does not exist
while a window has no result. A condition that needs a missing variable evaluates to None
(undecided), which is not an error. When a series becomes stale, `value` is its
last one, `freshness` is "stale", and `previous` and `rate` do not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from rules.engine.inputs import Arrival, Value, WentStale
from rules.engine.rule import Rule
from rules.engine.state import Track
from rules.language.cel.condition import ConditionInput
from schemas.values.series_key import base_key

SeriesInput = Arrival | WentStale


def fires_on_arrival(
    rule: Rule, arrival: Arrival, value: Value | None, before: Track | None, is_open: bool
) -> bool | None:
    """Whether the series fires after a datapoint; None if the conditions are undecided.

    `is_open`: the series is part of an open alarm. `before` is the track before the datapoint.
    """
    variables: dict[str, Any] = {} if value is None else {"value": as_double(value)}
    is_error_expected = value is None
    if rule.reads_more_than_value:
        variables.update(rule.constants_on_arrival)
        for name in rule.names:
            read = _READERS.get(name)
            if read is not None:
                variables[name] = read(rule, arrival)
        if rule.reads_previous:
            has_rate = before is not None and _bind_previous(rule, arrival, before, variables)
            is_error_expected = is_error_expected or not has_rate
    return fires(rule, variables, is_open, is_error_expected)


def fires_when_stale(rule: Rule, went_stale: WentStale, value: Value | None, is_open: bool) -> bool | None:
    """Whether the series fires when it becomes stale; None if the conditions are undecided."""
    variables: dict[str, Any] = {
        name: read(rule, went_stale) for name, read in _READERS.items() if name in rule.names
    }
    age = went_stale.at - went_stale.last_arrival
    # Severities keep their values; `age` and `freshness` are replaced.
    variables |= rule.constants_on_arrival | {"age": age, "freshness": "stale"}
    if value is not None:
        variables["value"] = as_double(value)
    # Rules that need a track read `previous`, `rate` or a window, which are missing here.
    return fires(rule, variables, is_open, rule.needs_track)


def fires(
    rule: Rule, variables: ConditionInput, is_open: bool, is_error_expected: bool = False
) -> bool | None:
    """Whether the rule fires; None if the condition cannot be evaluated.

    While the alarm is open, `clear` decides if the rule has one; otherwise `fire` does. After None,
    the caller leaves the state of the series as it is.
    """
    if not is_open or rule.clear is None:
        return rule.fire.evaluate(variables, is_error_expected)
    is_clear = rule.clear.evaluate(variables, is_error_expected)
    return None if is_clear is None else not is_clear


def as_double(value: Value) -> Value:
    """A number as conditions see it: JSON has one sort of numbers, whether 70 or 70.0 was sent."""
    return float(value) if type(value) is int else value


def increase(rule: Rule, arrival: Arrival, before: Track) -> float | None:
    """The change since the previous value; None unless both are numbers.

    A counter that falls was reset, and has risen from 0 since then.
    """
    if isinstance(arrival.value, str) or isinstance(before.value, str):
        return None
    if arrival.value < before.value and rule.types.is_counter(arrival.key):
        return float(arrival.value)
    return float(arrival.value - before.value)


def _bind_previous(rule: Rule, arrival: Arrival, before: Track, variables: dict[str, Any]) -> bool:
    """Bind `previous`, and `rate` if it can be computed. Returns whether `rate` was bound.

    A rate needs two numbers at two different instants of the producer.
    """
    variables["previous"] = as_double(before.value)
    elapsed_s = (arrival.ts - before.ts).total_seconds()
    risen = increase(rule, arrival, before)
    if elapsed_s <= 0 or risen is None:
        return False
    variables["rate"] = risen / elapsed_s
    return True


def _arrived_at(rule: Rule, input: SeriesInput) -> datetime:
    return input.at if isinstance(input, Arrival) else input.last_arrival


_READERS: dict[str, Callable[[Rule, SeriesInput], object]] = {
    "owner": lambda rule, input: input.owner,
    "key": lambda rule, input: base_key(input.key),
    "labels": lambda rule, input: rule.types.labels(input.key, input.labels),
    "ts": lambda rule, input: input.ts,
    "arrived_at": _arrived_at,
    "unit": lambda rule, input: rule.types.unit(input.key),
}

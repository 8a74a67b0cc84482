"""Asking the conditions of a rule about one input.

Guarantee: only the variables that the rule reads are bound. `previous` and `rate` do not exist at the first
arrival, and `value` not while a window has nothing to say: a condition that needs them then says nothing, and
that is no error. When a series goes stale, `value` is its last one, `freshness` is "stale", and `previous` and
`rate` do not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from rules.engine.inputs import Arrival, Value, WentStale
from rules.engine.rule import Rule
from rules.engine.state import Track
from rules.language.cel.condition import ConditionInput

Series = Arrival | WentStale


def fires_on_arrival(
    rule: Rule, given: Arrival, value: Value | None, before: Track | None, is_held: bool
) -> bool | None:
    """Whether the series fires after a datapoint; None when the conditions do not say. `is_held`: it is part of an
    open alarm, so `clear` is asked and not `fire`."""
    variables: dict[str, Any] = {} if value is None else {"value": value}
    is_error_expected = value is None
    if rule.reads_more:
        variables.update(rule.when_fresh)
        for name in rule.names:
            read = _READERS.get(name)
            if read is not None:
                variables[name] = read(rule, given)
        if rule.reads_before:
            is_error_expected = before is None or not _bind_before(given, before, variables)
    return fires(rule, variables, is_held, is_error_expected)


def fires_on_silence(rule: Rule, given: WentStale, value: Value | None, is_held: bool) -> bool | None:
    variables: dict[str, Any] = {
        name: read(rule, given) for name, read in _READERS.items() if name in rule.names
    }
    variables |= rule.when_fresh | {"age": given.at - given.last_arrival, "freshness": "stale"}
    if value is not None:
        variables["value"] = value
    return fires(rule, variables, is_held, rule.looks_back)


def fires(rule: Rule, facts: ConditionInput, is_held: bool, is_error_expected: bool = False) -> bool | None:
    """An error is neither: the verdict stays what it was."""
    if not is_held or rule.clear is None:
        return rule.fire.evaluate(facts, is_error_expected)
    is_clear = rule.clear.evaluate(facts, is_error_expected)
    return None if is_clear is None else not is_clear


def _bind_before(given: Arrival, before: Track, variables: dict[str, Any]) -> bool:
    """Whether there is a rate: two numbers, at two instants."""
    variables["previous"] = before.value
    elapsed_s = (given.at - before.at).total_seconds()
    if elapsed_s <= 0 or isinstance(given.value, str) or isinstance(before.value, str):
        return False
    variables["rate"] = (given.value - before.value) / elapsed_s
    return True


def _arrived_at(rule: Rule, given: Series) -> datetime:
    return given.at if isinstance(given, Arrival) else given.last_arrival


def _unit(rule: Rule, given: Series) -> str:
    found = rule.types.of(given.key)
    return "" if found is None else found.unit


_READERS: dict[str, Callable[[Rule, Series], object]] = {
    "owner": lambda rule, given: given.owner,
    "key": lambda rule, given: given.key,
    "labels": lambda rule, given: rule.types.labels(given.key, given.labels),
    "ts": lambda rule, given: given.ts,
    "arrived_at": _arrived_at,
    "unit": _unit,
}

"""Matchers of alarms: `where` of silences, maintenance and commands, `source` and `target` of
inhibits.

Guarantee: a matcher reads the rule, owner, key, instance, labels, severity, title and type of an
alarm, all with a type, so a misspelt name is an error with its column. An alarm without a label
that the matcher reads does not match. `only` is sound: the matcher can be true only for an alarm
whose field is one of the literals that it returns.

Why the literals: the performer reads the open alarms that can inhibit others. A source that names
its rules makes this a look-up instead of a scan.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cel_expr_python import cel

from rules.language.cel.condition import Condition, compile_condition
from rules.language.cel.environment import CONTAINER, safe_environment
from rules.language.cel.errors import ExpressionError, ExpressionInvalid
from schemas.fields import MATCHER_FIELDS, MATCHER_STRINGS
from schemas.values.severities import severities
from tocsin.core.near_name import near_name

_ENGINE_NAMES = {name: f"{CONTAINER}.type" if name == "type" else name for name in MATCHER_STRINGS}
_MAX_COMPILED = 4_096
# An evaluation takes 40 microseconds, a kept result one. About 400 bytes each.
_MAX_RESULTS = 50_000
_UNDECLARED = re.compile(r"undeclared reference to '([\w.]+)'")


_Facts = tuple[tuple[str, ...], int, tuple[tuple[str, str], ...]]
"""Texts, severity and labels that a matcher reads."""


class AlarmMatcher:
    """A compiled matcher. Two of the same text are one object, because compiling takes a
    millisecond."""

    __slots__ = ("_condition", "_texts", "text")

    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self._texts = tuple(name for name in MATCHER_STRINGS if name in condition.names)
        self.text = condition.text

    def matches(self, alarm: Mapping[str, Any]) -> bool:
        """`alarm` has `MATCHER_FIELDS`; those that are absent count as empty."""
        return _matches(self, self._facts(alarm))

    def _facts(self, alarm: Mapping[str, Any]) -> _Facts:
        """What the matcher reads of an alarm. Alarms that differ in nothing else are evaluated once."""
        texts = tuple(str(alarm.get(name) or "") for name in self._texts)
        severity = int(alarm.get("severity") or 0) if "severity" in self._condition.names else 0
        labels = alarm.get("labels") or {}
        names = labels if self._condition.labels is None else self._condition.labels
        read = tuple(sorted((str(name), str(labels[name])) for name in names if name in labels))
        return texts, severity, read

    def evaluate(self, facts: _Facts) -> bool:
        texts, severity, labels = facts
        variables: dict[str, Any] = dict(severities())
        variables |= dict.fromkeys(_ENGINE_NAMES.values(), "")
        for name, text in zip(self._texts, texts, strict=True):
            variables[_ENGINE_NAMES[name]] = text
        variables |= {"severity": severity, "labels": dict(labels)}
        return self._condition.evaluate(variables, is_error_expected=True) is True

    def only(self, field: str) -> frozenset[str] | None:
        """The values of a text field under which the matcher can be true; None if any value can."""
        literals = self._condition.literals.get(field)
        return None if literals is None else frozenset(literals)

    def __repr__(self) -> str:
        return f"AlarmMatcher({self.text!r})"


@lru_cache(maxsize=_MAX_RESULTS)
def _matches(matcher: AlarmMatcher, facts: _Facts) -> bool:
    return matcher.evaluate(facts)


def count_evaluations() -> int:
    """The evaluations of all matchers so far in this process, without the results that were kept."""
    return _matches.cache_info().misses


@lru_cache(maxsize=1)
def alarm_environment() -> cel.Env:
    types = cel.Type
    variables = dict.fromkeys(_ENGINE_NAMES.values(), types.STRING)
    variables |= dict.fromkeys(("severity", *severities()), types.INT)
    variables["labels"] = types.Map(types.STRING, types.STRING)
    return safe_environment(variables, container=CONTAINER)


@lru_cache(maxsize=_MAX_COMPILED)
def compile_matcher(text: str) -> AlarmMatcher:
    """`ExpressionInvalid` if the text is not a condition over an alarm."""
    try:
        return AlarmMatcher(compile_condition(alarm_environment(), MATCHER_FIELDS, text, ""))
    except ExpressionInvalid as invalid:
        raise ExpressionInvalid(text, [_explain(error) for error in invalid.errors]) from None


def _explain(error: ExpressionError) -> ExpressionError:
    """Name the part of a path that is misspelt, and the label that was meant."""
    undeclared = _UNDECLARED.match(error.message)
    if undeclared is None:
        return error
    first, _, rest = undeclared[1].partition(".")
    near = near_name(first, MATCHER_FIELDS, cutoff=0.75)
    if rest:
        hint = f"did you mean '{near}'?" if near else f"known are {', '.join(MATCHER_FIELDS)}"
        # The engine points at the last dot of a path.
        column = max(1, error.column - len(undeclared[1].rpartition(".")[0]))
        return error._replace(column=column, message=f"undeclared reference to '{first}', {hint}")
    if near:
        return error
    hint = f'write labels.{first} if it is a label, or "{first}" if it is a text'
    return error._replace(message=f"undeclared reference to '{first}', {hint}")

"""A compiled event_rule: everything that evaluation needs, computed once per version.

Guarantee: a rule that compiles can evaluate every input: its conditions are checked against the
declared types. Two rules with the same `fingerprint` decide alike, so one may continue a state that
the other made.

On failure: `RuleInvalid`, which names the key of the document and the positions in its text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from rules.engine.composite import Composite
from rules.engine.inputs import Arrival, EventSeen, Input, Value, WentStale
from rules.engine.shorthands import conditions_of
from rules.engine.types import NO_TYPES, TypeIndex
from rules.engine.windows import Window
from rules.language.cel import (
    Condition,
    Expression,
    ExpressionInvalid,
    compile_event_condition,
    compile_event_expression,
)
from rules.language.cel.bound_facts import BoundFacts
from rules.language.cel.environment import event_activation, event_environment
from rules.language.cel.series import ValueKind, compile_series_condition, compile_where
from schemas.documents.datapoint_type import DatapointTypeDocument
from schemas.documents.event_rule import EVENT_SEVERITY, EventRuleDocument
from schemas.values.annotation import MAX_TITLE_LENGTH
from schemas.values.duration import format_duration
from schemas.values.key_pattern import covers
from schemas.values.rule_ref import RuleRef
from schemas.values.series_key import base_key
from schemas.values.severities import level, severities
from timers.recurrence.active_times import time_filter
from tocsin.core.errors import InvalidInput

_ZERO = timedelta(0)
_MAX_CACHED_SERIES = 200_000
_MAX_INSTANCE_LENGTH = 256
_DECIDING_KEYS = {
    *("datapoint", "event", "per", "window", "samples", "count", "over", "for_"),
    *("keep_firing_for", "cooldown", "no_data", "no_data_for"),
}
"""The keys of a document on which decisions depend, in addition to the conditions."""


class RuleInvalid(InvalidInput):
    """`key` is the key of the document whose condition cannot be used."""

    def __init__(self, key: str, invalid: ExpressionInvalid) -> None:
        self.key = key
        self.errors = invalid.errors
        super().__init__(f"'{key}': {invalid}")


class Rule:
    """Immutable, except for a cache of the results of `where`."""

    is_heartbeat = False
    """Whether it is a `HeartbeatRule`."""

    def __init__(
        self, document: EventRuleDocument, types: TypeIndex = NO_TYPES, type_name: str | None = None
    ) -> None:
        self.name = document.name
        self.document = document
        self.types = types
        self.type_name = type_name
        """The datapoint_type that implies this rule (`on_stale: alarm`); the rule covers only its
        series."""
        self.is_per_series = document.datapoint is not None and document.per != "owner"
        self.severity = level("warning" if document.severity == EVENT_SEVERITY else document.severity)
        self.takes_severity_of_event = document.severity == EVENT_SEVERITY
        self.samples = document.samples
        self.count = document.count
        self.count_over = document.over or _ZERO
        self.sustain = document.for_ or _ZERO
        self.sustain_text = f" for {format_duration(self.sustain)}" if self.sustain else ""
        self.keep_firing_for = document.keep_firing_for or _ZERO
        self.cooldown = document.cooldown or _ZERO
        self.no_data = document.no_data
        self.no_data_for = document.no_data_for or _ZERO
        self.window = (
            None
            if document.window is None
            else Window(document.window.over, document.window.reduce, document.window.min_count)
        )
        self.times = None if document.active_in is None else time_filter(document.active_in)
        """The times in which it fires; None: always."""
        self.composite = None if document.alarms is None else Composite(document.alarms)
        """The condition over other alarms, of a rule that has one."""
        self.references = frozenset[str]() if self.composite is None else self.composite.references
        """The rules whose alarms it reads."""
        self._compile(document)
        self._event_type = None if document.event is None else event_type_pattern(document.event)
        self._where_cache: dict[tuple[str, str], tuple[Mapping[str, str], bool]] = {}
        self.fingerprint = self._fingerprint()

    def _compile(self, document: EventRuleDocument) -> None:
        texts = conditions_of(document)
        self.threshold = texts.threshold
        self.levels = texts.levels
        if self.levels:
            self.severity = self.levels[0].severity
        self.kind: ValueKind | None = None
        if document.datapoint is not None:
            self.kind = "number" if self.window is not None else self.types.kind(document.datapoint)
            self.where = self._checked("where", compile_where, document.where)
        else:
            self.where = self._checked("where", compile_event_condition, document.where)
        fire = self._checked("fire", self._condition, texts.fire)
        assert fire is not None
        self.fire: Condition = fire
        self.clear = self._checked("clear", self._condition, texts.clear)
        expressions = document.per if isinstance(document.per, tuple) else ()
        self.per = tuple(self._expression(text) for text in expressions)
        self.names = fire.names | (self.clear.names if self.clear is not None else frozenset())
        constants = {**severities(), "age": _ZERO, "freshness": "fresh"}
        self.constants_on_arrival = {name: value for name, value in constants.items() if name in self.names}
        """Variables that have the same value at every arrival."""
        self.reads_more_than_value = not self.names <= {"value"}
        self.reads_previous = bool({"previous", "rate"} & self.names)
        self.needs_track = self.window is not None or self.reads_previous or self.samples is not None
        self.window_only_falls = (
            self.window is not None
            and self.window.reduce in ("count", "max")
            and document.above is not None
            and self.clear is None
        )
        """Whether a series that does not fire cannot begin to by values that leave the window."""
        self.reads_values = not self.names <= {"freshness", "age", *severities()}
        """Whether its conditions read more than whether data arrives."""
        self.reads_freshness = bool({"freshness", "age"} & self.names)

    def _condition(self, text: str, *, rule: str) -> Condition:
        if self.document.datapoint is None:
            return compile_event_condition(text, rule=rule)
        return compile_series_condition(text, kind=self.kind, rule=rule)

    def _expression(self, text: str) -> Expression:
        try:
            return compile_event_expression(text, rule=self.name)
        except ExpressionInvalid as invalid:
            raise RuleInvalid("per", invalid) from None

    def _checked(self, key: str, compile: Callable[..., Condition], text: str | None) -> Condition | None:
        try:
            return None if text is None else compile(text, rule=self.name)
        except ExpressionInvalid as invalid:
            raise RuleInvalid(key, invalid) from None

    def _fingerprint(self) -> str:
        keys = _DECIDING_KEYS if self.composite is None else {*_DECIDING_KEYS, "alarms"}
        keys = keys if self.times is None else {*keys, "active_in"}
        deciding = self.document.model_dump(mode="json", include=keys)
        texts = [condition and condition.text for condition in (self.where, self.fire, self.clear)]
        text = json.dumps([deciding, texts, self.type_name], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def covers(self, key: str) -> bool:
        """Whether the rule evaluates the datapoints of a key, apart from `where`."""
        pattern = self.document.datapoint
        return pattern is not None and covers(pattern, base_key(key)) and self.covers_type_of(key)

    def covers_type_of(self, key: str) -> bool:
        """False for a rule that a type implies, if the key has a more specific type."""
        if self.type_name is None:
            return True
        type = self.types.of(key)
        return type is not None and type.name == self.type_name

    def covers_event(self, type: str, rule: str) -> bool:
        """Whether the rule evaluates the events of a type, which are about the alarms of `rule`."""
        if self.composite is not None:
            return type.startswith("alarm-") and rule in self.references
        return self._event_type is not None and self._event_type.fullmatch(type) is not None

    def covers_series(self, input: Arrival | WentStale) -> bool:
        """Whether `where` is true for the series; cached as long as its labels stay the same."""
        if self.where is None:
            return True
        series = (input.owner, input.key)
        cached = self._where_cache.get(series)
        if cached is not None and (cached[0] is input.labels or cached[0] == input.labels):
            return cached[1]
        variables = {
            "owner": input.owner,
            "key": base_key(input.key),
            "labels": self.types.labels(input.key, input.labels),
        }
        # An error is expected: a series without the label is not covered.
        result = self.where.evaluate(variables, is_error_expected=True) is True
        if len(self._where_cache) >= _MAX_CACHED_SERIES:
            self._where_cache.clear()
        self._where_cache[series] = (input.labels, result)
        return result

    def instance_of(self, input: Input) -> str:
        """What the alarm is about: the key of the series, or the values of `per` as JSON."""
        if self.is_per_series:
            return input.key  # type: ignore[union-attr]
        if not self.per:
            return ""
        assert isinstance(input, EventSeen)
        activation = self.activation_of_event(input)
        return instance_text([expression.evaluate(activation) for expression in self.per])

    def inactive_reason(self, at: datetime, due_at: datetime) -> str | None:
        """Why nothing fires at an instant, for an alarm that would open at `due_at`; None if it may."""
        if self.times is None:
            return None
        return self.times.exclusion(at) or (self.times.exclusion(due_at) if due_at > at else None)

    def severity_of(self, value: Value | None) -> int:
        """The severity of the highest level that a value reaches."""
        if not self.levels or value is None or isinstance(value, str):
            return self.severity
        reached = (level.severity for level in self.levels if level.is_reached(value))
        return max(reached, default=self.severity)

    def threshold_of(self, severity: int) -> str:
        texts = (level.text for level in self.levels if level.severity == severity)
        return next(texts, self.threshold)

    def activation_of_event(self, input: EventSeen) -> BoundFacts:
        return input.activation or event_activation(event_environment(), input.facts)

    def __repr__(self) -> str:
        return f"Rule({self.name!r})"


def instance_text(values: list[Any]) -> str:
    """The instance of an alarm over events; a long one is replaced by its hash."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text if len(text) <= _MAX_INSTANCE_LENGTH else hashlib.sha256(text.encode()).hexdigest()


def stale_rules(types: TypeIndex) -> Iterable[Rule]:
    """The rules that `on_stale: alarm` of the types implies, named `stale:<type>`."""
    for type in types.types:
        if type.on_stale == "alarm":
            yield Rule(_stale_rule(type), types, type_name=type.name)


def _stale_rule(type: DatapointTypeDocument) -> EventRuleDocument:
    facts = {"name": "stale", "datapoint": type.key, "absent": True, "severity": type.severity or "warning"}
    facts |= {"title": f"{type.title}: no data"[:MAX_TITLE_LENGTH]} if type.title else {}
    facts |= {"description": type.description, "runbook_url": type.runbook_url}
    document = EventRuleDocument.model_validate(facts)
    name = str(RuleRef("stale", type.name))
    return document.model_copy(update={"name": name, "for_": type.for_, "notify": type.notify})


def event_type_pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in text.split("*")))

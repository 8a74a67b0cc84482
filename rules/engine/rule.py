"""An event_rule, compiled: everything that judging needs, worked out once per version.

Guarantee: a rule that compiles can judge every input: its conditions are checked against the declared types.
Two rules with the same `fingerprint` come to the same firing_series, so a state made by one may be continued by the
other.

On failure: `RuleInvalid`, which names the key of the document and the places in its text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from cel_expr_python import cel

from rules.engine.inputs import Arrival, EventSeen, WentStale
from rules.engine.shorthands import conditions_of
from rules.engine.types import NO_TYPES, TypeIndex
from rules.engine.windows import Window
from rules.language.cel import Condition, ExpressionInvalid, compile_event_condition
from rules.language.cel.environment import event_activation, event_environment
from rules.language.cel.series import (
    ValueKind,
    compile_series_condition,
    compile_where,
)
from schemas.documents.datapoint_type import DatapointTypeDocument
from schemas.documents.event_rule import EventRuleDocument
from schemas.values.duration import format_duration
from schemas.values.key_pattern import covers
from schemas.values.rule_ref import RuleRef
from schemas.values.severities import level, severities
from tocsin.core.errors import InvalidInput

_ZERO = timedelta(0)
_MOST_KEPT = 200_000
_OF_THE_VERDICT = {
    *("datapoint", "event", "window", "for_", "keep_firing_for", "cooldown", "no_data", "no_data_for"),
}
"""Beside the conditions, the keys of a document on which verdicts depend."""


class RuleInvalid(InvalidInput):
    """`key` is the key of the document whose condition cannot be used."""

    def __init__(self, key: str, invalid: ExpressionInvalid) -> None:
        self.key = key
        self.errors = invalid.errors
        super().__init__(f"'{key}': {invalid}")


class Rule:
    """Immutable but for what it keeps of `where`, which is only a memory of answers that never change."""

    def __init__(self, document: EventRuleDocument, types: TypeIndex, type_name: str | None = None) -> None:
        self.name = document.name
        self.document = document
        self.types = types
        self.type_name = type_name
        """The datapoint_type to whose series the rule is confined; None: to those of its pattern."""
        self.severity = level(document.severity)
        self.sustain = document.for_ or _ZERO
        self.held_text = f" for {format_duration(self.sustain)}" if self.sustain else ""
        self.keep_firing_for = document.keep_firing_for or _ZERO
        self.cooldown = document.cooldown or _ZERO
        self.no_data = document.no_data
        self.no_data_for = document.no_data_for or _ZERO
        self.window = (
            None if document.window is None else Window(document.window.over, document.window.reduce)
        )
        self._compile(document)
        self._event_type = None if document.event is None else _type_pattern(document.event)
        self._where_kept: dict[tuple[str, str], tuple[Mapping[str, str], bool]] = {}
        self.fingerprint = self._fingerprint()

    def _compile(self, document: EventRuleDocument) -> None:
        texts = conditions_of(document)
        self.threshold = texts.threshold
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
        self.names = fire.names | (self.clear.names if self.clear is not None else frozenset())
        fresh = {**severities(), "age": _ZERO, "freshness": "fresh"}
        self.when_fresh = {name: value for name, value in fresh.items() if name in self.names}
        """What is the same at every arrival."""
        self.reads_more = not self.names <= {"value"}
        self.reads_before = bool({"previous", "rate"} & self.names)
        self.looks_back = self.window is not None or self.reads_before
        self.reads_silence = bool({"freshness", "age"} & self.names)

    def _condition(self, text: str, *, rule: str) -> Condition:
        if self.document.event is not None:
            return compile_event_condition(text, rule=rule)
        return compile_series_condition(text, kind=self.kind, rule=rule)

    def _checked(self, key: str, compile: Callable[..., Condition], text: str | None) -> Condition | None:
        try:
            return None if text is None else compile(text, rule=self.name)
        except ExpressionInvalid as invalid:
            raise RuleInvalid(key, invalid) from None

    def _fingerprint(self) -> str:
        told = self.document.model_dump(
            mode="json",
            include=_OF_THE_VERDICT,
        )
        texts = [condition and condition.text for condition in (self.where, self.fire, self.clear)]
        facts = json.dumps([told, texts, self.type_name], sort_keys=True)
        return hashlib.sha256(facts.encode()).hexdigest()[:16]

    def covers(self, key: str) -> bool:
        """Whether the rule judges the datapoints of a key, `where` aside."""
        pattern = self.document.datapoint
        return pattern is not None and covers(pattern, key) and self.is_confined_to(key)

    def is_confined_to(self, key: str) -> bool:
        """A rule that a type stands for leaves out the keys for which a more specific type holds."""
        if self.type_name is None:
            return True
        holds = self.types.of(key)
        return holds is not None and holds.name == self.type_name

    def covers_event(self, type: str) -> bool:
        return self._event_type is not None and self._event_type.fullmatch(type) is not None

    def is_about(self, given: Arrival | WentStale) -> bool:
        """`where`, asked once per series and remembered as long as its labels stay the same."""
        if self.where is None:
            return True
        series = (given.owner, given.key)
        kept = self._where_kept.get(series)
        if kept is not None and (kept[0] is given.labels or kept[0] == given.labels):
            return kept[1]
        variables = {
            "owner": given.owner,
            "key": given.key,
            "labels": self.types.labels(given.key, given.labels),
        }
        # A series without the label is simply not meant.
        answer = self.where.evaluate(variables, is_error_expected=True)
        if len(self._where_kept) >= _MOST_KEPT:
            self._where_kept.clear()
        self._where_kept[series] = (given.labels, answer is True)
        return answer is True

    def activation_of_event(self, given: EventSeen) -> cel.Activation:
        return given.activation or event_activation(event_environment(), given.facts)

    def __repr__(self) -> str:
        return f"Rule({self.name!r})"


def compile_rule(document: EventRuleDocument, types: TypeIndex = NO_TYPES) -> Rule:
    return Rule(document, types)


def stale_rules(types: TypeIndex) -> Iterable[Rule]:
    """The rules that `on_stale: alarm` of the types stands for, named `stale:<type>`."""
    for one in types.types:
        if one.on_stale == "alarm":
            yield Rule(_stale_rule(one), types, type_name=one.name)


def _stale_rule(one: DatapointTypeDocument) -> EventRuleDocument:
    facts = {"name": "stale", "datapoint": one.key, "absent": True, "severity": one.severity or "warning"}
    document = EventRuleDocument.model_validate(facts)
    name = str(RuleRef("stale", one.name))
    return document.model_copy(update={"name": name, "for_": one.for_, "notify": one.notify})


def _type_pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in text.split("*")))

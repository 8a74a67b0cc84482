"""Prometheus rule files become event_rules and calc_rules.

An alert over one series with a fixed threshold becomes one event_rule. Every other alert becomes a
calc_rule, whose value is the left side of the threshold or the whole condition, and an event_rule over
it. A recording rule becomes a calc_rule, and rules that read its metric read that calc_rule.

A vector without aggregation has all labels of its series. A calc_rule needs to know them: it is grouped
by the owner and by the labels that the annotations of the alert mention. A note says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from graphlib import CycleError, TopologicalSorter
from typing import Any

import yaml

from rules.importer.annotations import label_names, message_template
from rules.importer.formula import Formula, Input
from rules.importer.names import Names
from rules.importer.promql import PromqlExpression, constant, is_constant
from rules.importer.recorded import MetricRecording, RecordedMetrics
from rules.importer.translation import (
    ImportedDocument,
    ImportedRule,
    Translation,
    Untranslatable,
    check_documents,
)
from rules.importer.types import datapoint_types
from schemas.documents.calc_rule import OWNER
from schemas.values.duration import format_duration, parse_duration
from schemas.values.severities import severities
from schemas.wire.calculated import CALC_PREFIX
from tocsin.core.errors import InvalidInput
from tocsin.core.extras import install_remedy

DEFAULT_OWNER_LABEL = "instance"
_DEFAULT_EVERY = timedelta(minutes=1)
# The parser recurses for every operator: about 10,000 of them overflow its stack and end the process.
_MAX_EXPRESSION = 4_000
_SEVERITIES = {"page": "critical", "error": "high", "none": "info", "ticket": "warning"}
_FIRES = {">": "above", "<": "below"}
# `reduce` of an event_rule's window.
_WINDOWS = {"avg", "min", "max", "sum", "count"}


@dataclass(slots=True)
class _Source:
    """One rule of a file."""

    file: str
    line: int
    rule: Mapping[str, Any]
    every: timedelta

    @property
    def name(self) -> str:
        return _text(self.rule.get("alert")) or _text(self.rule.get("record"))

    @property
    def is_recording(self) -> bool:
        return "record" in self.rule

    @property
    def expression(self) -> str:
        return _text(self.rule.get("expr"))


@dataclass(slots=True)
class _Importer:
    owner_label: str
    names: Mapping[int, str]
    """The name of the documents of each rule, by the number of the rule."""
    recorded: RecordedMetrics

    def translate(self, number: int, source: _Source) -> ImportedRule:
        located = (source.name, source.file, source.line, source.expression)
        name = self.names[number]
        try:
            if not source.name:
                raise Untranslatable("it has neither 'alert' nor 'record'")
            documents, notes = _Rule(self, source, name).documents()
            check_documents(documents, self.recorded.metrics)
        except Untranslatable as problem:
            return ImportedRule(*located, problem=str(problem))
        return ImportedRule(*located, documents, notes)


class _Rule:
    def __init__(self, importer: _Importer, source: _Source, name: str) -> None:
        self._importer = importer
        self._source = source
        self._annotations = _texts(source.rule.get("annotations"))
        self._labels = _texts(source.rule.get("labels"))
        self._name = name
        mentioned = label_names(self._annotations.values()) - {importer.owner_label, *self._labels}
        self._series_groups = (importer.owner_label, *sorted(mentioned))
        self._expression = PromqlExpression(
            importer.owner_label,
            importer.recorded.source,
            lambda number: f"{CALC_PREFIX}{self._name}-part-{number}",
            self._series_groups,
        )

    def documents(self) -> tuple[list[ImportedDocument], list[str]]:
        node = _parsed(self._source.expression)
        if not self._source.is_recording:
            return self._alert(node), self._expression.notes
        documents = self._calc_rules(self._expression.number(node))
        if self._labels:
            labels = ", ".join(f'{name}="{value}"' for name, value in sorted(self._labels.items()))
            self._expression.note(
                f"its results have no label {labels}: rules that select it read this calc_rule"
            )
        return documents, self._expression.notes

    def _alert(self, node: Any) -> list[ImportedDocument]:
        node = _inside(node)
        if (
            type(node).__name__ == "BinaryExpr"
            and is_constant(node.rhs)
            and str(node.op) in ("==", "!=", *_FIRES)
        ):
            threshold = constant(node.rhs)
            value = self._expression.number(node.lhs)
            given = value.only_input
            if (
                given is not None
                and value.groups is None
                and given.key
                and not given.offset
                and _is_plain(given)
            ):
                return [self._event_rule(given.key, str(node.op), threshold, given)]
            if str(node.op) in _FIRES:
                value = _any(value, str(node.op))
                return [*self._calc_rules(value), self._event_rule(self._calc_key, str(node.op), threshold)]
            self._expression.parts.clear()
        condition = self._expression.holds(node)
        return [*self._calc_rules(condition), self._event_rule(self._calc_key, "holds", 0.0)]

    @property
    def _calc_key(self) -> str:
        return CALC_PREFIX + self._name

    def _calc_rules(self, formula: Formula) -> list[ImportedDocument]:
        every = format_duration(self._source.every)
        documents = []
        for number, part in enumerate(self._expression.parts, 1):
            documents.append(
                self._calc_rule(f"{self._name}-part-{number}", part.formula, part.every or every)
            )
        return [*documents, self._calc_rule(self._name, formula, every)]

    def _calc_rule(self, name: str, formula: Formula, every: str) -> ImportedDocument:
        value, inputs = formula.render()
        if not inputs:
            raise Untranslatable("it reads no series")
        groups = formula.groups
        if groups is None:
            groups = self._series_groups
            self._expression.note(f"it has one result for each ({', '.join(groups)})")
        by = [OWNER if label == self._importer.owner_label else label for label in groups]
        fields: dict[str, Any] = {
            "name": name,
            "inputs": {label: given.document() for label, given in inputs.items()},
            "by": by,
            "every": every,
            "value": value,
        }
        return ImportedDocument("calc_rule", fields)

    def _event_rule(
        self, key: str, operator: str, threshold: float, given: Input | None = None
    ) -> ImportedDocument:
        rule = self._source.rule
        fields: dict[str, Any] = {"name": self._name, "datapoint": key}
        if given is not None and given.where:
            fields["where"] = given.where
        if operator in _FIRES:
            fields[_FIRES[operator]] = threshold
        elif operator == "holds":
            fields["fire"] = "value == true"
        else:
            fields["fire"] = f"value {operator} {threshold!r}"
        if given is not None and given.over:
            fields["window"] = {"over": given.over, "reduce": given.each}
        for name, target in (("for", "for"), ("keep_firing_for", "keep_firing_for")):
            if duration := _duration(rule.get(name)):
                fields[target] = duration
        fields["severity"] = self._severity()
        fields |= self._texts_for_people()
        return ImportedDocument("event_rule", fields)

    def _severity(self) -> str:
        severity = self._labels.get("severity", "warning").lower()
        known = _SEVERITIES.get(severity, severity)
        if known in severities():
            return known
        self._expression.note(f"the severity '{severity[:40]}' is unknown: it is translated as 'warning'")
        return "warning"

    def _texts_for_people(self) -> dict[str, Any]:
        texts: dict[str, Any] = {}
        text = self._annotations.get("summary") or self._annotations.get("description") or ""
        if text:
            message = message_template(text, self._importer.owner_label)
            if message is None:
                self._expression.note("the summary is not translated: it has functions of Go templates")
            else:
                texts["message"] = message
        url = self._annotations.get("runbook_url", "")
        if url.startswith("https://") and "{{" not in url:
            texts["runbook_url"] = url
        return texts


def translate_prometheus(files: Mapping[str, str], owner_label: str = DEFAULT_OWNER_LABEL) -> Translation:
    """Translate rule files, given by name. `owner_label` is the label that becomes the owner.

    Raises `InvalidInput` for a file that is not a rule file.
    """
    sources = [source for file, text in files.items() for source in _read(file, text)]
    names = Names()
    names_by_number = {number: names.take(source.name) for number, source in enumerate(sources)}
    recorded = RecordedMetrics(
        (source.name, MetricRecording(names_by_number[number], _texts(source.rule.get("labels"))))
        for number, source in enumerate(sources)
        if source.is_recording
    )
    importer = _Importer(owner_label, names_by_number, recorded)
    while True:
        rules = [importer.translate(number, source) for number, source in enumerate(sources)]
        unreadable = _unreadable(rules, importer)
        if unreadable.keys() <= recorded.unreadable.keys():
            return Translation(
                rules, datapoint_types(document for rule in rules for document in rule.documents)
            )
        recorded.unreadable |= unreadable


def _unreadable(rules: Sequence[ImportedRule], importer: _Importer) -> dict[str, str]:
    """The calc_rules of recorded metrics whose rules have no translation, or form a circle."""
    metrics = importer.recorded.metrics
    untranslated = {
        name: "whose recording rule has no translation"
        for number, name in importer.names.items()
        if name in metrics and not rules[number].is_translated
    }
    read: dict[str, set[str]] = {}
    for kind, document in (document for rule in rules for document in rule.documents):
        if kind == "calc_rule":
            keys = {given["key"] for given in document["inputs"].values()}
            read[document["name"]] = {
                key.removeprefix(CALC_PREFIX) for key in keys if key.startswith(CALC_PREFIX)
            }
    try:
        TopologicalSorter(read).prepare()
    except CycleError as error:
        circle = [name for name in error.args[1] if name in metrics]
        return untranslated | dict.fromkeys(circle, "which reads it, directly or through others")
    return untranslated


def _read(file: str, text: str) -> Iterable[_Source]:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark is not None else file
        raise InvalidInput(f"{place}: it is not YAML: {getattr(error, 'problem', error)}") from None
    except RecursionError:
        raise InvalidInput(f"{file}: its YAML is nested too deeply") from None
    groups = content.get("groups") if isinstance(content, dict) else None
    if not isinstance(groups, list):
        raise InvalidInput(f"{file}: it is not a Prometheus rule file: it has no 'groups'")
    lines = _lines(root)
    for group_number, group in enumerate(groups):
        rules = group.get("rules") if isinstance(group, dict) else None
        if not isinstance(rules, list):
            continue
        every = _every(group.get("interval"))
        for number, rule in enumerate(rules):
            if isinstance(rule, dict):
                yield _Source(file, lines.get((group_number, number), 1), rule, every)


def _lines(root: Any) -> dict[tuple[int, int], int]:
    """The lines on which the rules begin, by the numbers of group and rule."""
    lines = {}
    for group_number, group in enumerate(_child(root, "groups")):
        for number, rule in enumerate(_child(group, "rules")):
            lines[group_number, number] = rule.start_mark.line + 1
    return lines


def _child(node: Any, key: str) -> Sequence[Any]:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == key and isinstance(value, yaml.SequenceNode):
                return list(value.value)
    return ()


def _parsed(text: str) -> Any:
    try:
        import promql_parser
    except ImportError:
        raise InvalidInput(
            "the import of Prometheus rules needs promql-parser", remedy=install_remedy("import")
        ) from None
    if len(text) > _MAX_EXPRESSION:
        raise Untranslatable(f"its expression has more than {_MAX_EXPRESSION:,} characters")
    try:
        return promql_parser.parse(text)
    except ValueError as error:
        raise Untranslatable(f"its expression cannot be parsed: {error}") from None


def _inside(node: Any) -> Any:
    while type(node).__name__ == "ParenExpr":
        node = node.expr
    return node


def _is_plain(given: Input) -> bool:
    """Whether an event_rule can evaluate the series itself."""
    return (given.each == "last" and not given.over) or (given.each in _WINDOWS and bool(given.over))


def _any(value: Formula, operator: str) -> Formula:
    if value.groups is not None or operator != "<":
        return value
    return value.of_input(
        lambda given: replace(given, aggregate="min") if given.aggregate == "max" else given
    )


def _texts(value: object) -> dict[str, str]:
    return {_text(name): _text(text) for name, text in value.items()} if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """A scalar as text. Anything else is empty: the text of nested aliases would have no bound."""
    return str(value) if isinstance(value, str | int | float) else ""


def _duration(text: object) -> str:
    try:
        duration = parse_duration(_text(text)) if text else timedelta(0)
    except (InvalidInput, ValueError):
        raise Untranslatable(f"the duration '{_text(text)[:40]}' cannot be read") from None
    return format_duration(duration) if duration else ""


def _every(text: object) -> timedelta:
    try:
        every = parse_duration(_text(text)) if text else _DEFAULT_EVERY
    except (InvalidInput, ValueError):
        return _DEFAULT_EVERY
    return max(every, timedelta(seconds=1))

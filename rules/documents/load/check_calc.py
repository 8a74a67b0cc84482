"""Checks of `calc_rule` documents: conditions, values, and what they read of each other.

Guarantee: the conditions and the value of a rule that passes compile. The calc_rules that it reads
exist, and no rule reads itself, directly or through others: a circle would have no first window. An
event_rule over a calculated series names one that exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel

from rules.documents.load.problems import RuleProblem, unknown_name
from rules.documents.load.source import ReadDocuments, SourceDocument
from rules.language.cel import ExpressionInvalid, compile_where
from rules.language.cel.calculation import compile_calculation
from schemas.documents import CalcRuleDocument, EventRuleDocument
from schemas.wire.calculated import CALC_PREFIX


def calc_problems(read: ReadDocuments, kept: Sequence[BaseModel]) -> Iterable[RuleProblem]:
    """`kept` are the applied documents that are not in the files."""
    rules = {model.name: model for model in kept if isinstance(model, CalcRuleDocument)}
    given = [document for document in read.documents if isinstance(document.model, CalcRuleDocument)]
    rules |= {document.name: _rule(document) for document in given}
    for document in read.documents if not read.is_cut_short else ():
        yield from _alarm_problems(document, rules)
    for document in given:
        yield from _expression_problems(document, _rule(document))
        if not read.is_cut_short:
            yield from _reference_problems(document, rules)


def _alarm_problems(document: SourceDocument, rules: dict[str, CalcRuleDocument]) -> Iterable[RuleProblem]:
    """An event_rule over a calculated series that no calc_rule calculates would never fire."""
    key = document.model.datapoint if isinstance(document.model, EventRuleDocument) else None
    if key is None or not key.startswith(CALC_PREFIX) or "*" in key:
        return
    source = key.removeprefix(CALC_PREFIX)
    if source not in rules:
        message = unknown_name("calc_rule", source, document.title, rules)
        yield document.problem(document.body.at(("datapoint",)), message)


def _rule(document: SourceDocument) -> CalcRuleDocument:
    assert isinstance(document.model, CalcRuleDocument)
    return document.model


def _expression_problems(document: SourceDocument, rule: CalcRuleDocument) -> Iterable[RuleProblem]:
    for name, given in rule.inputs.items():
        if given.where is not None:
            try:
                compile_where(given.where, rule=rule.name)
            except ExpressionInvalid as invalid:
                yield from document.problems_inside(("inputs", name, "where"), invalid.errors)
    try:
        calculation = compile_calculation(rule.value, rule.inputs)
    except ExpressionInvalid as invalid:
        yield from document.problems_inside(("value",), invalid.errors)
        return
    for name in sorted(rule.inputs.keys() - calculation.names):
        message = f"'value' of {document.title} does not read the input '{name}': use it, or remove it"
        yield document.problem(document.body.key_at(("inputs", name)), message)


def _reference_problems(
    document: SourceDocument, rules: dict[str, CalcRuleDocument]
) -> Iterable[RuleProblem]:
    rule = _rule(document)
    for name, given in rule.inputs.items():
        if not given.key.startswith(CALC_PREFIX):
            continue
        source, path = given.key.removeprefix(CALC_PREFIX), ("inputs", name, "key")
        if source not in rules:
            message = unknown_name("calc_rule", source, document.title, rules)
            yield document.problem(document.body.at(path), message)
        elif rule.name in _read_by(source, rules):
            message = (
                f"{document.title} reads calc_rule '{source}', which reads '{rule.name}', directly or through "
                "others: break the circle"
            )
            yield document.problem(document.body.at(path), message)


def _read_by(name: str, rules: dict[str, CalcRuleDocument]) -> set[str]:
    """The rule of a name, and all rules that it reads, directly or through others."""
    found, waiting = set[str](), [name]
    while waiting:
        rule = waiting.pop()
        if rule not in found:
            found.add(rule)
            waiting += rules[rule].sources if rule in rules else ()
    return found

"""Warnings about rules over series: conditions that never hold, or hold together, and misspelt keys.

Guarantee: a warning is about conditions that were evaluated by the engine, at the numbers that they
name and between them. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from rules.documents.load.problems import RuleProblem
from rules.documents.load.source import SourceDocument
from rules.documents.load.yaml_tree import Path
from rules.engine import Rule, TypeIndex
from rules.engine.shorthands import number_text
from rules.language.cel.compared import numbers_of
from rules.language.cel.series import series_environment
from schemas.documents import DatapointTypeDocument, EventRuleDocument, SystemDocument
from schemas.documents.event_rule import FIRE_KEYS
from schemas.values.duration import format_duration
from tocsin.core.near_name import near_name

_FRESHNESS = {"age", "freshness"}


def series_warnings(document: SourceDocument, types: TypeIndex) -> Iterator[RuleProblem]:
    model = document.model
    if isinstance(model, EventRuleDocument) and model.datapoint is not None:
        rule = Rule(model, types)
        yield from _overlap_warnings(document, model, rule)
        yield from _age_warnings(document, model, rule, types)
        yield from _key_warnings(document, model.datapoint, types)
    elif isinstance(model, SystemDocument):
        for index, member in enumerate(model.members):
            yield from _owner_warnings(document, ("members", index, "owner"), member.owner)
    elif isinstance(model, DatapointTypeDocument):
        for index, owner in enumerate(model.owners):
            yield from _owner_warnings(document, ("owners", index), owner)


def _overlap_warnings(
    document: SourceDocument, model: EventRuleDocument, rule: Rule
) -> Iterator[RuleProblem]:
    """`fire` and `clear` that hold for the same value: the alarm opens and resolves all the time."""
    if rule.clear is None or rule.names != {"value"} or rule.kind not in (None, "number"):
        return
    env = series_environment(rule.kind)
    for point in _points(numbers_of(env, rule.fire.text) | numbers_of(env, rule.clear.text)):
        facts = {"value": point}
        if rule.fire.evaluate(facts, True) is True and rule.clear.evaluate(facts, True) is True:
            key = next(name for name in FIRE_KEYS if getattr(model, name) is not None)
            message = (
                f"'clear' of {document.title} holds together with '{key}', such as at {number_text(point)}: "
                "the alarm would open and resolve again and again"
            )
            yield document.problem(document.body.at(("clear",)), message)
            return


def _points(numbers: set[float]) -> list[float]:
    """The numbers, a point between each two of them, and one on either side."""
    ordered = sorted(numbers)
    if not ordered:
        return []
    between = [(low + high) / 2 for low, high in pairwise(ordered)]
    return [*between, ordered[0] - 1, ordered[-1] + 1, *ordered]


def _age_warnings(
    document: SourceDocument, model: EventRuleDocument, rule: Rule, types: TypeIndex
) -> Iterator[RuleProblem]:
    """A condition over the age of a series is evaluated at arrivals and at the deadline, never later.

    Other variables are unknown here. The condition is then false only if it is false for all of
    their values.
    """
    deadlines = {type.stale_after for type in types.covering(model.datapoint or "") if type.stale_after}
    if not deadlines:
        return
    shown = ", ".join(sorted(format_duration(deadline) for deadline in deadlines))
    at_deadlines = [{"age": deadline, "freshness": "stale"} for deadline in deadlines]
    for key, condition, remedy in (
        ("fire", rule.fire, "use 'absent' with 'for'"),
        ("clear", rule.clear, "the alarm would not resolve"),
    ):
        if condition is None or getattr(model, key) is None or not condition.names & _FRESHNESS:
            continue
        inputs = [rule.constants_on_arrival, *at_deadlines]
        facts = [{name: given[name] for name in condition.names if name in given} for given in inputs]
        if all(condition.evaluate(dict(given), True) is False for given in facts):
            message = (
                f"'{key}' of {document.title} is never true: the age of a series is zero when a datapoint arrives, "
                f"and its deadline, {shown}, when it becomes stale; {remedy}"
            )
            yield document.problem(document.body.at((key,)), message)


def _key_warnings(document: SourceDocument, pattern: str, types: TypeIndex) -> Iterator[RuleProblem]:
    if types.covering(pattern):
        return
    near = near_name(pattern, sorted(type.key for type in types.types), cutoff=0.85)
    if near:
        message = f"no datapoint_type covers '{pattern}' of {document.title}, did you mean '{near}'?"
        yield document.problem(document.body.at(("datapoint",)), message)


def _owner_warnings(document: SourceDocument, path: Path, owner: str) -> Iterator[RuleProblem]:
    if "*" in owner:
        where = ".".join(str(step) for step in path)
        message = f"'{where}' of {document.title} is an owner, not a pattern: '{owner}' stands for itself"
        yield document.problem(document.body.at(path), message)

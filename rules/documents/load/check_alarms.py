"""Checks of event_rules over other alarms: the rules that they refer to.

Guarantee: every rule that `alarms` names exists, and no rule refers to itself, directly or through
others: its alarm would depend on itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from pydantic import BaseModel

from rules.documents.load.problems import RuleProblem, unknown_name
from rules.documents.load.source import ReadDocuments, SourceDocument
from rules.documents.load.yaml_tree import Path
from schemas.documents import EventRuleDocument
from schemas.documents.alarms_condition import CLAUSES, AlarmsDocument


def alarms_problems(
    read: ReadDocuments, models: Sequence[BaseModel], known: Collection[str]
) -> Iterable[RuleProblem]:
    """`models` are the new documents and the applied ones that stay, `known` the rules with alarms."""
    references = {
        model.name: frozenset(reference.rule for reference in model.alarms.references())
        for model in models
        if isinstance(model, EventRuleDocument) and model.alarms is not None
    }
    for document in read.documents:
        model = document.model
        if isinstance(model, EventRuleDocument) and model.alarms is not None:
            yield from _problems(document, model.alarms, references, known)


def _problems(
    document: SourceDocument,
    alarms: AlarmsDocument,
    references: Mapping[str, frozenset[str]],
    known: Collection[str],
) -> Iterable[RuleProblem]:
    for key in CLAUSES:
        for index, (written, reference) in enumerate(
            zip(getattr(alarms, key), alarms.clause(key), strict=True)
        ):
            path: Path = (
                ("alarms", key, index) if isinstance(written, str) else ("alarms", key, index, "rule")
            )
            name = reference.rule
            if name not in known:
                message = unknown_name("event_rule", name, document.title, known)
                yield document.problem(document.body.at(path), message)
            elif document.name in _referred(name, references):
                through = "itself" if name == document.name else f"'{name}', which depends on it"
                message = f"{document.title} refers to {through}: break the circle"
                yield document.problem(document.body.at(path), message)


def _referred(name: str, references: Mapping[str, frozenset[str]]) -> set[str]:
    """The rule of a name, and all rules that it refers to, directly or through others."""
    found, waiting = set[str](), [name]
    while waiting:
        rule = waiting.pop()
        if rule not in found:
            found.add(rule)
            waiting += references.get(rule, ())
    return found

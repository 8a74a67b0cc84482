"""Compiles a rule set: event_rules, datapoint_types and systems become rules that can run.

No other module compiles rules.

Guarantee: documents that are the same as in the rule set before are not compiled again.

On failure: a stored event_rule that this version of Tocsin cannot compile is left out and listed in
`unusable`; the others stay in force. A rule book logs each such rule.
"""

from __future__ import annotations

import structlog

from rules.documents.members import Members
from rules.documents.rule_book import RuleBook, RuleSet
from rules.engine import CompiledRules, Rule, TypeIndex
from schemas.documents import DatapointTypeDocument, EventRuleDocument, SystemDocument
from tocsin.core.errors import InvalidInput

_log = structlog.get_logger()
_DOCUMENT_TYPES = (EventRuleDocument, DatapointTypeDocument, SystemDocument)


class CompiledRuleSet(CompiledRules):
    """The event_rules, datapoint_types and systems of one rule set, ready to run."""

    def __init__(self, documents: RuleSet, before: CompiledRuleSet | None = None) -> None:
        self.members = Members(documents.of(SystemDocument).values())
        self.unusable: dict[str, InvalidInput] = {}
        types = TypeIndex(documents.of(DatapointTypeDocument).values())
        reusable: dict[str, Rule] = {}
        if before is not None and before.types.types == types.types:
            reusable, types = before.rules, before.types
        rules = (
            self._compile(document, types, reusable.get(name))
            for name, document in documents.of(EventRuleDocument).items()
        )
        super().__init__((rule for rule in rules if rule is not None), types)

    def _compile(self, document: EventRuleDocument, types: TypeIndex, reusable: Rule | None) -> Rule | None:
        if reusable is not None and reusable.document == document:
            return reusable
        try:
            return Rule(document, types)
        except InvalidInput as error:
            self.unusable[document.name] = error
            return None


def compiled_rule_book() -> RuleBook[CompiledRuleSet]:
    return RuleBook(_compile_and_log, *_DOCUMENT_TYPES)


def _compile_and_log(documents: RuleSet, before: CompiledRuleSet | None) -> CompiledRuleSet:
    rules = CompiledRuleSet(documents, before)
    for name, error in rules.unusable.items():
        _log.error("rule cannot be used", rule=name, error=error)
    return rules

"""Compiles a rule set: event_rules, datapoint_types and systems become rules that can run.

No other module compiles rules.

Guarantee: documents that are the same as in the rule set before are not compiled again.

On failure: a stored event_rule that this version of Tocsin cannot compile is left out and listed in
`unusable`; the others stay in force. A rule book logs each such rule.
"""

from __future__ import annotations

import structlog

from rules.documents.load.recurrences import recurrence_of
from rules.documents.members import Members
from rules.documents.rule_book import RuleBook, RuleSet
from rules.engine import CompiledRules, HeartbeatRule, Rule, TypeIndex
from schemas.documents import (
    DatapointTypeDocument,
    EventRuleDocument,
    HeartbeatDocument,
    SystemDocument,
)
from schemas.values.rule_ref import RuleRef
from tocsin.core.errors import InvalidInput

_log = structlog.get_logger()
_DOCUMENT_TYPES = (EventRuleDocument, DatapointTypeDocument, SystemDocument, HeartbeatDocument)


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
        heartbeats = (
            self._compile_heartbeat(document, before) for document in documents.of(HeartbeatDocument).values()
        )
        super().__init__((rule for rule in (*rules, *heartbeats) if rule is not None), types)

    def _compile(self, document: EventRuleDocument, types: TypeIndex, reusable: Rule | None) -> Rule | None:
        if reusable is not None and reusable.document == document:
            return reusable
        try:
            return Rule(document, types)
        except InvalidInput as error:
            self.unusable[document.name] = error
            return None

    def _compile_heartbeat(self, document: HeartbeatDocument, before: CompiledRuleSet | None) -> Rule | None:
        name = str(RuleRef("heartbeat", document.name))
        earlier = None if before is None else before.rules.get(name)
        if isinstance(earlier, HeartbeatRule) and earlier.heartbeat == document:
            return earlier
        try:
            return heartbeat_rule(document)
        except InvalidInput as error:
            self.unusable[name] = error
            return None


def heartbeat_rule(document: HeartbeatDocument) -> HeartbeatRule:
    """The rule of a heartbeat. Its times do not depend on when it is applied, so it has no anchor."""
    if document.every is not None:
        return HeartbeatRule(document, None)
    return HeartbeatRule(document, recurrence_of(document, anchor=None, hash_id=document.name))


def compiled_rule_book() -> RuleBook[CompiledRuleSet]:
    return RuleBook(_compile_and_log, *_DOCUMENT_TYPES)


def _compile_and_log(documents: RuleSet, before: CompiledRuleSet | None) -> CompiledRuleSet:
    rules = CompiledRuleSet(documents, before)
    for name, error in rules.unusable.items():
        _log.error("rule cannot be used", rule=name, error=error)
    return rules

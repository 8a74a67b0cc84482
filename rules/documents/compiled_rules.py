"""The event_rules, datapoint_types and systems of one page of the rule book, compiled.

Guarantee: what did not change since the page before is not compiled again. On failure: a stored rule that this version
of the engine refuses is set aside, and said: the others still hold.
"""

from __future__ import annotations

import structlog

from rules.documents.members import Members
from rules.documents.rule_book import RuleSet
from rules.engine import CompiledRules, Rule, RuleInvalid, TypeIndex, compile_rule
from schemas.documents import DatapointTypeDocument, EventRuleDocument, SystemDocument

_log = structlog.get_logger()


class AlarmRules(CompiledRules):
    """`RuleBook(AlarmRules, *AlarmRules.KINDS)`"""

    KINDS = (EventRuleDocument, DatapointTypeDocument, SystemDocument)

    def __init__(self, rules: RuleSet, before: AlarmRules | None = None) -> None:
        self.members = Members(rules.of(SystemDocument).values())
        types = tuple(rules.of(DatapointTypeDocument).values())
        known: dict[str, Rule] = {}
        index = TypeIndex(types)
        if before is not None and before.types.types == index.types:
            known, index = before.rules, before.types
        compiled = (
            _compiled(document, index, known.get(name))
            for name, document in rules.of(EventRuleDocument).items()
        )
        super().__init__((rule for rule in compiled if rule is not None), index)


def _compiled(document: EventRuleDocument, types: TypeIndex, known: Rule | None) -> Rule | None:
    if known is not None and known.document == document:
        return known
    try:
        return compile_rule(document, types)
    except RuleInvalid as error:
        _log.error("rule cannot be used", rule=document.name, error=error)
        return None

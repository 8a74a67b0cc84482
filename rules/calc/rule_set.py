"""The calc_rules of one rule set, compiled, in an order in which each comes after those it reads.

Guarantee: rules that read each other in a circle are left out. An apply rejects them, so this
protects against stored documents only. Documents that did not change are not compiled again.

On failure: a stored calc_rule that this version of Tocsin cannot compile is logged and left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import structlog

from rules.calc.rule import CalcRule, CompiledInput
from rules.documents.rule_book import RuleBook, RuleSet
from rules.engine.patterns import MAX_CACHED_KEYS, PatternIndex
from rules.engine.types import TypeIndex
from schemas.documents import CalcRuleDocument, DatapointTypeDocument
from schemas.values.series_key import base_key
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import MICROSECOND

_log = structlog.get_logger()


class CalcRuleSet:
    def __init__(self, documents: RuleSet, before: CalcRuleSet | None = None) -> None:
        types = TypeIndex(documents.of(DatapointTypeDocument).values())
        reusable: Mapping[str, CalcRule] = {}
        if before is not None and before.types.types == types.types:
            reusable, types = {rule.name: rule for rule in before.rules}, before.types
        self.types: TypeIndex = types
        enabled = {name: rule for name, rule in documents.of(CalcRuleDocument).items() if rule.enabled}
        self.rules: tuple[CalcRule, ...] = tuple(
            rule
            for name in reading_order(enabled)
            if (rule := self._compile(enabled[name], reusable.get(name))) is not None
        )
        index = PatternIndex(
            (given.key, (rule, given)) for rule in self.rules for given in rule.inputs.values()
        )

        @lru_cache(maxsize=MAX_CACHED_KEYS)
        def readers(key: str) -> tuple[tuple[CalcRule, CompiledInput], ...]:
            return tuple(reader for reader in index.find(base_key(key)) if reader[1].reads(key))

        self.readers = readers
        """The rules and inputs that read the series of a key, apart from `where`."""

    def _compile(self, document: CalcRuleDocument, reusable: CalcRule | None) -> CalcRule | None:
        if reusable is not None and reusable.document == document:
            return reusable
        try:
            return CalcRule(document, self.types)
        except InvalidInput as error:
            _log.error("rule cannot be used", rule=document.name, error=error)
            return None

    def reads(self, key: str) -> bool:
        """Whether an input reads the series of a key."""
        return bool(self.readers(key))

    @property
    def span(self) -> int:
        """How far back the inputs read, in microseconds."""
        ranges = (given.range for rule in self.rules for given in rule.inputs.values())
        return max((range.over + range.offset for range in ranges), default=0)


def reading_order(documents: Mapping[str, CalcRuleDocument]) -> list[str]:
    """The names, each after those of the rules that it reads. Circles are left out."""
    ordered: list[str] = []
    waiting = dict(sorted(documents.items()))
    while waiting:
        ready = [name for name, rule in waiting.items() if not rule.sources & waiting.keys()]
        if not ready:
            break
        for name in ready:
            del waiting[name]
        ordered += ready
    return ordered


def reading_spans(documents: Mapping[str, CalcRuleDocument]) -> dict[str, int]:
    """How far back the inputs of each rule reach, with those of the rules that it reads."""
    spans: dict[str, int] = {}
    for name in reading_order(documents):
        rule = documents[name]
        own = max((rule.over(given) + rule.inputs[given].offset) // MICROSECOND for given in rule.inputs)
        spans[name] = own + max((spans.get(source, 0) for source in rule.sources), default=0)
    return spans


def calc_rule_book() -> RuleBook[CalcRuleSet]:
    return RuleBook(CalcRuleSet, CalcRuleDocument, DatapointTypeDocument)

"""The rules that hold together, and which of them an input can concern.

Guarantee: `for_key` and `for_event` leave out no rule that could judge the input, and come in the order of the rules'
names. Answers are remembered, so a datapoint costs one look-up and the rules that cover it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from rules.engine.patterns import MOST_KEPT, PatternIndex
from rules.engine.rule import Rule, stale_rules
from rules.engine.types import NO_TYPES, TypeIndex


class CompiledRules:
    """Make a new one when a rule or a type changes. Rules that are not enabled are left out; those that
    `on_stale: alarm` stands for are added."""

    def __init__(self, rules: Iterable[Rule], types: TypeIndex = NO_TYPES) -> None:
        rules = list(rules)
        holding = [rule for rule in (*rules, *stale_rules(types)) if rule.document.enabled]
        self.disabled = frozenset(rule.name for rule in rules if not rule.document.enabled)
        self.types = types
        self.rules = {rule.name: rule for rule in sorted(holding, key=lambda rule: rule.name)}
        over_events = [rule for rule in self.rules.values() if rule.document.event is not None]
        over_series = PatternIndex(
            (rule.document.datapoint, rule)
            for rule in self.rules.values()
            if rule.document.datapoint is not None
        )

        @lru_cache(maxsize=MOST_KEPT)
        def for_key(key: str) -> tuple[Rule, ...]:
            return tuple(rule for rule in over_series.find(key) if rule.is_confined_to(key))

        @lru_cache(maxsize=MOST_KEPT)
        def for_event(type: str) -> tuple[Rule, ...]:
            return tuple(rule for rule in over_events if rule.covers_event(type))

        self.for_key = for_key
        self.for_event = for_event

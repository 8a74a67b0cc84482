"""Rules that are in force together, with an index from an input to the rules that evaluate it.

Guarantee: `for_key` and `for_event` return every rule that can evaluate the input, by name. Results
are cached, so a datapoint costs one lookup and the evaluation of the rules that cover it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from rules.engine.heartbeat_rule import HeartbeatRule
from rules.engine.patterns import MAX_CACHED_KEYS, PatternIndex
from rules.engine.rule import Rule, stale_rules
from rules.engine.types import NO_TYPES, TypeIndex
from schemas.values.series_key import base_key


class CompiledRules:
    """An immutable set of enabled rules, with those that `on_stale: alarm` implies."""

    def __init__(self, rules: Iterable[Rule], types: TypeIndex = NO_TYPES) -> None:
        rules = list(rules)
        enabled = [rule for rule in (*rules, *stale_rules(types)) if rule.document.enabled]
        self.disabled = frozenset(rule.name for rule in rules if not rule.document.enabled)
        self.types = types
        self.rules = {rule.name: rule for rule in sorted(enabled, key=lambda rule: rule.name)}
        over_events = [rule for rule in self.rules.values() if rule.document.datapoint is None]
        over_series = PatternIndex(
            (rule.document.datapoint, rule)
            for rule in self.rules.values()
            if rule.document.datapoint is not None
        )

        @lru_cache(maxsize=MAX_CACHED_KEYS)
        def for_key(key: str) -> tuple[Rule, ...]:
            return tuple(rule for rule in over_series.find(base_key(key)) if rule.covers_type_of(key))

        @lru_cache(maxsize=MAX_CACHED_KEYS)
        def for_event(type: str, about: str = "") -> tuple[Rule, ...]:
            return tuple(rule for rule in over_events if rule.covers_event(type, about))

        self.has_rechecks = any(
            rule.is_heartbeat
            or rule.window is not None
            or (rule.document.datapoint is not None and not rule.is_per_series)
            for rule in self.rules.values()
        )
        """Whether a state may change although nothing arrives."""
        self.heartbeats = tuple(rule for rule in self.rules.values() if isinstance(rule, HeartbeatRule))
        self.for_key = for_key
        self.for_event = for_event

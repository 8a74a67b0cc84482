"""Conditions of an event_rule as CEL, and its threshold in words.

Guarantee: `above: 65` is exactly `fire: value > 65.0`, and the other shorthands likewise. A rule is
evaluated in the same way, however it was written.
"""

from __future__ import annotations

from typing import NamedTuple

from rules.engine.composite import Composite
from schemas.documents.event_rule import EventRuleDocument
from schemas.values.severities import level

STALE_THRESHOLD = "stale"


class ConditionTexts(NamedTuple):
    """`clear` is None if the alarm ends as soon as `fire` is false."""

    fire: str
    clear: str | None
    threshold: str
    """A text that follows "is", such as "above 65"."""
    levels: tuple[Level, ...] = ()
    """From the lowest severity."""


class Level(NamedTuple):
    """One of several thresholds of a rule."""

    severity: int
    threshold: float
    text: str
    is_above: bool

    def is_reached(self, value: float) -> bool:
        return value > self.threshold if self.is_above else value < self.threshold


def conditions_of(rule: EventRuleDocument) -> ConditionTexts:
    levels = _levels(rule)
    fire, threshold = _fire(rule, levels)
    return ConditionTexts(fire, rule.clear, threshold, levels)


def number_text(number: float) -> str:
    """A number as people write it: 65, not 65.0."""
    return repr(int(number)) if abs(number) < 1e15 and number == int(number) else repr(number)


def _levels(rule: EventRuleDocument) -> tuple[Level, ...]:
    for thresholds, word in ((rule.above, "above"), (rule.below, "below")):
        if isinstance(thresholds, dict):
            return tuple(
                sorted(
                    Level(level(name), number, f"{word} {number_text(number)}", word == "above")
                    for name, number in thresholds.items()
                )
            )
    return ()


def _fire(rule: EventRuleDocument, levels: tuple[Level, ...]) -> tuple[str, str]:
    if levels:
        lowest = levels[0]
        return f"value {'>' if lowest.is_above else '<'} {_double(lowest.threshold)}", lowest.text
    if isinstance(rule.above, int | float):
        return f"value > {_double(rule.above)}", f"above {number_text(rule.above)}"
    if isinstance(rule.below, int | float):
        return f"value < {_double(rule.below)}", f"below {number_text(rule.below)}"
    if rule.rate_increase is not None:
        text = number_text(rule.rate_increase)
        return f"rate > {_double(rule.rate_increase)}", f"rising by more than {text} a second"
    if rule.absent:
        return 'freshness == "stale"', STALE_THRESHOLD
    if rule.alarms is not None:
        return "true", Composite(rule.alarms).text
    fire = rule.fire or "true"
    return fire, " ".join(fire.split())


def _double(number: float) -> str:
    """A CEL literal of type double."""
    text = repr(float(number))
    return text if "." in text or "e" in text or "n" in text else f"{text}.0"

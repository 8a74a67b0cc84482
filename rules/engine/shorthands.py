"""The conditions of an event_rule as CEL, and its threshold in words.

Guarantee: `above: 65` is exactly `fire: value > 65.0`; the other shorthands likewise. There is one way in which
a rule is judged, whichever way it was written.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.documents.event_rule import EventRuleDocument


class Conditions(NamedTuple):
    """`clear` is None when the alarm ends as soon as `fire` is false."""

    fire: str
    clear: str | None
    threshold: str
    """As it follows "is": "above 65"."""


def conditions_of(rule: EventRuleDocument) -> Conditions:
    fire, threshold = _fire(rule)
    return Conditions(fire, rule.clear, threshold)


def number_text(number: float) -> str:
    """A number as people write it: 65, not 65.0."""
    return repr(int(number)) if abs(number) < 1e15 and number == int(number) else repr(number)


def _fire(rule: EventRuleDocument) -> tuple[str, str]:
    if rule.above is not None:
        return f"value > {_double(rule.above)}", f"above {number_text(rule.above)}"
    if rule.below is not None:
        return f"value < {_double(rule.below)}", f"below {number_text(rule.below)}"
    if rule.rate_increase is not None:
        text = number_text(rule.rate_increase)
        return f"rate > {_double(rule.rate_increase)}", f"rising by more than {text} a second"
    if rule.absent:
        return 'freshness == "stale"', "silent"
    fire = rule.fire or "true"
    return fire, " ".join(fire.split())


def _double(number: float) -> str:
    """A CEL literal of type double."""
    text = repr(float(number))
    return text if "." in text or "e" in text or "n" in text else f"{text}.0"

"""Refuses evaluations that could take long, before they begin.

Guarantee: an evaluation whose cost (`cost.py`) exceeds the bound is not begun, and `problem` returns
the reason. A condition that is cheap for all data has no guard.

Why one number first: most events are small, and one comparison permits them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rules.language.cel.bound_facts import BoundFacts, DataSize, size_of
from rules.language.cel.checked_ast import AstNode
from rules.language.cel.cost import LARGEST_TOTAL, MAX_COST_NS, Cost, cost_of

TOO_EXPENSIVE = "too expensive for this data"
# Of an event with a payload of a few members.
_SMALL = DataSize(items=20, longest_list=2, characters=200, longest_text=50)


class CostGuard:
    __slots__ = ("_cost", "_small_until")

    def __init__(self, cost: Cost, small_until: int) -> None:
        self._cost = cost
        self._small_until = small_until

    @classmethod
    def of(cls, root: AstNode) -> CostGuard | None:
        """None if the condition is cheap for all data."""
        cost = cost_of(root)
        small_until = cost.small_until()
        return cls(cost, small_until) if small_until < LARGEST_TOTAL else None

    def problem(self, facts: BoundFacts | Mapping[str, Any]) -> str | None:
        """The reason why an evaluation with these facts is refused; None if it is permitted."""
        if isinstance(facts, BoundFacts):
            if facts.total <= self._small_until:
                return None
            size = facts.size
        else:
            size = size_of(facts)
        if self._cost.of(size) <= MAX_COST_NS:
            return None
        return (
            f"{TOO_EXPENSIVE} ({size.items} items, the largest list has {size.longest_list}, "
            f"the longest text {size.longest_text} characters)"
        )


def is_too_expensive(root: AstNode) -> bool:
    """Whether not even an evaluation with little data is permitted."""
    return cost_of(root).of(_SMALL) > MAX_COST_NS

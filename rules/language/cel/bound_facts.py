"""The variables of one evaluation, bound for the engine, and their size.

Guarantee: `size` counts everything that a condition can read. It is computed once, and only if a
condition needs it: the cost of most conditions is small whatever the data (`cost.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cel_expr_python import cel

# The longest text of a number is 25 characters; most have fewer than this.
_SCALAR_LENGTH = 8


class DataSize(NamedTuple):
    """The size of data, in the measures that bound the cost of operations on it."""

    items: int
    """Members of lists and objects, at all levels."""
    longest_list: int
    """Members of the largest list or object."""
    characters: int
    """Of all texts together."""
    longest_text: int

    @property
    def total(self) -> int:
        """No measure is larger."""
        return self.items + self.characters


class BoundFacts:
    __slots__ = ("_size", "_total", "_variables", "activation")

    def __init__(self, env: cel.Env, variables: Mapping[str, Any]) -> None:
        self.activation = env.Activation(variables)
        self._variables = variables
        self._size: DataSize | None = None
        self._total: int | None = None

    @property
    def total(self) -> int:
        if self._total is None:
            self._total = self.size.total
        return self._total

    @property
    def size(self) -> DataSize:
        if self._size is None:
            self._size = size_of(self._variables)
        return self._size


def size_of(variables: Mapping[str, Any]) -> DataSize:
    items = longest_list = characters = longest_text = 0
    pending: list[Any] = [variables]
    while pending:
        value = pending.pop()
        members = value
        if isinstance(value, Mapping):
            lengths = list(map(len, value))
            characters += sum(lengths)
            longest_text = max(longest_text, *lengths, 0)
            members = value.values()
        items += len(value)
        longest_list = max(longest_list, len(value))
        for member in members:
            if isinstance(member, str):
                characters += len(member)
                longest_text = max(longest_text, len(member))
            elif isinstance(member, Mapping | list):
                pending.append(member)
    return DataSize(items, longest_list, characters + _SCALAR_LENGTH * items, longest_text)

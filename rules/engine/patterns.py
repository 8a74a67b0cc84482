"""From a key to everything whose pattern covers it.

Guarantee: `find` gives what a comparison with every pattern would give, in the order in which they were given.
It walks a tree of the parts, so the cost is that of the key's own parts, not of the number of patterns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

MOST_KEPT = 200_000
"""Keys for which an answer is remembered, by those who ask."""

T = TypeVar("T")
_HERE = ""


class PatternIndex(Generic[T]):
    def __init__(self, items: Iterable[tuple[str, T]]) -> None:
        self._root: dict[str, Any] = {}
        for place, (pattern, item) in enumerate(items):
            node = self._root
            for part in pattern.split("."):
                node = node.setdefault(part, {})
            node.setdefault(_HERE, []).append((place, item))

    def find(self, key: str) -> tuple[T, ...]:
        found: dict[int, T] = {}
        _collect(self._root, key.split("."), 0, found)
        return tuple(found[place] for place in sorted(found))


def _collect(node: dict[str, Any], parts: list[str], place: int, found: dict[int, Any]) -> None:
    if place == len(parts):
        found.update(node.get(_HERE, ()))
        return
    for label in (parts[place], "*"):
        if label in node:
            _collect(node[label], parts, place + 1, found)
    if "**" in node:
        for after in range(place + 1, len(parts) + 1):
            _collect(node["**"], parts, after, found)

"""Index from a key to everything whose pattern covers it.

Guarantee: `find` returns what a comparison with every pattern would return, in the order of the
items. It walks a tree of the parts of the patterns, so the cost depends on the parts of the key and
not on the number of patterns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

MAX_CACHED_KEYS = 200_000
"""Keys whose result a caller caches."""

T = TypeVar("T")
_ITEMS = ""


class PatternIndex(Generic[T]):
    def __init__(self, items: Iterable[tuple[str, T]]) -> None:
        self._root: dict[str, Any] = {}
        for position, (pattern, item) in enumerate(items):
            node = self._root
            for part in pattern.split("."):
                node = node.setdefault(part, {})
            node.setdefault(_ITEMS, []).append((position, item))

    def find(self, key: str) -> tuple[T, ...]:
        items: dict[int, T] = {}
        _collect(self._root, key.split("."), 0, items)
        return tuple(items[position] for position in sorted(items))


def _collect(node: dict[str, Any], parts: list[str], depth: int, items: dict[int, Any]) -> None:
    if depth == len(parts):
        items.update(node.get(_ITEMS, ()))
        return
    for label in (parts[depth], "*"):
        if label in node:
            _collect(node[label], parts, depth + 1, items)
    if "**" in node:
        for after in range(depth + 1, len(parts) + 1):
            _collect(node["**"], parts, after, items)

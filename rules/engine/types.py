"""Index from a key to its datapoint_type.

Guarantee: if several types cover a key, the most specific one is its type (part by part, text
before `*` before `**`), then the first by name; the order of files has no effect. The health of a
system has no type: Tocsin itself writes it when it changes, and it is never stale. A key may be the
key of a series with its dimensions, or without them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache

from rules.engine.patterns import MAX_CACHED_KEYS, PatternIndex
from rules.language.cel.series import ValueKind
from schemas.documents.datapoint_type import DatapointTypeDocument
from schemas.values.key_pattern import overlap, specificity
from schemas.values.series_key import base_key, series_key
from schemas.wire.calculated import HEALTH_KEY


class TypeIndex:
    def __init__(self, types: Iterable[DatapointTypeDocument] = ()) -> None:
        self.types = tuple(sorted(types, key=lambda type: (specificity(type.key), type.name)))
        index = PatternIndex((type.key, type) for type in self.types)

        @lru_cache(maxsize=MAX_CACHED_KEYS)
        def of(key: str) -> DatapointTypeDocument | None:
            return None if key == HEALTH_KEY else next(iter(index.find(base_key(key))), None)

        self.of = of
        self.has_dimensions = any(type.dimensions for type in self.types)

    def series_key(self, key: str, labels: dict[str, str]) -> str:
        """The key of the series of a datapoint, with the dimensions of its type.

        `ValueError` if it is too long.
        """
        if not self.has_dimensions:
            return key
        type = self.of(key)
        return key if type is None else series_key(key, labels, type.dimensions)

    def stale_after(self, key: str) -> timedelta | None:
        """The time after an arrival at which the series becomes stale; None if it is not watched."""
        type = self.of(key)
        return None if type is None else type.stale_after

    def holds(self, key: str) -> bool:
        """Whether the last value of a stale series stays valid (`on_stale: hold`)."""
        type = self.of(key)
        return type is not None and type.on_stale == "hold"

    def labels(self, key: str, labels: dict[str, str]) -> dict[str, str]:
        """The labels of a datapoint with those of its type; its own labels take precedence."""
        type = self.of(key)
        return labels if type is None or not type.labels else {**type.labels, **labels}

    def is_counter(self, key: str) -> bool:
        type = self.of(key)
        return type is not None and type.counter

    def unit(self, key: str) -> str:
        type = self.of(key)
        return "" if type is None else type.unit

    def kind(self, pattern: str) -> ValueKind | None:
        """The kind of the values of every series that the pattern covers; None if types differ."""
        kinds = {type.value for type in self.covering(pattern)}
        return kinds.pop() if len(kinds) == 1 else None

    def is_watched(self, pattern: str) -> bool:
        """Whether any series that the pattern covers can become stale."""
        return any(type.stale_after is not None for type in self.covering(pattern))

    def covering(self, pattern: str) -> list[DatapointTypeDocument]:
        """The types of the series that the pattern covers."""
        if "*" not in pattern:
            type = self.of(pattern)
            return [] if type is None else [type]
        return [type for type in self.types if overlap(type.key, pattern)]


NO_TYPES = TypeIndex()

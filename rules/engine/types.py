"""Which datapoint_type holds for a key.

Guarantee: of several types that cover a key the most specific one holds (part by part, text before `*` before `**`),
then the first by name: never a matter of the order of files. The health of a system has no type: it is ours, speaks
when it changes, and is never stale.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache

from rules.engine.patterns import MOST_KEPT, PatternIndex
from rules.language.cel.series import ValueKind
from schemas.documents.datapoint_type import DatapointTypeDocument
from schemas.values.key_pattern import overlap, specificity
from schemas.wire.calculated import HEALTH_KEY


class TypeIndex:
    def __init__(self, types: Iterable[DatapointTypeDocument] = ()) -> None:
        self.types = tuple(sorted(types, key=lambda one: (specificity(one.key), one.name)))
        index = PatternIndex((one.key, one) for one in self.types)

        @lru_cache(maxsize=MOST_KEPT)
        def of(key: str) -> DatapointTypeDocument | None:
            return None if key == HEALTH_KEY else next(iter(index.find(key)), None)

        self.of = of

    def stale_after(self, key: str) -> timedelta | None:
        """How long after an arrival the series is stale; None: it is not watched."""
        found = self.of(key)
        return None if found is None else found.stale_after

    def holds(self, key: str) -> bool:
        """Whether the last value of a silent series still holds."""
        found = self.of(key)
        return found is not None and found.on_stale == "hold"

    def labels(self, key: str, labels: dict[str, str]) -> dict[str, str]:
        """The labels of a datapoint: those of its type, and its own, which win."""
        found = self.of(key)
        return labels if found is None or not found.labels else {**found.labels, **labels}

    def kind(self, pattern: str) -> ValueKind | None:
        """What the values of every series that the pattern covers are, if all types agree."""
        kinds = {one.value for one in self._covering(pattern)}
        return kinds.pop() if len(kinds) == 1 else None

    def is_watched(self, pattern: str) -> bool:
        """Whether some series that the pattern covers can ever be stale."""
        return any(one.stale_after is not None for one in self._covering(pattern))

    def _covering(self, pattern: str) -> list[DatapointTypeDocument]:
        if "*" not in pattern:
            found = self.of(pattern)
            return [] if found is None else [found]
        return [one for one in self.types if overlap(one.key, pattern)]


NO_TYPES = TypeIndex()

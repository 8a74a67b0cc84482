"""Series about which nothing can be decided yet: remembered, so that most batches need not read them.

Guarantee: a series is calm up to an instant if it is fresh and its watchdog, armed with the tolerance of its type, is
due later; or if it is not watched at all. Until then nobody can find it stale, whoever holds its partition: a verdict
needs a deadline that has passed, and a deadline only moves on. What else could change it is an apply: then everything
is forgotten.

Why it is worth it: reading a series costs more than storing a datapoint, and of a hundred arrivals ninety-nine change
nothing but the value.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from rules.alarms.staleness import Key, StoredSeries
from rules.engine import TypeIndex

_NEVER = datetime.max.replace(tzinfo=UTC)
_MOST = 200_000


class CalmSeries:
    """What a worker remembers, of all its partitions."""

    def __init__(self) -> None:
        self._rules_seq = -1
        self._due_at: dict[Key, datetime] = {}

    def under(self, rules_seq: int, types: TypeIndex) -> Calm:
        """For a batch that is judged by the documents of this apply."""
        if rules_seq != self._rules_seq or len(self._due_at) > _MOST:
            # Anew, not emptied: a batch under older rules may still be at work with what it has.
            self._rules_seq, self._due_at = rules_seq, {}
        return Calm(self._due_at, types)


class Calm:
    def __init__(self, due_at: dict[Key, datetime], types: TypeIndex) -> None:
        self._due_at = due_at
        self._types = types

    def up_to(self, series: Iterable[Key], until: datetime) -> set[Key]:
        """Those that are calm up to and including `until`."""
        return {key for key in series if (due_at := self._due_at.get(key)) is not None and due_at > until}

    def learn(self, stored: Iterable[StoredSeries]) -> None:
        for one in stored:
            due_at = _NEVER if one.within is None else one.nominal_at
            if one.stale_since is None and one.within == self._types.deadline(one.key) and due_at is not None:
                self._due_at[one.owner, one.key] = due_at

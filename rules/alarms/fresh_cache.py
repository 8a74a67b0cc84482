"""Caches the series that are known to be fresh, so that most batches can skip reading them.

Guarantee: the cache calls a series fresh up to an instant only if one of these holds: it is fresh
and its watchdog, armed with the `stale_after` of its type, is due later; or it is not watched at
all. Until then no worker can find it stale, whichever worker holds its partition: staleness needs a
deadline that has passed, and a deadline only moves into the future. Only an apply can change that,
and it empties the cache.

Why: reading a series costs more than storing a datapoint, and 99 of 100 arrivals change nothing but
the value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

from rules.alarms.staleness import SeriesKey, StoredSeries
from rules.engine import TypeIndex

_NEVER = datetime.max.replace(tzinfo=UTC)
_MAX_SERIES = 200_000


class NewestTimestamps:
    """The newest `ts` of series of one partition, as of a position of the lane.

    A batch continues it if the lane is still there. Otherwise another worker has read on, or the
    batch was planned before and did not commit, and the series are read again.
    """

    def __init__(self) -> None:
        self.last_seq: int | None = None
        self.by_series: dict[SeriesKey, datetime] = {}

    def continue_from(self, last_seq: int | None) -> None:
        if last_seq is None or last_seq != self.last_seq or len(self.by_series) > _MAX_SERIES:
            self.by_series.clear()


class FreshCache:
    """The cache of one worker, for all its partitions."""

    def __init__(self) -> None:
        self.newest: defaultdict[int, NewestTimestamps] = defaultdict(NewestTimestamps)
        self._rules_seq = -1
        self._due_at: dict[SeriesKey, datetime] = {}

    def for_rules(self, rules_seq: int, types: TypeIndex, partition: int = 0) -> FreshSeries:
        """The entries that are valid for a batch under the rules of this apply."""
        if rules_seq != self._rules_seq or len(self._due_at) > _MAX_SERIES:
            # A new dictionary: a batch under older rules may still use the former one.
            self._rules_seq, self._due_at = rules_seq, {}
        return FreshSeries(self._due_at, types, self.newest[partition].by_series)


class FreshSeries:
    def __init__(
        self, due_at: dict[SeriesKey, datetime], types: TypeIndex, newest: dict[SeriesKey, datetime]
    ) -> None:
        self._due_at = due_at
        self._types = types
        self.newest = newest
        """The newest `ts` of series, if it is known."""

    def fresh_until(self, series: Iterable[SeriesKey], until: datetime) -> set[SeriesKey]:
        """Those of the series that are fresh up to and including `until`, and whose `ts` is known."""
        newest = self.newest
        return {
            key
            for key in series
            if key in newest and (due_at := self._due_at.get(key)) is not None and due_at > until
        }

    def remember(self, stored: Iterable[StoredSeries]) -> None:
        for series in stored:
            self.newest[series.owner, series.key] = series.ts
            due_at = _NEVER if series.stale_after is None else series.nominal_at
            is_armed_as_typed = series.stale_after == self._types.stale_after(series.key)
            if series.stale_since is None and is_armed_as_typed and due_at is not None:
                self._due_at[series.owner, series.key] = due_at

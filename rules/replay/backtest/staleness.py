"""The series of one owner through a replay: when they went stale, whatever became of their types.

Guarantee: silences are those of `rules.alarms.staleness`, which the live system uses. They are looked for only when one
can be due: an arrival moves a deadline only into the future, so the earliest one known is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Literal

from rules.alarms.staleness import PassedDeadline, StalenessTracker, StoredSeries, TrackedSeries
from rules.engine import Arrival, TypeIndex, WentStale
from rules.health.observations import Fact
from rules.replay.backtest.recording.model import LastSeen

News = Literal["fresh", "new"]
"""A series is fresh again, or was never seen before."""
_NEVER = datetime.max.replace(tzinfo=UTC)


class SilentSeries:
    def __init__(self, owner: str, types: TypeIndex, last: Iterable[LastSeen] = ()) -> None:
        self._owner = owner
        self._types = types
        self._known: dict[str, TrackedSeries] = {}
        self.next_due = _NEVER
        self._tracker = StalenessTracker((), types, track_unwatched=True)
        for one in last:
            self.arrive(Arrival(one.arrived_at, 0, owner, one.key, one.value, one.ts, one.labels))

    def due(self, until: datetime) -> list[PassedDeadline]:
        if until >= self.next_due:
            self._look_ahead()
        if until < self.next_due:
            return []
        found = self._tracker.pass_deadlines(self._owner, until)
        self._look_ahead()
        return found

    def arrive(self, given: Arrival) -> News | None:
        """This runs for every datapoint, and most series are known and fresh."""
        known = self._known.get(given.key)
        if known is not None and known.stale_since is None:
            known.arrive(given)
            return None
        is_new = self._tracker.find(self._owner, given.key) is None
        is_fresh_again = self._tracker.arrive(given)
        known = self._tracker.find(self._owner, given.key)
        assert known is not None, "every series is tracked"
        self._known[given.key] = known
        if known.stale_after is not None:
            self.next_due = min(self.next_due, given.at + known.stale_after)
        return "fresh" if is_fresh_again else "new" if is_new else None

    def retype(self, types: TypeIndex, watermark: datetime) -> None:
        """As `ChangedWatchdogs`: a tolerance that changed counts from the change, a series that is stale stays so."""
        if types.types == self._types.types:
            return
        stored = [self._stored(one, types, watermark) for one in self._tracker.series_of(self._owner)]
        self._tracker = StalenessTracker(stored, types, track_unwatched=True)
        self._known.clear()
        self._types = types
        self._look_ahead()

    def stale(self, at: datetime, told_at: datetime) -> list[WentStale]:
        """What a rule hears that begins to judge them at an instant."""
        return [
            WentStale(at, one.owner, one.key, one.arrived_at, one.value, one.ts, one.labels, told_at)
            for one in sorted(self._tracker.series_of(self._owner), key=lambda one: one.key)
            if one.stale_since is not None
        ]

    def facts(self, at: datetime) -> Iterator[Fact]:
        """How the series stand, for systems that they become members of."""
        for one in self._tracker.series_of(self._owner):
            if one.stale_since is None:
                yield Fact(one.owner, at, "fresh", one.key)
            else:
                yield Fact(one.owner, one.stale_since, "stale", one.key)

    def _stored(self, one: TrackedSeries, types: TypeIndex, watermark: datetime) -> StoredSeries:
        stale_after = types.stale_after(one.key)
        nominal_at = one.deadline
        if stale_after is not None and stale_after != one.stale_after:
            nominal_at = max(one.arrived_at + stale_after, watermark)
        return StoredSeries(
            one.owner,
            one.key,
            one.arrived_at,
            one.value,
            one.ts,
            one.labels,
            one.stale_since,
            one.handled_stale_since,
            stale_after,
            nominal_at,
        )

    def _look_ahead(self) -> None:
        self.next_due = _NEVER
        for one in self._tracker.series_of(self._owner):
            deadline = one.deadline
            if deadline is not None and deadline < self.next_due:
                self.next_due = deadline

"""Staleness of one owner's series, across changes of their datapoint_types.

Guarantee: a series becomes stale as it does live (`rules.alarms.staleness`). Deadlines are searched
only if one can be due: an arrival moves a deadline only into the future, so the earliest known
deadline is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal

from rules.alarms.staleness import (
    NO_GAPS,
    StalenessTracker,
    StoredSeries,
    TrackedSeries,
    extended_deadline,
)
from rules.engine import Arrival, TypeIndex, WentStale
from rules.health.observations import Observation
from rules.lanes.arrival_gap import ArrivalGap

FreshnessChange = Literal["fresh", "new"]
"""A stale series became fresh, or a series sent its first datapoint."""
_NEVER = datetime.max.replace(tzinfo=UTC)


class OwnerStaleness:
    def __init__(self, owner: str, types: TypeIndex, gaps: Sequence[ArrivalGap] = NO_GAPS) -> None:
        """`gaps` are all arrival gaps of the partition of the owner."""
        self._owner = owner
        self._types = types
        self._gaps = gaps
        self._fresh: dict[str, TrackedSeries] = {}
        """Series by key that were fresh at their last arrival."""
        self._tracker = StalenessTracker((), types, gaps, track_unwatched=True)
        self.next_due = _NEVER
        """A lower bound of the next deadline."""

    def arrive(self, arrival: Arrival) -> FreshnessChange | None:
        """Follow an arrival. This runs for every datapoint, and most series are fresh."""
        series = self._fresh.get(arrival.key)
        if series is not None and series.stale_since is None:
            series.arrive(arrival)
            return None
        is_new = self._tracker.find(self._owner, arrival.key) is None
        is_fresh_again = self._tracker.arrive(arrival)
        series = self._tracker.find(self._owner, arrival.key)
        assert series is not None, "every series is tracked"
        self._fresh[arrival.key] = series
        if series.stale_after is not None:
            self.next_due = min(self.next_due, arrival.at + series.stale_after)
        return "fresh" if is_fresh_again else "new" if is_new else None

    def is_late(self, arrival: Arrival) -> bool:
        """Whether the `ts` of an arrival is older than the newest of its series."""
        series = self._fresh.get(arrival.key) or self._tracker.find(self._owner, arrival.key)
        return series is not None and arrival.ts < series.ts

    def pass_deadlines(self, until: datetime) -> list[WentStale]:
        """The series that become stale at or before an instant, in order."""
        if until >= self.next_due:
            self._find_next_due()
        if until < self.next_due:
            return []
        passed = self._tracker.pass_deadlines(self._owner, until)
        self._find_next_due()
        return [deadline.input for deadline in passed]

    def change_types(self, types: TypeIndex, watermark: datetime) -> None:
        """Change the datapoint_types, as `ChangedWatchdogs` does live.

        A tolerance that changed counts from the watermark. A stale series stays stale.
        """
        if types.types == self._types.types:
            return
        stored = [
            _stored(series, types, watermark, self._gaps) for series in self._tracker.series_of(self._owner)
        ]
        self._tracker = StalenessTracker(stored, types, self._gaps, track_unwatched=True)
        self._fresh.clear()
        self._types = types
        self._find_next_due()

    def deadlines(self) -> list[datetime]:
        """The deadlines of the series that are fresh and watched."""
        deadlines = (series.deadline for series in self._tracker.series_of(self._owner))
        return sorted(deadline for deadline in deadlines if deadline is not None)

    def stale_series(self) -> list[TrackedSeries]:
        """The series that are stale, by key."""
        return self._tracker.stale_series()

    def stale_inputs(self, at: datetime, reevaluated_at: datetime) -> list[WentStale]:
        """The inputs of a rule that begins to evaluate the series at an instant."""
        return [
            WentStale(
                at,
                series.owner,
                series.key,
                series.arrived_at,
                series.value,
                series.ts,
                series.labels,
                reevaluated_at,
            )
            for series in self.stale_series()
        ]

    def observations(self, at: datetime) -> Iterator[Observation]:
        """The freshness of all series, for the systems that they become members of."""
        for series in self._tracker.series_of(self._owner):
            if series.stale_since is None:
                yield Observation(series.owner, at, "fresh", series.key)
            else:
                yield Observation(series.owner, series.stale_since, "stale", series.key)

    def _find_next_due(self) -> None:
        self.next_due = _NEVER
        for series in self._tracker.series_of(self._owner):
            deadline = series.deadline
            if deadline is not None and deadline < self.next_due:
                self.next_due = deadline


def _stored(
    series: TrackedSeries, types: TypeIndex, watermark: datetime, gaps: Sequence[ArrivalGap]
) -> StoredSeries:
    stale_after = types.stale_after(series.key)
    nominal_at = series.deadline
    if stale_after is not None and stale_after != series.stale_after:
        nominal_at = max(extended_deadline(series.arrived_at, stale_after, gaps), watermark)
    return StoredSeries(
        series.owner,
        series.key,
        series.arrived_at,
        series.value,
        series.ts,
        series.labels,
        series.stale_since,
        series.handled_stale_since,
        stale_after,
        nominal_at,
    )

"""Staleness of series: the deadline of a series, and the calculated datapoints about it. Pure.

This is the one definition. Workers, rule tests and backtests call it. The clock does the same in
SQL (`tocsin.series_deadline`, `clock/sql/append_staleness.sql`); a test holds both equal.

Guarantee: staleness depends on arrivals alone. A watched series is stale at its deadline, if nothing
arrived before. An arrival at the very instant of the deadline comes after it. The deadlines of an
owner pass in order, each once: those that the clock has not recorded yet, and those that it has
recorded and the rules have not processed.

The deadline is the last arrival plus the `stale_after` of the type, extended by the arrival gaps of
the partition (`extended_deadline`): while nothing could arrive, no series is late. It is known once
a message has arrived at the deadline or after it, because every gap that began before is recorded
by then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from rules.engine import Arrival, TypeIndex, Value, WentStale
from rules.lanes.arrival_gap import ArrivalGap
from timers.identity import staleness_id
from tocsin.core.records import NewCalculated

NO_GAPS: Sequence[ArrivalGap] = ()
SeriesKey = tuple[str, str]
"""Owner and key of a series."""


def extended_deadline(arrived_at: datetime, stale_after: timedelta, gaps: Sequence[ArrivalGap]) -> datetime:
    """The deadline of a series, from its last arrival and the arrival gaps of its partition.

    The first gap after the arrival gives the whole tolerance again: a producer that could not
    publish needs time to resume. Every later gap adds its length only. Otherwise a series with a
    tolerance of 25 hours would never become stale if there is a gap every night. Gaps that begin at
    the deadline or after it have no effect. `gaps` are in order and do not overlap.

    A later arrival, or one more gap, never makes the deadline earlier.
    """
    deadline = arrived_at + stale_after
    if not gaps:
        return deadline
    first = bisect_left(gaps, arrived_at, key=attrgetter("began_at"))
    for number in range(first, len(gaps)):
        began_at, ended_at = gaps[number]
        if began_at >= deadline:
            break
        deadline = ended_at + stale_after if number == first else deadline + (ended_at - began_at)
    return deadline


class StoredSeries(NamedTuple):
    """A row of rules.alarms/read_series.

    A series that cannot become stale in the batch has no value and no labels.
    """

    owner: str
    key: str
    arrived_at: datetime
    value: Value
    ts: datetime
    labels: dict[str, str]
    stale_since: datetime | None
    handled_stale_since: datetime | None
    stale_after: timedelta | None
    """The duration that its watchdog is armed with; None: it has no watchdog."""
    nominal_at: datetime | None
    """When the watchdog is due, which is never later than the deadline."""


@dataclass(slots=True)
class TrackedSeries:
    owner: str
    key: str
    stale_after: timedelta | None
    """The duration of its type; None: the series is not watched."""
    stored: StoredSeries | None
    arrived_at: datetime
    value: Value
    ts: datetime
    labels: dict[str, str]
    stale_since: datetime | None = None
    handled_stale_since: datetime | None = None
    is_watchdog_expired: bool = False
    """A deadline passed here that the clock had not recorded."""
    gaps: Sequence[ArrivalGap] = NO_GAPS
    """The arrival gaps of its partition, from its stored arrival on."""

    @property
    def deadline(self) -> datetime | None:
        """The instant at which the series becomes stale.

        None: it is not watched, or the rules have processed its staleness.
        """
        if self.stale_since is not None:
            return None if self.handled_stale_since == self.stale_since else self.stale_since
        if self.stale_after is None:
            return None
        deadline = extended_deadline(self.arrived_at, self.stale_after, self.gaps)
        stored = self.stored
        if stored is None or stored.stale_after != self.stale_after or stored.nominal_at is None:
            return deadline
        # An apply may have changed `stale_after` since the arrival. It then counts from the change,
        # and only the watchdog has that instant.
        return max(deadline, stored.nominal_at)

    @property
    def needs_watchdog(self) -> bool:
        return self.stale_after is not None and self.stale_since is None

    @property
    def is_changed(self) -> bool:
        """Whether its freshness or its watchdog differs from what is stored."""
        stored = self.stored
        if stored is None:
            return True
        if (self.stale_since, self.handled_stale_since) != (stored.stale_since, stored.handled_stale_since):
            return True
        armed_with = self.stale_after if self.needs_watchdog else None
        return self.is_watchdog_expired or armed_with != stored.stale_after

    def arrive(self, arrival: Arrival) -> None:
        """Follow an arrival.

        The newest `ts` has the current value, even if it did not arrive last.
        """
        self.arrived_at = arrival.at
        if arrival.ts >= self.ts:
            self.value, self.ts, self.labels = arrival.value, arrival.ts, arrival.labels

    def pass_deadline(self, deadline: datetime) -> PassedDeadline:
        is_new = self.stale_since is None
        self.stale_since = self.handled_stale_since = deadline
        self.is_watchdog_expired = self.is_watchdog_expired or is_new
        went_stale = WentStale(
            deadline, self.owner, self.key, self.arrived_at, self.value, self.ts, self.labels
        )
        return PassedDeadline(went_stale, is_new)


class PassedDeadline(NamedTuple):
    input: WentStale
    is_new: bool
    """The clock has not recorded it."""


class StalenessTracker:
    """Series of a batch or of a replay.

    It starts from stored series and follows arrivals and deadlines.
    """

    def __init__(
        self,
        stored: Iterable[StoredSeries],
        types: TypeIndex,
        gaps: Sequence[ArrivalGap] = NO_GAPS,
        *,
        track_unwatched: bool = False,
    ) -> None:
        """`gaps` are those of the partition, from the first arrival of the `stored` series on.

        `track_unwatched`: track series that are not watched, too. In a replay a type may begin to
        watch them.
        """
        self._gaps = gaps
        self._types = types
        self._track_unwatched = track_unwatched
        self._series: dict[SeriesKey, TrackedSeries] = {}
        self._by_owner: dict[str, list[TrackedSeries]] = {}
        for row in stored:
            self._add(
                TrackedSeries(
                    row.owner,
                    row.key,
                    types.stale_after(row.key),
                    row,
                    row.arrived_at,
                    row.value,
                    row.ts,
                    row.labels,
                    row.stale_since,
                    row.handled_stale_since,
                    gaps=gaps,
                )
            )

    def pass_deadlines(self, owner: str, until: datetime) -> list[PassedDeadline]:
        """Pass the deadlines of an owner at or before an instant, and return them in order."""
        passed: list[PassedDeadline] = []
        while True:
            due = [
                (deadline, series.key, series)
                for series in self._by_owner.get(owner, ())
                if (deadline := series.deadline) is not None and deadline <= until
            ]
            if not due:
                return passed
            passed += (
                series.pass_deadline(deadline)
                for deadline, _, series in sorted(due, key=lambda item: item[:2])
            )

    def arrive(self, arrival: Arrival) -> bool:
        """Follow an arrival; true if the series was stale and is fresh again."""
        series = self._series.get((arrival.owner, arrival.key))
        if series is None:
            self._begin(arrival)
            return False
        series.arrive(arrival)
        was_stale = series.stale_since is not None
        series.stale_since = None
        return was_stale

    def find(self, owner: str, key: str) -> TrackedSeries | None:
        return self._series.get((owner, key))

    def series_of(self, owner: str) -> Sequence[TrackedSeries]:
        return self._by_owner.get(owner, ())

    def stale_series(self) -> list[TrackedSeries]:
        """The series that are stale, by owner and key."""
        return self._sorted(series for series in self._series.values() if series.stale_since is not None)

    def changed_series(self) -> list[TrackedSeries]:
        """The series that differ from what is stored, by owner and key."""
        return self._sorted(series for series in self._series.values() if series.is_changed)

    def _begin(self, arrival: Arrival) -> None:
        stale_after = self._types.stale_after(arrival.key)
        if stale_after is not None or self._track_unwatched:
            at, _, owner, key, value, ts, labels, _ = arrival
            self._add(TrackedSeries(owner, key, stale_after, None, at, value, ts, labels, gaps=self._gaps))

    def _add(self, series: TrackedSeries) -> None:
        self._series[series.owner, series.key] = series
        self._by_owner.setdefault(series.owner, []).append(series)

    @staticmethod
    def _sorted(tracked: Iterable[TrackedSeries]) -> list[TrackedSeries]:
        return sorted(tracked, key=lambda series: (series.owner, series.key))


def stale_datapoint(went_stale: WentStale) -> NewCalculated:
    """The calculated datapoint of a series that became stale, equal to clock/append_staleness."""
    return NewCalculated(
        owner=went_stale.owner,
        key=went_stale.key,
        ts=went_stale.at,
        kind="stale",
        payload={
            "value": went_stale.value,
            "ts": _instant_text(went_stale.ts),
            "labels": dict(went_stale.labels),
            "arrived_at": _instant_text(went_stale.last_arrival),
            "age_s": (went_stale.at - went_stale.last_arrival).total_seconds(),
        },
        id=staleness_id("stale", went_stale.owner, went_stale.key, went_stale.at),
    )


def fresh_datapoint(arrival: Arrival) -> NewCalculated:
    """The calculated datapoint of a stale series for which a datapoint arrived."""
    return NewCalculated(
        owner=arrival.owner,
        key=arrival.key,
        ts=arrival.at,
        kind="fresh",
        payload={
            "value": arrival.value,
            "ts": _instant_text(arrival.ts),
            "labels": dict(arrival.labels),
        },
        id=staleness_id("fresh", arrival.owner, arrival.key, arrival.at),
    )


def _instant_text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

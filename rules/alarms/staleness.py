"""Silence, as data: which series of an owner went stale before an instant, and what that does to them.

Guarantee: pure, and a verdict depends on arrivals alone. A series that is watched is stale at its deadline, the arrival
before it and the tolerance of its type, if nothing arrived until then; an arrival at the very deadline comes after it.
Silences of an owner come out in the order of their deadlines, each once: those that nobody has realised yet, and those
that the clock has and the rules have not heard of.

`Silences` is given the series that a batch can concern as they are stored, follows the batch's arrivals, and says in
the end how the series differ from what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from rules.engine import Arrival, TypeIndex, Value, WentStale

Key = tuple[str, str]
"""Owner and key of a series."""


class StoredSeries(NamedTuple):
    """A series as rules/read_series returns it: without value and labels if it cannot be stale in this batch."""

    owner: str
    key: str
    arrived_at: datetime
    value: Value
    ts: datetime
    labels: dict[str, str]
    stale_since: datetime | None
    handled_stale_since: datetime | None
    within: timedelta | None
    """The tolerance that its watchdog is armed with; None if there is none."""
    nominal_at: datetime | None
    """When that watchdog is due, as far as it knows: never later than the deadline."""


@dataclass(slots=True)
class Series:
    owner: str
    key: str
    within: timedelta | None
    """The tolerance by its type; None: it is not watched."""
    stored: StoredSeries | None
    arrived_at: datetime
    value: Value
    ts: datetime
    labels: dict[str, str]
    stale_since: datetime | None = None
    handled_stale_since: datetime | None = None
    lapsed: bool = False
    """A deadline that the clock had not realised was realised here."""

    @property
    def deadline(self) -> datetime | None:
        """When it is, or was, due to be called stale; None if that has happened and was heard, or never will."""
        if self.stale_since is not None:
            return None if self.handled_stale_since == self.stale_since else self.stale_since
        if self.within is None:
            return None
        lapses_at = self.arrived_at + self.within
        known = self.stored
        if known is None or known.within != self.within or known.nominal_at is None:
            return lapses_at
        # The tolerance may be younger than the arrival: then it counts from the change, and the watchdog knows.
        return max(lapses_at, known.nominal_at)

    def follow(self, given: Arrival) -> None:
        """An arrival: the newest `ts` has the current value, whichever came last."""
        self.arrived_at = given.at
        if given.ts >= self.ts:
            self.value, self.ts, self.labels = given.value, given.ts, given.labels


class Silence(NamedTuple):
    series: Series
    given: WentStale
    is_new: bool
    """Nobody has recorded it yet."""


class Silences:
    def __init__(self, stored: Iterable[StoredSeries], types: TypeIndex, *, every: bool = False) -> None:
        """`every`: follow series that are not watched, too; in a replay their type may begin to watch them."""
        self._types = types
        self._every = every
        self._series: dict[Key, Series] = {}
        self._owners: dict[str, list[Series]] = {}
        for one in stored:
            self._add(
                Series(
                    one.owner,
                    one.key,
                    types.deadline(one.key),
                    one,
                    one.arrived_at,
                    one.value,
                    one.ts,
                    one.labels,
                    one.stale_since,
                    one.handled_stale_since,
                )
            )

    def until(self, owner: str, at: datetime) -> list[Silence]:
        """What went stale for an owner at or before an instant, in order; from now on it is realised and heard."""
        found: list[Silence] = []
        while True:
            due = [
                (deadline, series.key, series)
                for series in self._owners.get(owner, ())
                if (deadline := series.deadline) is not None and deadline <= at
            ]
            if not due:
                return found
            for deadline, _, series in sorted(due, key=lambda one: one[:2]):
                found.append(_realised(series, deadline))

    def arrive(self, given: Arrival) -> bool:
        """Follow an arrival; true if the series is fresh again."""
        series = self._series.get((given.owner, given.key))
        if series is None:
            within = self._types.deadline(given.key)
            if within is None and not self._every:
                return False
            self._add(
                Series(given.owner, given.key, within, None, given.at, given.value, given.ts, given.labels)
            )
            return False
        series.follow(given)
        was_stale = series.stale_since is not None
        series.stale_since = None
        return was_stale

    def knows(self, owner: str, key: str) -> bool:
        return (owner, key) in self._series

    def find(self, owner: str, key: str) -> Series:
        return self._series[owner, key]

    def of(self, owner: str) -> Sequence[Series]:
        return self._owners.get(owner, ())

    def changed(self) -> list[Series]:
        """The series whose freshness or watchdog is not what is stored, in key order."""
        return sorted(
            (series for series in self._series.values() if _differs(series)),
            key=lambda one: (one.owner, one.key),
        )

    def _add(self, series: Series) -> None:
        self._series[series.owner, series.key] = series
        self._owners.setdefault(series.owner, []).append(series)


def _realised(series: Series, deadline: datetime) -> Silence:
    is_new = series.stale_since is None
    series.stale_since = series.handled_stale_since = deadline
    series.lapsed = series.lapsed or is_new
    given = WentStale(
        deadline, series.owner, series.key, series.arrived_at, series.value, series.ts, series.labels
    )
    return Silence(series, given, is_new)


def is_watched(series: Series) -> bool:
    """Whether a watchdog belongs to it: while it is fresh, and its type has a cadence."""
    return series.within is not None and series.stale_since is None


def _differs(series: Series) -> bool:
    stored = series.stored
    if stored is None:
        return True
    if (series.stale_since, series.handled_stale_since) != (stored.stale_since, stored.handled_stale_since):
        return True
    return series.lapsed or (series.within if is_watched(series) else None) != stored.within

"""The series of one owner through a replay: when they went stale, whatever became of their types.

Guarantee: silences are those of `rules.alarms.silences`, which the live system uses. They are looked for only when one
can be due: an arrival moves a deadline only into the future, so the earliest one known is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from rules.alarms.silences import Series, Silence, Silences, StoredSeries
from rules.backtest.facts import LastSeen
from rules.engine import Arrival, TypeIndex, WentStale

_NEVER = datetime.max.replace(tzinfo=UTC)


class SilentSeries:
    def __init__(self, owner: str, types: TypeIndex, last: Iterable[LastSeen] = ()) -> None:
        self._owner = owner
        self._types = types
        self._keys: set[str] = set()
        self.next_due = _NEVER
        self._silences = Silences((), types, every=True)
        for one in last:
            self.arrive(Arrival(one.arrived_at, 0, owner, one.key, one.value, one.ts, one.labels))

    def due(self, until: datetime) -> list[Silence]:
        if until < self.next_due:
            return []
        found = self._silences.until(self._owner, until)
        self._look_ahead()
        return found

    def arrive(self, given: Arrival) -> bool:
        """True if the series is fresh again."""
        is_fresh_again = self._silences.arrive(given)
        if is_fresh_again or given.key not in self._keys:
            self._keys.add(given.key)
            within = self._types.deadline(given.key)
            if within is not None:
                self.next_due = min(self.next_due, given.at + within)
        return is_fresh_again

    def retype(self, types: TypeIndex, complete_until: datetime) -> None:
        """As `ChangedWatchdogs`: a tolerance that changed counts from the change, a series that is stale stays so."""
        if types.types == self._types.types:
            return
        stored = [self._stored(one, types, complete_until) for one in self._silences.of(self._owner)]
        self._silences = Silences(stored, types, every=True)
        self._types = types
        self._look_ahead()

    def stale(self, at: datetime) -> list[WentStale]:
        """What a rule hears that begins to judge them at an instant."""
        return [
            WentStale(at, one.owner, one.key, one.arrived_at, one.value, one.ts, one.labels)
            for one in sorted(self._silences.of(self._owner), key=lambda one: one.key)
            if one.stale_since is not None
        ]

    def _stored(self, one: Series, types: TypeIndex, complete_until: datetime) -> StoredSeries:
        within = types.deadline(one.key)
        nominal_at = one.deadline
        if within is not None and within != one.within:
            nominal_at = max(one.arrived_at + within, complete_until)
        return StoredSeries(
            one.owner,
            one.key,
            one.arrived_at,
            one.value,
            one.ts,
            one.labels,
            one.stale_since,
            one.heard_stale_since,
            within,
            nominal_at,
        )

    def _look_ahead(self) -> None:
        deadlines = (one.deadline for one in self._silences.of(self._owner))
        self.next_due = min((one for one in deadlines if one is not None), default=_NEVER)

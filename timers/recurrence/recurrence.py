"""A recurrence: the nominal times of a schedule, as a pure function of an instant.

Guarantee: `next_after` is strictly increasing and depends on nothing but the specification and the tz
data. Equal recurrences are one object (see `parse`), so what it has worked out is shared by all schedules that have it.

Why no memory of answers: equal ticks of a batch are decided once by the clock, and a hundred thousand different
recurrences each ask a new question every time.

On failure: a naive instant is `InvalidInput`. The end of the calendar, of the rule, or of `ends_at` is None.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from timers.recurrence.every import Every
from timers.recurrence.occurrence import Occurrence, Source
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import MICROSECOND, check_aware, instant_text

# The first days of the calendar have no wall time west of Greenwich, and nothing fires in them.
_BEGINNING = datetime(2, 1, 1, tzinfo=UTC)


class Recurrence:
    """Immutable; equal when the canonical specifications are equal."""

    __slots__ = ("_ends_at", "_key", "_source", "_spec", "_starts_after", "tz")

    def __init__(
        self, source: Source, spec: Mapping[str, object], key: str, bounds: "RecurrenceBounds"
    ) -> None:
        self._source = source
        self._spec = dict(spec)
        self._key = key
        self.tz = str(spec["tz"])
        self._starts_after, self._ends_at = bounds

    @property
    def spec(self) -> dict[str, object]:
        """Canonical keyword arguments, ready for JSON: `parse_spec(spec)` gives an equal recurrence."""
        return dict(self._spec)

    def next_after(self, instant: datetime) -> datetime | None:
        found = self.occurrence_after(instant)
        return None if found is None else found.at

    def occurrence_after(self, instant: datetime) -> Occurrence | None:
        if instant.tzinfo is not UTC:
            instant = as_utc(instant, "instant")
        return self._find(instant)

    def occurrences(self, after: datetime, until: datetime, limit: int) -> list[Occurrence]:
        """Those in (after, until], oldest first, at most `limit`."""
        found: list[Occurrence] = []
        instant, end = as_utc(after, "after"), as_utc(until, "until")
        while len(found) < limit:
            following = self._find(instant)
            if following is None or following.at > end:
                break
            found.append(following)
            instant = following.at
        return found

    @property
    def is_divided(self) -> bool:
        """Counting its occurrences is a division, not a walk."""
        return isinstance(self._source, Every)

    def count_between(self, after: datetime, until: datetime, limit: int = 10_000) -> tuple[int, bool]:
        """How many lie in (after, until], and whether there may be more than that."""
        after, until = self._clip(after, until)
        if isinstance(self._source, Every):
            return (self._source.count(after, until), False)
        count, instant = 0, after
        while (following := self._find(instant)) is not None and following.at <= until:
            if count >= limit:
                return (count, True)
            count, instant = count + 1, following.at
        return (count, False)

    def latest_between(self, after: datetime, until: datetime) -> Occurrence | None:
        """The most recent in (after, until]."""
        after, until = self._clip(after, until)
        if until <= after:
            return None
        if isinstance(self._source, Every):
            return self._source.latest(after, until)
        # Look back over windows that double, so the walk forward stays short however long the outage was.
        window = timedelta(minutes=1)
        while True:
            start = max(until - window, after) if until - after > window else after
            found = self._find(start)
            if found is not None and found.at <= until:
                break
            if start <= after:
                return None
            window *= 2
        while (following := self._find(found.at)) is not None and following.at <= until:
            found = following
        return found

    def identity(self, occurrence: Occurrence) -> str:
        """Wall time and fold for fixed-time, the instant for interval-like: what must not fire twice."""
        if occurrence.wall is not None:
            return f"{occurrence.wall.isoformat()}/{occurrence.fold}"
        return instant_text(occurrence.at)

    def minimum_distance(self) -> timedelta:
        return self._source.minimum_distance()

    def describe(self) -> str:
        kind = next(kind for kind in ("cron", "rrule", "every", "at") if kind in self._spec)
        return f"{kind} {self._spec[kind]} in {self.tz}"

    def _find(self, instant: datetime) -> Occurrence | None:
        if self._starts_after is not None and instant < self._starts_after:
            instant = self._starts_after
        elif instant < _BEGINNING:
            instant = _BEGINNING
        try:
            found = self._source.after(instant)
        except OverflowError:
            return None
        if found is None or (self._ends_at is not None and found.at > self._ends_at):
            return None
        return found

    def _clip(self, after: datetime, until: datetime) -> tuple[datetime, datetime]:
        after, until = as_utc(after, "after"), as_utc(until, "until")
        if self._starts_after is not None:
            after = max(after, self._starts_after)
        return (after, until if self._ends_at is None else min(until, self._ends_at))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recurrence) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"<Recurrence {self.describe()}>"


class RecurrenceBounds(NamedTuple):
    """`starts_after` is just before the first instant that may fire, `ends_at` the last one that may."""

    starts_after: datetime | None
    ends_at: datetime | None


def bounds(starts_at: datetime | None, ends_at: datetime | None) -> RecurrenceBounds:
    return RecurrenceBounds(None if starts_at is None else starts_at - MICROSECOND, ends_at)


def as_utc(instant: datetime, what: str) -> datetime:
    check_aware(instant, what)
    try:
        return instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{what} {instant.isoformat()!r} is outside the calendar in UTC") from None

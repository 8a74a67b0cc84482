"""A recurrence: the nominal times of a schedule, as a pure function of an instant.

Guarantee: `next_after` is strictly increasing and depends only on the specification and the tz
data. Equal recurrences are one object (see `parse`), except single times, so all schedules with the
same recurrence share its tables.

Why results are not cached: the clock computes equal ticks of a batch once, and each search of a
hundred thousand different recurrences is for a new instant.

On failure: a naive instant is `InvalidInput`. The end of the calendar, of the rule, or of `ends_at`
is None.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from timers.recurrence.every import Every
from timers.recurrence.occurrence import Occurrence, OccurrenceSource, WallIdentity
from timers.recurrence.on_days import DayFilter, MovedToAllowedDays, spec_days
from timers.recurrence.wall_time import FixedTime
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import MICROSECOND, check_aware, instant_text

# The first days of the calendar have no wall time west of Greenwich, and nothing fires in them.
_BEGINNING = datetime(2, 1, 1, tzinfo=UTC)


class Recurrence:
    """Immutable. Two are equal if their canonical specifications are."""

    __slots__ = ("_days", "_ends_at", "_key", "_source", "_spec", "_starts_after", "tz")

    def __init__(
        self, source: OccurrenceSource, spec: Mapping[str, object], key: str, bounds: "RecurrenceBounds"
    ) -> None:
        self._source = source
        self._spec = dict(spec)
        self._key = key
        self.tz = str(spec["tz"])
        self._starts_after, self._ends_at = bounds
        self._days = spec_days(spec)

    @property
    def spec(self) -> dict[str, object]:
        """Canonical keyword arguments for JSON. `parse_spec(spec)` returns an equal recurrence."""
        return dict(self._spec)

    def next_after(self, instant: datetime) -> datetime | None:
        occurrence = self.occurrence_after(instant)
        return None if occurrence is None else occurrence.at

    def occurrence_after(self, instant: datetime) -> Occurrence | None:
        if instant.tzinfo is not UTC:
            instant = as_utc(instant, "instant")
        return self._find(instant)

    def occurrence_behind(self, instant: datetime, done: WallIdentity | None) -> Occurrence | None:
        """The first occurrence after an instant and, for fixed times, behind a done wall time.

        New tz data may move a wall time that is done to a later instant, where it must not fire
        again, and one that is not done to an earlier instant.
        """
        instant = as_utc(instant, "instant")
        if done is None or not isinstance(self._source, FixedTime):
            return self._find(instant)
        if self._starts_after is not None:
            instant = max(instant, self._starts_after)
        try:
            return self._within_bounds(self._source.behind(done, max(instant, _BEGINNING)))
        except OverflowError:
            return None

    def occurrence_named(self, identity: str) -> Occurrence | None:
        """The fixed-time occurrence of a wall time under the present tz data.

        None if the wall time does not exist any more, or lies outside the bounds.
        """
        if not isinstance(self._source, FixedTime):
            return None
        try:
            occurrence = self._within_bounds(self._source.named(identity))
        except OverflowError:
            return None
        if occurrence is None or self._starts_after is None or occurrence.at > self._starts_after:
            return occurrence
        return None

    @property
    def is_fixed_time(self) -> bool:
        """Whether an occurrence is identified by its wall time and not by its instant."""
        return isinstance(self._source, FixedTime)

    def occurrences(self, after: datetime, until: datetime, limit: int) -> list[Occurrence]:
        """The occurrences in (after, until], oldest first, at most `limit`."""
        occurrences: list[Occurrence] = []
        instant, end = as_utc(after, "after"), as_utc(until, "until")
        while len(occurrences) < limit:
            following = self._find(instant)
            if following is None or following.at > end:
                break
            occurrences.append(following)
            instant = following.at
        return occurrences

    @property
    def is_divided(self) -> bool:
        """Whether occurrences are counted by division and not one by one."""
        return isinstance(self._source, Every)

    def count_between(self, after: datetime, until: datetime, limit: int = 10_000) -> tuple[int, bool]:
        """The number of occurrences in (after, until], and whether there may be more."""
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
        """The last occurrence in (after, until]."""
        after, until = self._clip(after, until)
        if until <= after:
            return None
        if isinstance(self._source, Every):
            return self._source.latest(after, until)
        # Search back in windows that double, so that the walk forward stays short after a long
        # outage.
        window = timedelta(minutes=1)
        while True:
            start = max(until - window, after) if until - after > window else after
            latest = self._find(start)
            if latest is not None and latest.at <= until:
                break
            if start <= after:
                return None
            window *= 2
        while (following := self._find(latest.at)) is not None and following.at <= until:
            latest = following
        return latest

    def identity(self, occurrence: Occurrence) -> str:
        """The identity of an occurrence, which must not fire twice.

        Wall time and fold for fixed times, the instant for interval-like ones.
        """
        if occurrence.wall is not None:
            return str(WallIdentity(occurrence.wall, occurrence.fold))
        return instant_text(occurrence.at)

    @property
    def days(self) -> DayFilter | None:
        """The days of its calendars; None without any."""
        return self._days

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
            occurrence = self._source.after(instant)
        except OverflowError:
            return None
        return self._within_bounds(occurrence)

    def _within_bounds(self, occurrence: Occurrence | None) -> Occurrence | None:
        if occurrence is None or (self._ends_at is not None and occurrence.at > self._ends_at):
            return None
        return occurrence if self._days is None else self._noted(occurrence)

    def _noted(self, occurrence: Occurrence) -> Occurrence:
        """The occurrence with the day from which a calendar moved it."""
        pattern = self._source.pattern if isinstance(self._source, FixedTime) else None
        if occurrence.wall is None or not isinstance(pattern, MovedToAllowedDays):
            return occurrence
        note = pattern.note(occurrence.wall)
        if note is None:
            return occurrence
        return occurrence._replace(note=note if occurrence.note is None else f"{note}; {occurrence.note}")

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
    """`starts_after` is just before the first instant that may fire, `ends_at` is the last one."""

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

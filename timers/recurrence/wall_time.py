"""Turns wall time into UTC, for fixed-time and interval-like recurrences.

Guarantee, fixed-time: each wall time of the pattern fires once. One that does not exist (a gap)
fires at the first instant after the gap, or not at all with `skip`. One that comes twice (a fold)
fires the first time, the second, or both. Wall times that land on one instant are one fire,
identified by the earliest. Guarantee, interval-like: the instants whose wall clock matches, so
nothing in a gap and both passes of a fold.

Why the first instant after the gap, not one hour later: it keeps fires in the order of their wall
times. So the next fire is the first wall time that resolves to a later instant, and no job
overtakes another.

On failure: beyond the end of the calendar `OverflowError`, which `Recurrence` turns into "no more
fires".
"""

from bisect import bisect_right
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from timers.recurrence.occurrence import Occurrence, WallIdentity, WallPattern, parse_identity
from timers.recurrence.transitions import next_transition, offset_at, transitions
from timers.recurrence.zones import zone
from tocsin.core.instant import EPOCH, MICROSECOND

_ZERO = timedelta(0)
# Wall time and instants are converted by arithmetic: `replace` costs eight times as much.
_EPOCH_WALL = datetime(1970, 1, 1)  # noqa: DTZ001 - naive wall time
_DAY = timedelta(days=1)
_LAST_STEADY_YEAR = 9_998
_SAMPLE_YEARS = range(2007, 2038)
# Clocks move by whole minutes: a change cannot bring times on whole minutes closer than one.
_FINEST_SHIFT = timedelta(minutes=1)


class Resolved(NamedTuple):
    """The instants of a wall time.

    `second` is set in a fold. `gap_end`, the wall time of `first`, is set if the wall time does not
    exist.
    """

    first: datetime
    second: datetime | None
    gap_end: datetime | None


def to_wall(instant: datetime, tz: ZoneInfo) -> datetime:
    return _EPOCH_WALL + (instant - EPOCH + (instant.astimezone(tz).utcoffset() or _ZERO))


def to_instant(wall: datetime, offset: timedelta) -> datetime:
    return EPOCH + (wall - offset - _EPOCH_WALL)


@lru_cache(maxsize=16_384)
def _is_steady(tz: str, year: int, month: int) -> bool:
    """Whether the zone keeps its offset in this month of wall time and the days around it.

    Then there is no gap and no fold. Sampled once a day, as in `transitions`. Months at the ends of
    the calendar are resolved wall time by wall time.
    """
    if not 2 <= year <= _LAST_STEADY_YEAR:
        return False
    offset_of = zone(tz).utcoffset
    day = datetime(year, month, 1) - _DAY  # noqa: DTZ001 - naive wall time
    offset = offset_of(day)
    return all(offset_of(day + number * _DAY) == offset for number in range(1, 34))


def resolve(wall: datetime, tz: ZoneInfo) -> Resolved:
    before = tz.utcoffset(wall) or _ZERO
    after = tz.utcoffset(wall.replace(fold=1)) or _ZERO
    if before == after:
        return Resolved(to_instant(wall, before), None, None)
    if before > after:
        return Resolved(to_instant(wall, before), to_instant(wall, after), None)
    end = _gap_end(tz.key, to_instant(wall, after), to_instant(wall, before))
    return Resolved(end, None, to_wall(end, tz))


@lru_cache(maxsize=4096)
def _gap_end(tz: str, low: datetime, high: datetime) -> datetime:
    # With the later offset, a wall time in the gap lies before the transition; otherwise after it.
    found = next_transition(tz, low, high)
    return found if found is not None else high


class FixedTime:
    """The wall times of a pattern, each resolved by the policies."""

    __slots__ = ("_forward", "_passes", "_pattern", "_policies", "_zone")

    def __init__(self, pattern: WallPattern, tz: str, dst_gap: str, dst_fold: str) -> None:
        self._pattern = pattern
        self._zone = zone(tz)
        self._policies = (dst_gap, dst_fold)
        self._forward = dst_gap == "forward"
        self._passes = {"first": (0,), "second": (1,), "both": (0, 1)}[dst_fold]

    @property
    def pattern(self) -> WallPattern:
        return self._pattern

    def after(self, instant: datetime) -> Occurrence | None:
        if len(self._passes) == 1:
            return self._after_in_pass(instant, self._passes[0])
        return _earlier(*(self._after_in_pass(instant, fold) for fold in self._passes))

    def behind(self, done: WallIdentity, instant: datetime) -> Occurrence | None:
        """The first occurrence after an instant whose wall time lies behind one that is done.

        The done one may have fired under other tz data, at another instant. With both passes of a
        fold the wall time alone does not order the occurrences, so there the instant of the done
        one under the present data counts as well.
        """
        if len(self._passes) == 1:
            return self._after_in_pass(instant, self._passes[0], done.wall)
        resolved = resolve(done.wall, self._zone)
        done_at = resolved.second if done.fold and resolved.second is not None else resolved.first
        instant = max(instant, done_at)
        return _earlier(
            *(
                self._after_in_pass(instant, fold, done.wall if fold <= done.fold else None)
                for fold in self._passes
            )
        )

    def named(self, identity: str) -> Occurrence | None:
        """The occurrence of a wall time under the present tz data; None if it no longer exists."""
        return _named(self._zone.key, *self._policies, identity)

    def resolve_named(self, identity: WallIdentity) -> Occurrence | None:
        wall = identity.wall
        fold = identity.fold if len(self._passes) == 2 else self._passes[0]
        offset = self._zone.utcoffset(wall) or _ZERO
        if _is_steady(self._zone.key, wall.year, wall.month) or offset == self._zone.utcoffset(
            wall.replace(fold=1)
        ):
            repeated = len(self._passes) == 2 and fold == 1
            return None if repeated else Occurrence(to_instant(wall, offset), wall, 0, None)
        return self._occurrence_at_transition(wall, fold)

    def _after_in_pass(
        self, instant: datetime, fold: int, behind: datetime | None = None
    ) -> Occurrence | None:
        tz = self._zone
        local = instant.astimezone(tz)
        offset = local.utcoffset() or _ZERO
        wall: datetime | None = _EPOCH_WALL + (instant - EPOCH + offset)
        assert wall is not None
        if fold and not local.fold:
            # In the first pass of a fold, the second instants of earlier wall times are still to
            # come.
            wall -= max(offset - (local.replace(fold=1).utcoffset() or _ZERO), _ZERO)
        if behind is not None:
            wall = max(wall, behind)
        next_wall = self._pattern.next_wall
        while (wall := next_wall(wall)) is not None:
            # The zone is called directly: an aware copy of the wall time costs more than the
            # result.
            before = tz.utcoffset(wall) or _ZERO
            if _is_steady(tz.key, wall.year, wall.month) or before == tz.utcoffset(wall.replace(fold=1)):
                at = EPOCH + (wall - before - _EPOCH_WALL)
                if at > instant:
                    return Occurrence(at, wall, 0, None)
                continue
            found = self._occurrence_at_transition(wall, fold)
            if found is not None and found.at > instant:
                return found
        return None

    def _occurrence_at_transition(self, wall: datetime, fold: int) -> Occurrence | None:
        resolved = resolve(wall, self._zone)
        clock = _clock(wall)
        if resolved.second is not None:
            chosen = "second" if fold else "first"
            note = f"{clock} comes twice on this day: this is the {chosen} time"
            return Occurrence(resolved.second if fold else resolved.first, wall, fold, note)
        if not self._forward or resolved.gap_end is None:
            return None
        moved = _clock(resolved.gap_end)
        if resolved.gap_end.date() != wall.date():
            moved = f"{resolved.gap_end.date()} {moved}"
        return Occurrence(resolved.first, wall, 0, f"{clock} does not exist on this day: moved to {moved}")

    def minimum_distance(self) -> timedelta:
        return _shortest(FixedTime, self._pattern.times_of_day(), self._zone.key, *self._policies)


@lru_cache(maxsize=16_384)
def _named(tz: str, dst_gap: str, dst_fold: str, identity: str) -> Occurrence | None:
    """Cached, because schedules that are due together mostly have the same wall time."""
    parsed = parse_identity(identity)
    return None if parsed is None else FixedTime(EveryDay(()), tz, dst_gap, dst_fold).resolve_named(parsed)


def _earlier(first: Occurrence | None, second: Occurrence | None) -> Occurrence | None:
    """The next of two passes: each is in the order of wall times, together they interleave."""
    if first is None or second is None:
        return first or second
    return second if second.at < first.at else first


class IntervalLike:
    """The instants whose wall clock matches a pattern.

    Elapsed time, cut by the zone's transitions.
    """

    __slots__ = ("_pattern", "_zone")

    def __init__(self, pattern: WallPattern, tz: str) -> None:
        self._pattern = pattern
        self._zone = zone(tz)

    def after(self, instant: datetime) -> Occurrence | None:
        tz = self._zone
        start = instant
        step = _ZERO
        while True:
            # Between two transitions the offset is constant, and wall time is plain arithmetic.
            local = start.astimezone(tz)
            offset = local.utcoffset() or _ZERO
            wall = self._pattern.next_wall(_EPOCH_WALL + (start - EPOCH + offset - step))
            if wall is None:
                return None
            at = to_instant(wall, offset)
            transition = next_transition(tz.key, start, at)
            if transition is None:
                return self._occurrence(at, wall, offset)
            start, step = transition, MICROSECOND  # the transition itself may match

    def _occurrence(self, at: datetime, wall: datetime, offset: timedelta) -> Occurrence:
        tz = self._zone
        if _is_steady(tz.key, wall.year, wall.month):
            return Occurrence(at, None, 0, None)
        other = tz.utcoffset(wall)
        if other == offset and tz.utcoffset(wall.replace(fold=1)) == offset:
            return Occurrence(at, None, 0, None)
        fold = int(other != offset)
        note = f"{_clock(wall)} comes twice on this day: this is the {'second' if fold else 'first'} time"
        return Occurrence(at, None, fold, note)

    def minimum_distance(self) -> timedelta:
        return _shortest(IntervalLike, self._pattern.times_of_day(), self._zone.key)


class EveryDay:
    """The same times on every day: a pattern without its choice of days."""

    __slots__ = ("_times",)

    def __init__(self, times: tuple[timedelta, ...]) -> None:
        self._times = times

    def next_wall(self, after: datetime) -> datetime | None:
        midnight = after.replace(hour=0, minute=0, second=0, microsecond=0)
        position = bisect_right(self._times, after - midnight)
        if position < len(self._times):
            return midnight + self._times[position]
        return midnight + timedelta(days=1) + self._times[0]

    def times_of_day(self) -> tuple[timedelta, ...]:
        return self._times


@lru_cache(maxsize=1024)
def _shortest(
    kind: type[FixedTime] | type[IntervalLike], times: tuple[timedelta, ...], tz: str, *policies: str
) -> timedelta:
    """The shortest distance on an ordinary day and around every kind of transition of the zone.

    Cached, because it walks a hundred days, and a thousand schedules have few different times of
    day.
    """
    if not times:
        return timedelta.max
    day = timedelta(days=1)
    shortest = min(
        later - earlier for earlier, later in zip(times, (*times[1:], times[0] + day), strict=True)
    )
    if shortest <= _FINEST_SHIFT:
        return shortest if shortest == _FINEST_SHIFT else timedelta(seconds=1)
    source = kind(EveryDay(times), tz, *policies)
    for transition in _kinds_of_transition(tz):
        instant, end = transition - 2 * day, transition + 2 * day
        previous: datetime | None = None
        while (found := source.after(instant)) is not None and found.at <= end:
            if previous is not None:
                shortest = min(shortest, found.at - previous)
            previous = instant = found.at
    return shortest


@lru_cache(maxsize=1024)
def _kinds_of_transition(tz: str) -> tuple[datetime, ...]:
    """One transition for each (time of day, shift), because its date does not change a distance."""
    kinds: dict[tuple[object, timedelta], datetime] = {}
    for year in _SAMPLE_YEARS:
        for instant in transitions(tz, year):
            shift = offset_at(tz, instant) - offset_at(tz, instant - MICROSECOND)
            kinds.setdefault((to_wall(instant, zone(tz)).time(), shift), instant)
    return tuple(kinds.values())


def _clock(wall: datetime) -> str:
    return wall.strftime("%H:%M:%S" if wall.second else "%H:%M")

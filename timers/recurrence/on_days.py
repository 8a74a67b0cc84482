"""Recurrences on the days of calendars: leaves occurrences out, or moves them to another day. Pure.

Guarantee: a filter works on wall time, before a time becomes an instant. So the day is that of the
wall clock in the timezone of the recurrence, and an occurrence keeps its identity, its behaviour at
changes of the clocks, and its order. A moved occurrence keeps its time of day. Occurrences that come
to the same wall time are one.

A day is allowed if it is in every calendar of `only_in` and in none of `except`.

On failure: `InvalidInput` from `day_filter`. A search that finds no allowed day within ten years, or
no occurrence on an allowed day in `_MAX_TRIES` tries, returns None: the recurrence has ended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from functools import lru_cache

from timers.recurrence.day_set import DaySet, common_span, day_set, definition_text, nearest_day
from timers.recurrence.occurrence import WallPattern
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import MICROSECOND

SHIFTS = ("next", "previous")
_KEYS = {"only_in", "except", "shift"}
_MAX_TRIES = 1_000
_DAY = timedelta(days=1)


class DayFilter:
    """The days on which a recurrence may fire."""

    def __init__(
        self, only_in: Mapping[str, DaySet], excepted: Mapping[str, DaySet], shift: str | None
    ) -> None:
        self._only_in = only_in
        self._except = excepted
        self.shift = shift
        self.span = common_span(days.span for days in only_in.values())

    def __contains__(self, day: date) -> bool:
        return all(day in days for days in self._only_in.values()) and not any(
            day in days for days in self._except.values()
        )

    def reason(self, day: date) -> str | None:
        """Why a day is not allowed; None if it is."""
        for name, days in self._except.items():
            if day in days:
                return f"excluded by calendar {name}"
        for name, days in self._only_in.items():
            if day not in days:
                return f"not in calendar {name}"
        return None


def canonical_days(days: Mapping[str, object]) -> dict[str, object]:
    """The checked form that a specification holds, without empty parts."""
    canonical = {key: value for key, value in days.items() if value}
    unknown = sorted(set(canonical) - _KEYS)
    if unknown:
        raise InvalidInput(f"{unknown[0]!r} is not a part of 'days'", remedy="use only_in, except and shift")
    shift = canonical.get("shift")
    if shift is not None and shift not in SHIFTS:
        raise InvalidInput(f"shift {shift!r} is unknown", remedy=f"use {' or '.join(SHIFTS)}")
    if set(canonical) == {"shift"}:
        raise InvalidInput(
            "shift has no effect without 'only_in' or 'except'", remedy="add one, or remove it"
        )
    if canonical:
        day_filter(definition_text(canonical))
    return canonical


@lru_cache(maxsize=4096)
def day_filter(text: str) -> DayFilter:
    """The filter of `days` as canonical JSON."""
    days = json.loads(text)
    only_in, excepted = (
        {name: day_set(definition_text(definition)) for name, definition in days.get(key, {}).items()}
        for key in ("only_in", "except")
    )
    return DayFilter(only_in, excepted, days.get("shift"))


def spec_days(spec: Mapping[str, object]) -> DayFilter | None:
    """The filter of a specification; None without calendars."""
    days = spec.get("days")
    return day_filter(definition_text(days)) if isinstance(days, dict) and days else None


class OnAllowedDays:
    """The wall times of a pattern on allowed days."""

    __slots__ = ("_days", "_pattern")

    def __init__(self, pattern: WallPattern, days: DayFilter) -> None:
        self._pattern = pattern
        self._days = days

    def next_wall(self, after: datetime) -> datetime | None:
        for _ in range(_MAX_TRIES):
            wall = self._pattern.next_wall(after)
            if wall is None or wall.date() in self._days:
                return wall
            allowed = nearest_day(self._days, wall.date() + _DAY, 1)
            if allowed is None:
                return None
            after = _before(allowed)
        return None

    def times_of_day(self) -> tuple[timedelta, ...]:
        return self._pattern.times_of_day()


class MovedToAllowedDays:
    """The wall times of a pattern, those on other days moved to the next or previous allowed day.

    The times of an allowed day are its own and those of the days without permission that come before
    it (`next`) or after it (`previous`).
    """

    __slots__ = ("_days", "_pattern", "_step")

    def __init__(self, pattern: WallPattern, days: DayFilter) -> None:
        self._pattern = pattern
        self._days = days
        self._step = 1 if days.shift == "next" else -1

    def next_wall(self, after: datetime) -> datetime | None:
        day = nearest_day(self._days, after.date(), 1)
        for _ in range(_MAX_TRIES):
            if day is None:
                return None
            first, last = self._span(day)
            wall = self._pattern.next_wall(_before(first))
            if wall is None:
                return None
            if wall.date() <= last:
                for candidate in self._times_on(day, first, last):
                    if candidate > after:
                        return candidate
                day = nearest_day(self._days, day + _DAY, 1)
            else:
                day = self._target(wall.date())
        return None

    def times_of_day(self) -> tuple[timedelta, ...]:
        return self._pattern.times_of_day()

    def note(self, wall: datetime) -> str | None:
        """From which day an occurrence was moved, and why; None if it was not."""
        day = self._origin(wall)
        return None if day is None else f"moved from {day:%a} {day}, {self._days.reason(day)}"

    def _origin(self, wall: datetime) -> date | None:
        """The day from which an occurrence was moved; None if it was there already."""
        clock = wall.time()
        first, last = self._span(wall.date())
        if self._has(wall.date(), clock):
            return None
        day = last if self._step > 0 else first
        while first <= day <= last:
            if self._has(day, clock):
                return day
            day -= self._step * _DAY
        return None

    def _has(self, day: date, clock: time) -> bool:
        wall = datetime.combine(day, clock)
        return self._pattern.next_wall(wall - MICROSECOND) == wall

    def _target(self, day: date) -> date | None:
        """The allowed day of the occurrences on a day. With `previous` it is never before the last one."""
        return nearest_day(self._days, day, self._step)

    def _span(self, day: date) -> tuple[date, date]:
        """The days whose occurrences are on this allowed day, itself included."""
        other = nearest_day(self._days, day - self._step * _DAY, -self._step)
        if other is None:
            return day, day
        return (other + _DAY, day) if self._step > 0 else (day, other - _DAY)

    def _times_on(self, day: date, first: date, last: date) -> list[datetime]:
        clocks: set[time] = set()
        wall = self._pattern.next_wall(_before(first))
        while wall is not None and wall.date() <= last:
            clocks.add(wall.time())
            wall = self._pattern.next_wall(wall)
        return [datetime.combine(day, clock) for clock in sorted(clocks)]


def _before(day: date) -> datetime:
    """The last instant before a day begins."""
    return datetime.combine(day, time()) - MICROSECOND


def on_days(pattern: WallPattern, days: DayFilter | None) -> WallPattern:
    if days is None:
        return pattern
    return OnAllowedDays(pattern, days) if days.shift is None else MovedToAllowedDays(pattern, days)

"""Times of the week by calendars and hours of the wall clock. Pure.

Guarantee: whether an instant is inside depends on the instant, the definition and the timezone data
alone. Hours contain their begin and not their end. Hours that end before they begin, as `22:00-06:00`,
belong to the day on which they begin. Without hours, an allowed day is inside as a whole.

On failure: `InvalidInput` that names the hours, the timezone or the calendar.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple

from schemas.documents.active_times import ActiveTimes
from timers.recurrence.day_set import definition_text
from timers.recurrence.on_days import DayFilter, canonical_days, day_filter
from timers.recurrence.wall_time import resolve, to_wall
from timers.recurrence.zones import zone
from tocsin.core.errors import InvalidInput

_HOURS = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-4]):([0-5][0-9])")
_DAY = timedelta(days=1)
_FARTHEST_DAYS = 400


class Hours(NamedTuple):
    """From the begin of a day. The end is later than a day if they reach into the next one."""

    text: str
    begin: timedelta
    end: timedelta


class TimeFilter:
    """`time_filter` makes it."""

    def __init__(self, days: DayFilter, hours: Sequence[Hours], tz: str) -> None:
        self._days = days
        self._hours = hours
        self._zone = zone(tz)
        self._hours_text = f"outside of {', '.join(each.text for each in hours)} {tz}"

    def exclusion(self, at: datetime) -> str | None:
        """Why an instant is outside: `excluded by calendar us-holidays`; None if it is inside."""
        wall = to_wall(at, self._zone)
        if not self._hours:
            return self._days.reason(wall.date())
        excluded = None
        for day in self._days_of_hours(wall):
            excluded = self._days.reason(day)
            if excluded is None:
                return None
        return excluded or self._hours_text

    def next_change(self, at: datetime) -> datetime | None:
        """When an instant inside is followed by one outside, or the other way round.

        None if that does not happen within 400 days.
        """
        is_inside = self.exclusion(at) is None
        for instant in self._boundaries(at):
            if (self.exclusion(instant) is None) != is_inside:
                return instant
        return None

    def _days_of_hours(self, wall: datetime) -> Iterator[date]:
        """The days on which hours begin that contain a wall time."""
        for midnight in (datetime.combine(wall.date(), time()) - _DAY, datetime.combine(wall.date(), time())):
            if any(each.begin <= wall - midnight < each.end for each in self._hours):
                yield midnight.date()

    def _boundaries(self, at: datetime) -> Iterator[datetime]:
        """The instants after `at` at which hours or days begin or end, in order."""
        offsets = sorted({_DAY * 0, *(bound for each in self._hours for bound in (each.begin, each.end))})
        first = datetime.combine(to_wall(at, self._zone).date(), time()) - _DAY
        for number in range(_FARTHEST_DAYS):
            walls = sorted(first + number * _DAY + offset for offset in offsets if offset <= _DAY)
            walls += [first + (number - 1) * _DAY + offset for offset in offsets if offset > _DAY]
            instants = {instant for wall in walls for instant in self._instants(wall)}
            yield from sorted(instant for instant in instants if instant > at)

    def _instants(self, wall: datetime) -> Iterator[datetime]:
        resolved = resolve(wall, self._zone)
        yield resolved.first
        if resolved.second is not None:
            yield resolved.second


@lru_cache(maxsize=4096)
def _compiled(text: str) -> TimeFilter:
    definition = json.loads(text)
    days = canonical_days(definition["days"])
    hours = [parse_hours(each) for each in definition["hours"]]
    return TimeFilter(day_filter(definition_text(days)), hours, definition["tz"])


def time_filter(times: ActiveTimes) -> TimeFilter:
    """The filter of a document. Those that many documents share are compiled once."""
    definition = {"days": times.days or {}, "hours": list(times.hours), "tz": times.tz}
    return _compiled(json.dumps(definition, sort_keys=True))


def parse_hours(text: str) -> Hours:
    match = _HOURS.fullmatch(text)
    if match is None:
        raise InvalidInput(
            f"{text[:40]!r} is not a span of hours", remedy="write begin and end, as 08:00-18:00"
        )
    begin_h, begin_m, end_h, end_m = map(int, match.groups())
    begin, end = timedelta(hours=begin_h, minutes=begin_m), timedelta(hours=end_h, minutes=end_m)
    if end > _DAY:
        raise InvalidInput(f"{text!r} ends after 24:00", remedy="write 24:00 for the end of the day")
    if begin == end:
        raise InvalidInput(f"{text!r} is empty", remedy="write 00:00-24:00 for the whole day")
    return Hours(text, begin, end if begin < end else end + _DAY)

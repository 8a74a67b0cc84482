"""Cron expressions as patterns of naive wall time.

Guarantee: `next_wall` returns the wall time that croniter returns on naive time (a property test
compares them), and None within a bounded number of steps if the calendar or a century has no match.

Why not croniter's own iterator: it moves field by field with relative deltas, 50 to 120
microseconds a step. Here croniter only parses the expression; tables of the day's minutes and the
month's days answer in about one microsecond.

On failure: `InvalidInput` from `cron_text`; an expression that never fires is rejected here.
"""

from bisect import bisect_left, bisect_right
from calendar import monthrange
from datetime import datetime, timedelta
from functools import lru_cache

from croniter import CroniterError, croniter

from timers.recurrence.cron_text import cron_error

# Feb 29 on a given weekday's fifth turn can take 40 years; nothing that fires takes a century.
_MAX_YEARS_AHEAD = 100
_MAX_MONTHS_KEPT = 600
_SEARCH_FROM = datetime(2000, 1, 1)  # noqa: DTZ001 - naive wall time


class CronPattern:
    """Immutable except for its table of months, which any thread may rebuild."""

    __slots__ = (
        "_days_by_month",
        "_days_of_month",
        "_following_month",
        "_last_day",
        "_minutes",
        "_months",
        "_nearest",
        "_nth",
        "_weekdays",
    )

    def __init__(self, plain: str) -> None:
        # The start time is given so that croniter reads no clock. Only its parsed fields are used.
        try:
            parsed = croniter(plain, _SEARCH_FROM)
        except (CroniterError, ValueError, KeyError, AttributeError) as error:
            raise cron_error(plain, "it cannot be read, check the five fields") from error
        minutes, hours, days, months, weekdays = (
            None if "*" in values else values for values in parsed.expanded
        )
        self._minutes = tuple(
            hour * 60 + minute
            for hour in sorted(_values_or_all(hours, range(24)))
            for minute in sorted(_values_or_all(minutes, range(60)))
        )
        self._months = frozenset(_values_or_all(months, range(1, 13)))
        self._following_month = _following_months(sorted(self._months))
        self._nearest = min(parsed.nearest_weekday, default=0)
        self._last_day = days is not None and "l" in days
        self._days_of_month = None if days is None else frozenset(int(day) for day in days if day != "l")
        self._weekdays = None if weekdays is None else frozenset(int(day) for day in weekdays)
        self._nth = {int(day): frozenset(map(str, nth)) for day, nth in parsed.nth_weekday_of_month.items()}
        self._days_by_month: dict[int, tuple[int, ...]] = {}

    def next_wall(self, after: datetime) -> datetime | None:
        year, month, day = after.year, after.month, after.day
        days = self._days(year, month)
        position = bisect_left(days, day)
        if position < len(days) and days[position] == day:
            turn = bisect_right(self._minutes, after.hour * 60 + after.minute)
            if turn < len(self._minutes):
                hour, minute = divmod(self._minutes[turn], 60)
                return datetime(year, month, day, hour, minute)  # noqa: DTZ001 - naive wall time
            position += 1
        hour, minute = divmod(self._minutes[0], 60)
        last_year = min(9999, year + _MAX_YEARS_AHEAD)
        while True:
            if position < len(days):
                return datetime(year, month, days[position], hour, minute)  # noqa: DTZ001 - naive wall time
            following = self._following_month[month]
            year, month = (year if following > month else year + 1), following
            if year > last_year:
                return None
            days, position = self._days(year, month), 0

    def times_of_day(self) -> tuple[timedelta, ...]:
        return tuple(timedelta(minutes=minute) for minute in self._minutes)

    def _days(self, year: int, month: int) -> tuple[int, ...]:
        if month not in self._months:
            return ()
        key = year * 12 + month
        days = self._days_by_month.get(key)
        if days is None:
            if len(self._days_by_month) >= _MAX_MONTHS_KEPT:
                self._days_by_month = {}
            days = self._days_by_month[key] = self._compute_days(year, month)
        return days

    def _compute_days(self, year: int, month: int) -> tuple[int, ...]:
        first_weekday, length = monthrange(year, month)
        every = range(1, length + 1)
        by_date = None if self._days_of_month is None else self._dates(first_weekday, length)
        if self._weekdays is None:
            return tuple(every) if by_date is None else tuple(sorted(by_date))
        by_weekday = {day for day in every if self._is_weekday(day, (first_weekday + day) % 7, length)}
        return tuple(sorted(by_weekday if by_date is None else by_weekday | by_date))

    def _dates(self, first_weekday: int, length: int) -> set[int]:
        if self._nearest:
            return {_nearest_weekday(self._nearest, first_weekday, length)}
        dates = {day for day in self._days_of_month or () if day <= length}
        return dates | {length} if self._last_day else dates

    def _is_weekday(self, day: int, weekday: int, length: int) -> bool:
        """`weekday` counts from Sunday, as cron does."""
        if weekday not in (self._weekdays or ()):
            return False
        if not self._nth:
            return True
        nth = self._nth.get(weekday, frozenset())
        return str((day + 6) // 7) in nth or ("l" in nth and day + 7 > length)


def _following_months(months: list[int]) -> tuple[int, ...]:
    """For each month, the next one that the expression names, in this year or the next."""
    return tuple(next((later for later in months if later > month), months[0]) for month in range(13))


@lru_cache(maxsize=8192)
def cron_pattern(plain: str) -> CronPattern:
    pattern = CronPattern(plain)
    if pattern.next_wall(_SEARCH_FROM) is None:
        raise cron_error(plain, "it never fires: no month has such a day, check day of month and month")
    return pattern


def _values_or_all(values: list[str] | None, every: range) -> list[int]:
    return list(every) if values is None else [int(value) for value in values]


def _nearest_weekday(day: int, first_weekday: int, length: int) -> int:
    """The nearest day from Monday to Friday in the same month."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == 5:
        return day - 1 if day > 1 else day + 2
    if weekday == 6:
        return day + 1 if day < length else day - 2
    return day

"""The wall times of an RRULE from any position, in bounded work.

Guarantee: `walls(rule, dtstart, after)` yields the rule's wall times after any wall time, in order,
at a cost that does not depend on the age of DTSTART, and stops after a fixed number of steps
without a result.

Why: dateutil always counts from DTSTART (ten years of MINUTELY take 24 s) and searches an
impossible date to the year 9999. So the parts that dateutil would take from DTSTART are written
into the rule, and DTSTART is moved by whole intervals to just before `after`. A tuple that counts
its lookups ends the search. For rules finer than DAILY, dateutil computes the days, and the times
of day are arithmetic. `rrule_periods` has the rules that dateutil reads differently.

On failure: `BudgetSpent`, which the callers turn into "never fires".
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from dateutil import rrule as dateutil_rrule

from timers.recurrence.rrule_periods import BUDGET, BudgetSpent, needs_periods, walls_by_period
from timers.recurrence.rrule_text import SUB_DAILY, RRule

# Matching days without a turn of the interval. Each costs more than a day that is skipped.
EMPTY_DAYS = 6_000

_BY_NAMES = ("BYMONTH", "BYYEARDAY", "BYMONTHDAY", "BYHOUR", "BYMINUTE", "BYSECOND", "BYSETPOS")


class _Counting(tuple[int, ...]):
    """A tuple that ends the search after `BUDGET` lookups without a result."""

    lookups = 0

    def __contains__(self, value: object) -> bool:
        self.lookups += 1
        if self.lookups > BUDGET:
            raise BudgetSpent
        return super().__contains__(value)


def walls(rule: RRule, dtstart: datetime, after: datetime) -> Iterator[datetime]:
    """The wall times strictly after `after` and not before DTSTART, ignoring UNTIL."""
    if rule.freq in SUB_DAILY:
        found = _sub_daily(rule, dtstart, after)
    elif needs_periods(rule):
        found = walls_by_period(rule, dtstart, after)
    else:
        found = _from_dateutil(rule, _dateutil_arguments(rule, dtstart), dtstart, after)
    return (wall for wall in found if wall > after and wall >= dtstart)


def times_of_day(rule: RRule, dtstart: datetime) -> tuple[timedelta, ...]:
    """A superset of the times of day that the rule can name."""
    if rule.freq in SUB_DAILY:
        parts = _time_parts(rule, dtstart)
        if parts.turns % rule.interval:
            parts = parts._replace(interval=1)  # the times move from day to day
        return _times(parts, _phase(parts, dtstart, dtstart))
    hours = rule.numbers.get("BYHOUR") or (dtstart.hour,)
    minutes = rule.numbers.get("BYMINUTE") or (dtstart.minute,)
    seconds = rule.numbers.get("BYSECOND") or (dtstart.second,)
    return tuple(
        timedelta(hours=hour, minutes=minute, seconds=second)
        for hour in hours
        for minute in minutes
        for second in seconds
    )


def _dateutil_arguments(rule: RRule, dtstart: datetime) -> dict[str, Any]:
    """The arguments of dateutil, including the parts that it would otherwise take from DTSTART."""
    by: dict[str, Any] = {name.lower(): rule.numbers[name] for name in _BY_NAMES if name in rule.numbers}
    if rule.days:
        by["byweekday"] = [dateutil_rrule.weekday(day, turn or None) for turn, day in rule.days]
    if not rule.days and not any(name in by for name in ("byyearday", "bymonthday")):
        if rule.freq == "YEARLY":
            by.setdefault("bymonth", (dtstart.month,))
        if rule.freq in ("YEARLY", "MONTHLY"):
            by["bymonthday"] = (dtstart.day,)
        elif rule.freq == "WEEKLY":
            by["byweekday"] = (dtstart.weekday(),)
    by.setdefault("byhour", (dtstart.hour,))
    by.setdefault("byminute", (dtstart.minute,))
    by.setdefault("bysecond", (dtstart.second,))
    return by


def _from_dateutil(rule: RRule, by: dict[str, Any], dtstart: datetime, after: datetime) -> Iterator[datetime]:
    start = _period_start(rule, dtstart, max(after, dtstart))
    if start is None:
        return
    freq = getattr(dateutil_rrule, rule.freq)
    built: Any = dateutil_rrule.rrule(
        freq, dtstart=start, interval=rule.interval, wkst=rule.wkst, cache=False, **by
    )
    # Private names of dateutil 4.0, pinned; a test holds that they still stop an impossible rule. A
    # full BYMONTH would change what "the 20th Monday of the year" means, so there the weekdays
    # count instead.
    if any(turn for turn, _ in rule.days) and "bymonth" not in by:
        counting = built._byweekday = _Counting(built._byweekday or range(7))
    else:
        counting = built._bymonth = _Counting(built._bymonth or range(1, 13))
    for wall in built:
        counting.lookups = 0
        yield wall


def _period_start(rule: RRule, dtstart: datetime, near: datetime) -> datetime | None:
    """The first day of the rule's last period that begins at or before `near`.

    None beyond the calendar.
    """
    try:
        if rule.freq == "YEARLY":
            turns = (near.year - dtstart.year) // rule.interval
            return datetime(dtstart.year + turns * rule.interval, 1, 1)  # noqa: DTZ001 - naive wall time
        if rule.freq == "MONTHLY":
            first = dtstart.year * 12 + dtstart.month - 1
            months = first + (near.year * 12 + near.month - 1 - first) // rule.interval * rule.interval
            return datetime(months // 12, months % 12 + 1, 1)  # noqa: DTZ001 - naive wall time
        days = rule.interval
        first_day = dtstart.date()
        if rule.freq == "WEEKLY":
            days *= 7
            first_day -= timedelta(days=(dtstart.weekday() - rule.wkst) % 7)
        moved = first_day + timedelta(days=(near.date() - first_day).days // days * days)
        return datetime(moved.year, moved.month, moved.day)  # noqa: DTZ001 - naive wall time
    except (ValueError, OverflowError):
        return None


def _sub_daily(rule: RRule, dtstart: datetime, after: datetime) -> Iterator[datetime]:
    """The times of HOURLY and MINUTELY rules with BY parts.

    Chooses days first, then the turns of the interval within each.
    """
    by = {name.lower(): rule.numbers[name] for name in _BY_NAMES[:3] if name in rule.numbers}
    daily = RRule(freq="DAILY", wkst=rule.wkst, days=rule.days)
    arguments: dict[str, Any] = {**by, "byhour": (0,), "byminute": (0,), "bysecond": (0,)}
    if rule.days:
        arguments["byweekday"] = [day for _, day in rule.days]
    parts = _time_parts(rule, dtstart)
    empty_days, searched_from = 0, max(after, dtstart)
    for midnight in _from_dateutil(daily, arguments, dtstart, max(after, dtstart)):
        empty_days += 1
        for time in _times(parts, _phase(parts, dtstart, midnight)):
            empty_days, searched_from = 0, midnight
            yield midnight + time
        if empty_days > EMPTY_DAYS or (midnight - searched_from).days > BUDGET:
            raise BudgetSpent


class _TimeParts(NamedTuple):
    """The part of a sub-daily rule that chooses times within a day.

    `turns` is the number of its units in a day.
    """

    turns: int
    interval: int
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]


def _time_parts(rule: RRule, dtstart: datetime) -> _TimeParts:
    hourly = rule.freq == "HOURLY"
    return _TimeParts(
        turns=24 if hourly else 1440,
        interval=rule.interval,
        hours=rule.numbers.get("BYHOUR") or tuple(range(24)),
        minutes=rule.numbers.get("BYMINUTE") or ((dtstart.minute,) if hourly else tuple(range(60))),
        seconds=rule.numbers.get("BYSECOND") or (dtstart.second,),
    )


def _phase(parts: _TimeParts, dtstart: datetime, day: datetime) -> int:
    """The number of units between the last turn of the interval and the beginning of the day."""
    since = dtstart.hour if parts.turns == 24 else dtstart.hour * 60 + dtstart.minute
    return ((day.toordinal() - dtstart.toordinal()) * parts.turns - since) % parts.interval


@lru_cache(maxsize=4096)
def _times(parts: _TimeParts, phase: int) -> tuple[timedelta, ...]:
    """The times of a day that begins in that phase. All days of a phase have the same."""
    first = -phase % parts.interval
    chosen: list[tuple[int, int]] = []
    for turn in range(first, parts.turns, parts.interval):
        if parts.turns == 24:
            chosen += [(turn, minute) for minute in parts.minutes if turn in parts.hours]
        elif turn // 60 in parts.hours and turn % 60 in parts.minutes:
            chosen.append(divmod(turn, 60))
    return tuple(
        timedelta(hours=hour, minutes=minute, seconds=second)
        for hour, minute in chosen
        for second in parts.seconds
    )

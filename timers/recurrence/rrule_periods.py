"""The wall times of the RRULEs that dateutil reads differently from RFC 5545.

These are rules with BYWEEKNO, and MONTHLY or YEARLY rules whose BYDAY has both plain and numbered
days (`BYDAY=WE,1MO`).

Guarantee: a week of BYWEEKNO is whole. It belongs to the year that has at least four of its days, as
in ISO 8601, and its days before 1 January or after 31 December belong to the same period. Without
another part that chooses days, the weekday is that of DTSTART. Plain and numbered days are a union.
BYSETPOS counts within the period: a month, a year, or a year of weeks.

Why: dateutil cuts weeks at 1 January, fires on all seven days of a week without BYDAY, and takes the
intersection of plain and numbered days.

On failure: `BudgetSpent` after `BUDGET` days without a result.
"""

from calendar import isleap, monthrange
from collections.abc import Iterator
from datetime import MAXYEAR, date, datetime, time, timedelta

from timers.recurrence.rrule_text import RRule

# Days searched without a result: 54 years, a few milliseconds.
BUDGET = 20_000
_LENGTHS = {"YEARLY": 366, "MONTHLY": 31}
_DAY = timedelta(days=1)


class BudgetSpent(Exception):
    """The search checked `BUDGET` days and found nothing."""


def needs_periods(rule: RRule) -> bool:
    turns = {bool(turn) for turn, _ in rule.days}
    return "BYWEEKNO" in rule.numbers or len(turns) == 2


def walls_by_period(rule: RRule, dtstart: datetime, after: datetime) -> Iterator[datetime]:
    """The wall times of the periods from the one before `after`, in order, ignoring UNTIL."""
    times = _times(rule, dtstart)
    searched = 0
    for days in _periods(rule, dtstart, max(after, dtstart)):
        chosen = [day for day in days if _matches(rule, dtstart, day)]
        searched += _LENGTHS[rule.freq]
        walls = [datetime.combine(day, clock) for day in chosen for clock in times]
        if "BYSETPOS" in rule.numbers:
            walls = _at_positions(walls, rule.numbers["BYSETPOS"])
        if walls:
            searched = 0
        yield from walls
        if searched > BUDGET:
            raise BudgetSpent


def _times(rule: RRule, dtstart: datetime) -> list[time]:
    return sorted(
        time(hour, minute, second)
        for hour in rule.numbers.get("BYHOUR", (dtstart.hour,))
        for minute in rule.numbers.get("BYMINUTE", (dtstart.minute,))
        for second in rule.numbers.get("BYSECOND", (dtstart.second,))
    )


def _periods(rule: RRule, dtstart: datetime, near: datetime) -> Iterator[list[date]]:
    """The candidate days of each period, from one that ends before or at `near`."""
    if rule.freq == "MONTHLY":
        first = dtstart.year * 12 + dtstart.month - 1
        turn = (near.year * 12 + near.month - 1 - first) // rule.interval
        while (month := first + turn * rule.interval) // 12 <= MAXYEAR:
            yield _days_of_month(month // 12, month % 12 + 1)
            turn += 1
        return
    by_week = "BYWEEKNO" in rule.numbers
    # The first days of a calendar year can belong to the last week of the year before.
    turn = max(0, (near.year - int(by_week) - dtstart.year) // rule.interval)
    while (year := dtstart.year + turn * rule.interval) <= MAXYEAR:
        yield _days_of_weeks(rule, year) if by_week else _days_of_year(year)
        turn += 1


def _days_of_month(year: int, month: int) -> list[date]:
    return [date(year, month, day) for day in range(1, monthrange(year, month)[1] + 1)]


def _days_of_year(year: int) -> list[date]:
    first = date(year, 1, 1)
    return [first + number * _DAY for number in range(366 if isleap(year) else 365)]


def _days_of_weeks(rule: RRule, year: int) -> list[date]:
    if year >= MAXYEAR:
        return []
    first = _first_week(year, rule.wkst)
    weeks = (_first_week(year + 1, rule.wkst) - first).days // 7
    numbers = {number if number > 0 else weeks + 1 + number for number in rule.numbers["BYWEEKNO"]}
    return [
        first + (7 * (number - 1) + day) * _DAY
        for number in sorted(numbers)
        if 1 <= number <= weeks
        for day in range(7)
    ]


def _first_week(year: int, wkst: int) -> date:
    """The first day of the week with 4 January, which is the first with four days in the year."""
    fourth = date(year, 1, 4)
    return fourth - (fourth.weekday() - wkst) % 7 * _DAY


def _matches(rule: RRule, dtstart: datetime, day: date) -> bool:
    numbers = rule.numbers
    if "BYMONTH" in numbers and day.month not in numbers["BYMONTH"]:
        return False
    if "BYMONTHDAY" in numbers:
        length = monthrange(day.year, day.month)[1]
        if not {day.day, day.day - length - 1} & set(numbers["BYMONTHDAY"]):
            return False
    if "BYYEARDAY" in numbers:
        position, length = _position_in_year(day)
        if not {position, position - length - 1} & set(numbers["BYYEARDAY"]):
            return False
    if not rule.days:
        chosen = "BYMONTHDAY" in numbers or "BYYEARDAY" in numbers
        return chosen or day.weekday() == dtstart.weekday()
    return _is_named_day(rule, day)


def _is_named_day(rule: RRule, day: date) -> bool:
    if rule.freq == "YEARLY" and "BYMONTH" not in rule.numbers:
        position, length = _position_in_year(day)
    else:
        position, length = day.day, monthrange(day.year, day.month)[1]
    turns = (0, (position + 6) // 7, -((length - position) // 7 + 1))
    return any(weekday == day.weekday() and turn in turns for turn, weekday in rule.days)


def _position_in_year(day: date) -> tuple[int, int]:
    return (day.timetuple().tm_yday, 366 if isleap(day.year) else 365)


def _at_positions(walls: list[datetime], positions: tuple[int, ...]) -> list[datetime]:
    indexes = {position - 1 if position > 0 else len(walls) + position for position in positions}
    return [wall for index, wall in enumerate(walls) if index in indexes]

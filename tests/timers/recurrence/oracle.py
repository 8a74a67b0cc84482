"""An independent oracle of cron recurrences, which checks every minute and shares no code with the product.

Guarantee: `expected` gives the fires of an expression around one change of the clocks, found by reading the
wall clock at each UTC minute of the window. Gaps and folds are what that table shows: a wall time
no minute has, or that two minutes have. It knows nothing of `fold` or of tables of transitions.

Why so slow: what is counted out cannot share a mistake with what is computed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

ZONES = (
    "America/New_York",
    "Europe/London",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Asia/Beirut",
    "Africa/Casablanca",
    "Pacific/Apia",
    "Antarctica/Troll",
    "Africa/Cairo",
    "America/Santiago",
)
EXPRESSIONS = (
    # fixed times, at and around the hours at which clocks change
    *("0 0 * * *", "30 0 * * *", "0 1 * * *", "30 1 * * *", "59 1 * * *", "0 2 * * *", "15 2 * * *"),
    *("30 2 * * *", "0 3 * * *", "30 23 * * *", "59 23 * * *", "0 1-3 * * *", "0,30 1-3 * * *"),
    *(
        "15,45 0-4 * * *",
        "5/10 1-3 * * *",
        "0-59 2 * * *",
        "0 0,12 * * *",
        "0 22-2 * * *",
        "10,40 23,0,1 * * *",
    ),
    # days
    *("30 1 * * sun", "30 2 * * sat,sun", "0 0 * * mon-fri", "30 2 * * fri-mon", "30 1 * 11 sun"),
    *(
        "30 2 8-14 * *",
        "0 0 1 * *",
        "0 0 l * *",
        "30 2 l * *",
        "30 1 * * sun#1",
        "30 2 * * 0#2",
        "30 2 * * l0",
    ),
    *("0 1 1w * *", "30 2 15w * *", "0 2 1,15 * mon", "30 2 28-31 mar,oct *", "0 0 29 2 *", "0 3 */2 * *"),
    *("0 0 * 3-11/2 *", "30 1 * * 0-6/3"),
    # interval-like: a leading star in minute or hour
    *("* * * * *", "*/5 * * * *", "*/7 * * * *", "0 * * * *", "30 * * * *", "0,50 * * * *", "0 */2 * * *"),
    *("30 */3 * * *", "* 2 * * *", "*/30 2 * * *", "*/15 1,2 * * *", "*/20 0-3 * * sun", "10 */12 1-7 * *"),
)
POLICIES = tuple((gap, fold) for gap in ("forward", "skip") for fold in ("first", "second", "both"))
YEARS = (2007, 2037)

_MINUTE = timedelta(minutes=1)
_MARGIN = timedelta(hours=26)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


@dataclass
class Expression:
    """A cron expression, read in the plainest way."""

    text: str
    days_seen: dict[date, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.minute, self.hour, self.day, self.month, self.weekday = self.text.lower().split()
        self.interval_like = self.minute[0] == "*" or self.hour[0] == "*"
        self.minutes = _values(self.minute, 0, 59, [])
        self.hours = _values(self.hour, 0, 23, [])
        self.months = _values(self.month, 1, 12, _MONTHS)

    def matches_day(self, day: date) -> bool:
        if day not in self.days_seen:
            self.days_seen[day] = day.month in self.months and self._matches_either(day)
        return self.days_seen[day]

    def _matches_either(self, day: date) -> bool:
        by_date = any(self._matches_date(item, day) for item in self.day.split(","))
        by_weekday = any(self._matches_weekday(item, day) for item in self.weekday.split(","))
        if self.day == "*":
            return by_weekday
        return by_date if self.weekday == "*" else by_date or by_weekday

    def _matches_date(self, item: str, day: date) -> bool:
        if item == "l":
            return (day + timedelta(days=1)).month != day.month
        if item.endswith("w"):
            return day == _nearest_working_day(day.replace(day=int(item[:-1])))
        return day.day in _values(item, 1, 31, [])

    def _matches_weekday(self, item: str, day: date) -> bool:
        number = (day.weekday() + 1) % 7
        if "#" in item:
            name, turn = item.split("#")
            seen = sum(
                1 for earlier in range(1, day.day + 1) if day.replace(day=earlier).weekday() == day.weekday()
            )
            return number in _values(name, 0, 7, _WEEKDAYS) and seen == int(turn)
        if item.startswith("l") and len(item) == 2:
            return number == int(item[1]) % 7 and (day + timedelta(days=7)).month != day.month
        return number in {value % 7 for value in _values(item, 0, 7, _WEEKDAYS)}


def _values(text: str, low: int, high: int, names: list[str]) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        start, dash, end = span.partition("-")
        if start == "*":
            first, last = low, high
        else:
            first = names.index(start) + (low if low else 0) if start in names else int(start)
            if dash:
                last = names.index(end) + (low if low else 0) if end in names else int(end)
            else:
                last = high if step else first
        size = high - low + 1 - (high == 7)
        while last < first:
            last += size
        for number in range(first, last + 1, int(step or 1)):
            found.add(number if number <= high else number - size)
    return found


def _nearest_working_day(wanted: date) -> date:
    nearby = (wanted + timedelta(days=away) for away in (0, -1, 1, -2, 2))
    return next(day for day in nearby if day.weekday() < 5 and day.month == wanted.month)


@dataclass
class Window:
    """Every UTC minute around one change of the clocks, with the wall time it shows."""

    zone: str
    start: datetime
    end: datetime
    minutes: list[tuple[datetime, datetime]]
    by_wall: dict[datetime, list[datetime]]


def changes(zone: str, years: tuple[int, int] = YEARS) -> Iterator[datetime]:
    """The first UTC minute of each new offset."""
    tz = ZoneInfo(zone)
    instant = datetime(years[0], 1, 1, tzinfo=UTC)
    while instant.year <= years[1]:
        later = instant + timedelta(hours=6)
        if instant.astimezone(tz).utcoffset() != later.astimezone(tz).utcoffset():
            probe = instant
            while probe.astimezone(tz).utcoffset() == instant.astimezone(tz).utcoffset():
                probe += _MINUTE
            yield probe
        instant = later


def window(zone: str, around: datetime) -> Window:
    tz = ZoneInfo(zone)
    start, end = around - _MARGIN, around + _MARGIN
    count = (end - start) // _MINUTE
    instants = [start + number * _MINUTE for number in range(1, count + 1)]
    minutes = [(instant, instant.astimezone(tz).replace(tzinfo=None, fold=0)) for instant in instants]
    by_wall: dict[datetime, list[datetime]] = {}
    for instant, wall in minutes:
        by_wall.setdefault(wall, []).append(instant)
    return Window(zone, start, end, minutes, by_wall)


def matching(expression: Expression, seen: Window) -> list[datetime]:
    """The wall times of the window that match, those that do not exist as well."""
    found = []
    wall, last = seen.minutes[0][1], seen.minutes[-1][1]
    while wall <= last:
        if not expression.matches_day(wall.date()) or wall.hour not in expression.hours:
            wall = wall.replace(minute=0) + timedelta(hours=1)
            continue
        if wall.minute in expression.minutes:
            found.append(wall)
        wall += _MINUTE
    return found


def expected(
    expression: Expression, seen: Window, walls: list[datetime], gap: str, fold: str
) -> list[datetime]:
    """The fires in (start, end] of the window, in order; `walls` are the ones `matching` gave."""
    if expression.interval_like:
        return sorted(instant for wall in set(walls) for instant in seen.by_wall.get(wall, []))
    fires: set[datetime] = set()
    for wall in walls:
        instants = seen.by_wall.get(wall, [])
        if instants:
            fires.update({"first": instants[:1], "second": instants[-1:], "both": instants}[fold])
        elif gap == "forward":
            fires.add(next(instant for instant, shown in seen.minutes if shown > wall))
    return sorted(fires)

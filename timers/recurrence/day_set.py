"""Sets of days: what a calendar contains. Pure.

Guarantee: membership depends on the definition alone, never on a timezone, the present time or
installed data. A day is in the set if it is among its own days (weekdays, dates, yearly days, rrules)
or in a calendar of `any_of`, and in every calendar of `all_of`, and in none of `none_of`. A set with
neither own days nor `any_of` begins with all days.

A definition is plain JSON with the calendars that it refers to inside, so a stored recurrence needs
nothing else:

    {"weekdays": [0, 1, 2, 3, 4], "none_of": {"holidays": {"dates": ["2026-12-24/2026-12-26"]}}}

On failure: `InvalidInput` that names the part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Protocol

from timers.recurrence.rrule import RulePattern
from timers.recurrence.rrule_text import SUB_DAILY, parse_rule, rrule_error
from tocsin.core.errors import InvalidInput

DEEPEST = 8
"""Levels of calendars inside calendars."""
LARGEST_BYTES = 200_000
"""Of a definition, with everything that it refers to."""
_FARTHEST_DAYS = 3_700
_MAX_RULES = 50
_CACHED_YEARS = 64
_DAY = timedelta(days=1)
_CALENDAR = (date.min, date.max)
_OWN = frozenset(("weekdays", "dates", "yearly", "rrules"))
_OTHERS = ("any_of", "all_of", "none_of")
_KEYS = {*_OWN, *_OTHERS, "dtstart"}
_YEARLY = re.compile(r"([0-9]{2})-([0-9]{2})")
_FIRST_START = "1970-01-01"


class Days(Protocol):
    """Anything that contains days."""

    span: tuple[date, date]
    """No day is outside of it."""

    def __contains__(self, day: date) -> bool: ...


class DaySet:
    """A compiled definition. `day_set` makes it."""

    def __init__(self, definition: Mapping[str, object], depth: int = 0) -> None:
        if depth > DEEPEST:
            raise InvalidInput(f"calendars inside calendars are deeper than {DEEPEST} levels")
        unknown = sorted(set(definition) - _KEYS)
        if unknown:
            raise InvalidInput(f"{unknown[0]!r} is not a part of a calendar")
        self._weekdays = frozenset(int(str(number)) for number in _list(definition, "weekdays"))
        self._dates, self._ranges = _dates(_list(definition, "dates"))
        self._yearly = frozenset(_yearly(str(text)) for text in _list(definition, "yearly"))
        start = datetime.combine(_date(str(definition.get("dtstart", _FIRST_START))), time())
        rules = _list(definition, "rrules")
        if len(rules) > _MAX_RULES:
            raise InvalidInput(f"{len(rules)} rrules are too many, at most {_MAX_RULES}")
        self._rules = tuple(_rule(str(text), start) for text in rules)
        self._years: dict[int, frozenset[date]] = {}
        any_of, all_of, none_of = (_others(definition, key, depth) for key in _OTHERS)
        self._any_of, self._all_of, self._none_of = any_of, all_of, none_of
        self._begins_with_all = not any_of and not _OWN & definition.keys()
        self.span = self._find_span()

    def __contains__(self, day: date) -> bool:
        begins = self._begins_with_all or self._is_own(day) or any(day in each for each in self._any_of)
        return (
            begins
            and all(day in each for each in self._all_of)
            and not any(day in each for each in self._none_of)
        )

    def _is_own(self, day: date) -> bool:
        return (
            day.weekday() in self._weekdays
            or day in self._dates
            or (day.month, day.day) in self._yearly
            or any(first <= day <= last for first, last in self._ranges)
            or (bool(self._rules) and day in self._days_of_rules(day.year))
        )

    def _find_span(self) -> tuple[date, date]:
        spans = [*((day, day) for day in self._dates), *self._ranges, *(each.span for each in self._any_of)]
        if self._begins_with_all or self._weekdays or self._yearly or self._rules or not spans:
            spans = [_CALENDAR]
        first, last = min(first for first, _ in spans), max(last for _, last in spans)
        return common_span([(first, last), *(each.span for each in self._all_of)])

    def _days_of_rules(self, year: int) -> frozenset[date]:
        days = self._years.get(year)
        if days is None:
            end = datetime(year, 12, 31, 23, 59, 59)  # noqa: DTZ001 - naive wall time
            found: set[date] = set()
            for rule in self._rules:
                wall = rule.next_wall(datetime(year, 1, 1) - timedelta(seconds=1))  # noqa: DTZ001
                while wall is not None and wall <= end:
                    found.add(wall.date())
                    wall = rule.next_wall(wall)
            if len(self._years) >= _CACHED_YEARS:
                self._years.clear()
            days = self._years[year] = frozenset(found)
        return days


@lru_cache(maxsize=4096)
def day_set(text: str) -> DaySet:
    """The set of a definition as canonical JSON. Calendars that many schedules use are compiled once."""
    if len(text) > LARGEST_BYTES:
        raise InvalidInput(
            f"a calendar with all calendars that it uses has {len(text):,} bytes",
            remedy=f"keep it below {LARGEST_BYTES:,}: remove past dates, or use ranges and rrules",
        )
    definition = json.loads(text)
    if not isinstance(definition, dict):
        raise InvalidInput(f"{text[:80]} is not a calendar")
    return DaySet(definition)


def definition_text(definition: Mapping[str, object]) -> str:
    return json.dumps(definition, sort_keys=True, separators=(",", ":"))


def parse_day(text: str) -> tuple[date, date]:
    """A date, or a range of dates with both ends: `2026-12-24/2026-12-26`."""
    first, slash, last = text.partition("/")
    begin = _date(first)
    end = _date(last) if slash else begin
    if end < begin:
        raise InvalidInput(f"the range {text!r} ends before it begins", remedy="swap its ends")
    return begin, end


def _date(text: str) -> date:
    try:
        if len(text) != len("2026-01-01"):
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"{text[:40]!r} is not a date", remedy="write 2026-12-25, or 2026-12-24/2026-12-26 for a range"
        ) from None


def _dates(texts: list[object]) -> tuple[frozenset[date], tuple[tuple[date, date], ...]]:
    spans = [parse_day(str(text)) for text in texts]
    single = frozenset(first for first, last in spans if first == last)
    return single, tuple(span for span in spans if span[0] != span[1])


def _yearly(text: str) -> tuple[int, int]:
    match = _YEARLY.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        day = date(2000, int(match[1]), int(match[2]))  # a leap year, so that 02-29 is accepted
    except ValueError:
        raise InvalidInput(
            f"{text[:40]!r} is not a day of the year", remedy="write month and day, as 12-25"
        ) from None
    return day.month, day.day


def _rule(text: str, start: datetime) -> RulePattern:
    rule = parse_rule(text)
    finer = sorted({"BYHOUR", "BYMINUTE", "BYSECOND"} & rule.numbers.keys())
    if rule.freq in SUB_DAILY or finer:
        part = f"FREQ={rule.freq}" if rule.freq in SUB_DAILY else finer[0]
        raise rrule_error(text, f"a calendar is a set of days: {part} is finer, remove it")
    if rule.count is not None:
        raise rrule_error(text, "COUNT is not supported in a calendar: write UNTIL")
    return RulePattern(rule, start, (), ())


def _list(definition: Mapping[str, object], key: str) -> list[object]:
    value = definition.get(key, [])
    if not isinstance(value, list):
        raise InvalidInput(f"{key!r} of a calendar is not a list")
    return value


def _others(definition: Mapping[str, object], key: str, depth: int) -> tuple[DaySet, ...]:
    others = definition.get(key, {})
    if not isinstance(others, dict):
        raise InvalidInput(f"{key!r} of a calendar is not a mapping")
    return tuple(DaySet(other, depth + 1) for other in others.values())


def common_span(spans: Iterable[tuple[date, date]]) -> tuple[date, date]:
    """The days that all spans contain. Its first day is behind its last one if there are none."""
    begins, ends = zip(_CALENDAR, *spans, strict=True)
    return max(begins), min(ends)


def nearest_day(days: Days, day: date, step: int) -> date | None:
    """The first day in the set from `day` on, forwards or backwards.

    None if there is none, or if the set has no day within ten years of the first that is possible.
    """
    first, last = days.span
    day = max(day, first) if step > 0 else min(day, last)
    if not first <= day <= last:
        return None
    for _ in range(_FARTHEST_DAYS):
        if day in days:
            return day
        day += step * _DAY
    return None

"""Reads the whole-day events of an iCalendar file (RFC 5545) as the days of a calendar. Pure.

Guarantee: the result is every day that an event covers in the given years: dates and ranges, repeated
by RRULE and RDATE, without EXDATE, cancelled events and moved instances (RECURRENCE-ID). What cannot
be read as whole days, such as an event with a time of day, is left out and named with its line.

The input is a stranger's: its bytes, its events and the days that it covers are bounded.

On failure: `InvalidInput` for a text that is not an iCalendar file or is too large.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from timers.recurrence.rrule import RulePattern
from timers.recurrence.rrule_text import SUB_DAILY, parse_rule
from tocsin.core.errors import InvalidInput

LARGEST_BYTES = 2_000_000
MAX_EVENTS = 5_000
MAX_DAYS = 5_000
_MAX_NOTES = 100
_LONGEST_EVENT = timedelta(days=366)
_DAY = timedelta(days=1)
_DATE = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})")
_DURATION = re.compile(r"\+?P(?:([0-9]{1,3})W|([0-9]{1,3})D)")


class IcsProblem(NamedTuple):
    """What was left out, and why."""

    line: int
    message: str


class IcsDays(NamedTuple):
    days: tuple[date, ...]
    """Sorted, without repetitions."""
    problems: tuple[IcsProblem, ...]


class _LeftOut(Exception):
    """An event that is not whole days."""


@dataclass
class _Event:
    line: int
    values: dict[str, list[str]] = field(default_factory=dict)
    """The values of each property, by its name."""

    def one(self, name: str) -> str | None:
        values = self.values.get(name)
        return None if values is None else values[0]

    @property
    def title(self) -> str:
        summary = self.one("SUMMARY")
        return "" if summary is None else f" '{summary[:60]}'"


def days_of_ics(text: str, first_year: int, last_year: int) -> IcsDays:
    """The days of the events in these years, both included."""
    if len(text.encode()) > LARGEST_BYTES:
        raise InvalidInput(
            f"the file has {len(text.encode()):,} bytes", remedy=f"import at most {LARGEST_BYTES:,} at a time"
        )
    first, last = date(first_year, 1, 1), date(last_year, 12, 31)
    days: set[date] = set()
    problems: list[IcsProblem] = []
    events = list(_events(text))
    moved = _moved_instances(events)
    for event in events:
        try:
            days.update(_days(event, first, last, moved))
        except (_LeftOut, InvalidInput) as error:
            problems.append(IcsProblem(event.line, f"event{event.title} is left out: {error}"))
        if len(days) > MAX_DAYS:
            raise InvalidInput(f"the file covers more than {MAX_DAYS:,} days", remedy="import fewer years")
    return IcsDays(tuple(sorted(days)), tuple(problems[:_MAX_NOTES]))


def date_texts(days: tuple[date, ...]) -> list[str]:
    """Days as dates and ranges, as a `calendar` document holds them."""
    texts: list[str] = []
    begin = end = None
    for day in (*days, None):
        if begin is not None and end is not None and day == end + _DAY:
            end = day
            continue
        if begin is not None:
            texts.append(f"{begin}" if begin == end else f"{begin}/{end}")
        begin = end = day
    return texts


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """The content lines with their numbers. A line that begins with a space continues the one before."""
    number, content = 0, ""
    for index, line in enumerate(text.splitlines(), start=1):
        if line[:1] in (" ", "\t") and content:
            content += line[1:]
            continue
        if content:
            yield number, content
        number, content = index, line
    if content:
        yield number, content


def _events(text: str) -> Iterator[_Event]:
    event: _Event | None = None
    inside: list[str] = []
    count = 0
    for number, line in _lines(text.removeprefix("\ufeff")):
        name, value = _property(line)
        if number == 1 and (name, value.upper()) != ("BEGIN", "VCALENDAR"):
            break
        if name == "BEGIN":
            inside.append(value.upper())
            if value.upper() == "VEVENT":
                event, count = _Event(number), count + 1
                if count > MAX_EVENTS:
                    raise InvalidInput(f"the file has more than {MAX_EVENTS:,} events", remedy="split it")
        elif name == "END":
            if value.upper() == "VEVENT" and event is not None:
                yield event
                event = None
            if inside:
                inside.pop()
        elif name and event is not None and inside[-1:] == ["VEVENT"]:
            event.values.setdefault(name, []).append(value)
    else:
        if text.strip():
            return
    raise InvalidInput("the file is not an iCalendar file", remedy="its first line is BEGIN:VCALENDAR")


def _property(line: str) -> tuple[str, str]:
    """Name and value of a content line. A colon within quotes belongs to a parameter."""
    is_quoted = False
    for index, character in enumerate(line):
        if character == '"':
            is_quoted = not is_quoted
        elif character == ":" and not is_quoted:
            return line[:index].partition(";")[0].upper(), line[index + 1 :].strip()
    return "", ""


def _moved_instances(events: list[_Event]) -> dict[str, set[date]]:
    """The days of instances that events of their own replace, by the uid of the series."""
    moved: dict[str, set[date]] = {}
    for event in events:
        uid, replaced = event.one("UID"), event.one("RECURRENCE-ID")
        if uid is not None and replaced is not None:
            # An instance that is no whole day is left out when its own event is read.
            with suppress(_LeftOut):
                moved.setdefault(uid, set()).add(_whole_day(replaced, "RECURRENCE-ID"))
    return moved


def _days(event: _Event, first: date, last: date, moved: dict[str, set[date]]) -> Iterator[date]:
    status, start = event.one("STATUS"), event.one("DTSTART")
    if status is not None and status.upper() == "CANCELLED":
        return
    if start is None:
        raise _LeftOut("it has no DTSTART")
    begin = _whole_day(start, "DTSTART")
    length = _length(event, begin)
    excluded = set(_dates(event, "EXDATE"))
    uid = event.one("UID")
    if uid is not None and event.one("RECURRENCE-ID") is None:
        excluded |= moved.get(uid, set())
    for occurrence in sorted(
        {*_starts(event, begin, first - length, last), *_dates(event, "RDATE")} - excluded
    ):
        for number in range(length.days):
            day = occurrence + number * _DAY
            if first <= day <= last:
                yield day


def _starts(event: _Event, begin: date, after: date, last: date) -> Iterator[date]:
    """The first days of its occurrences. That of DTSTART always counts."""
    yield begin
    for text in event.values.get("RRULE", []):
        rule = parse_rule(text)
        if rule.freq in SUB_DAILY or {"BYHOUR", "BYMINUTE", "BYSECOND"} & rule.numbers.keys():
            raise _LeftOut(f"its RRULE {text[:80]!r} is finer than days")
        pattern = RulePattern(rule, datetime.combine(begin, time()), (), ())
        remaining = rule.count
        # A counted rule is walked from its start, any other from the years that are asked for.
        wall = datetime.combine(begin if remaining is not None else max(begin, after), time()) - _DAY
        found = pattern.next_wall(wall)
        while found is not None and found.date() <= last and remaining != 0:
            yield found.date()
            remaining = None if remaining is None else remaining - 1
            found = pattern.next_wall(found)


def _dates(event: _Event, name: str) -> Iterator[date]:
    for value in event.values.get(name, []):
        for text in value.split(","):
            yield _whole_day(text, name)


def _whole_day(text: str, name: str) -> date:
    if not _DATE.fullmatch(text):
        raise _LeftOut(f"{name} {text[:40]!r} is not a whole day")
    return _parse_date(text)


def _parse_date(text: str) -> date:
    match = _DATE.fullmatch(text)
    assert match is not None
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        raise _LeftOut(f"{text!r} is not a date") from None


def _length(event: _Event, begin: date) -> timedelta:
    end, duration = event.one("DTEND"), event.one("DURATION")
    length = _DAY
    if end is not None:
        length = _whole_day(end, "DTEND") - begin
    elif duration is not None:
        match = _DURATION.fullmatch(duration)
        if match is None:
            raise _LeftOut(f"DURATION {duration[:40]!r} is not whole days")
        length = timedelta(weeks=int(match[1] or 0), days=int(match[2] or 0))
    # DTEND is the day after the last one. Some programs write the first day instead.
    length = max(length, _DAY)
    if length > _LONGEST_EVENT:
        raise _LeftOut(f"it covers {length.days} days, more than {_LONGEST_EVENT.days}")
    return length

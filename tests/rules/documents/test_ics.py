"""Whole-day events of iCalendar files become days; everything else is named and left out."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta

import pytest
from dateutil.rrule import rrulestr

from rules.documents.ics import MAX_EVENTS, IcsDays, date_texts, days_of_ics
from tocsin.core.errors import InvalidInput


def calendar(*events: str) -> str:
    body = "".join(f"BEGIN:VEVENT\r\n{event}\r\nEND:VEVENT\r\n" for event in events)
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{body}END:VCALENDAR\r\n"


def read(*lines: str) -> IcsDays:
    return days_of_ics(calendar("\r\n".join(lines)), 2026, 2027)


def texts(found: IcsDays) -> list[str]:
    return date_texts(found.days)


@pytest.mark.parametrize(
    ("lines", "days"),
    [
        (("DTSTART;VALUE=DATE:20261225",), ["2026-12-25"]),
        (("DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261227"), ["2026-12-24/2026-12-26"]),
        (("DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20261224"), ["2026-12-24"]),
        (("DTSTART;VALUE=DATE:20261224", "DURATION:P1W"), ["2026-12-24/2026-12-30"]),
        (("DTSTART;VALUE=DATE:20251231", "DURATION:P3D"), ["2026-01-01/2026-01-02"]),
        (("dtstart;value=date:20200704", "rrule:FREQ=YEARLY"), ["2026-07-04", "2027-07-04"]),
        (("DTSTART;VALUE=DATE:20260105", "RRULE:FREQ=WEEKLY;COUNT=2"), ["2026-01-05", "2026-01-12"]),
        (("DTSTART;VALUE=DATE:20250105", "RRULE:FREQ=WEEKLY;COUNT=3"), []),
        (
            ("DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=YEARLY", "EXDATE;VALUE=DATE:20270101"),
            ["2026-01-01"],
        ),
        (
            ("DTSTART;VALUE=DATE:20260101", "RDATE;VALUE=DATE:20260301,20260401"),
            ["2026-01-01", "2026-03-01", "2026-04-01"],
        ),
        (("DTSTART;VALUE=DATE:20261225", "STATUS:CANCELLED"), []),
        (("DTSTART;VALUE=DATE:202612", " 25", 'SUMMARY;X="a:b;c":A long', "  title"), ["2026-12-25"]),
        (("DTSTART;VALUE=DATE:20261225", "BEGIN:VALARM", "DTSTART:junk", "END:VALARM"), ["2026-12-25"]),
    ],
)
def test_the_days_of_an_event(lines: tuple[str, ...], days: list[str]) -> None:
    found = read(*lines)
    assert (texts(found), found.problems) == (days, ())


def test_an_instance_that_was_moved_replaces_its_day() -> None:
    series = "UID:1\r\nDTSTART;VALUE=DATE:20260101\r\nRRULE:FREQ=YEARLY"
    moved = "UID:1\r\nRECURRENCE-ID;VALUE=DATE:20270101\r\nDTSTART;VALUE=DATE:20270104"
    assert texts(days_of_ics(calendar(series, moved), 2026, 2027)) == ["2026-01-01", "2027-01-04"]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (("SUMMARY:Lunch", "DTSTART:20261224T120000Z"), "event 'Lunch' is left out: DTSTART"),
        (("SUMMARY:None",), "it has no DTSTART"),
        (("DTSTART;VALUE=DATE:20261324",), "'20261324' is not a date"),
        (("DTSTART;VALUE=DATE:20261224", "DURATION:PT3H"), "is not whole days"),
        (("DTSTART;VALUE=DATE:20261224", "DTEND;VALUE=DATE:20991231"), "more than 366"),
        (("DTSTART;VALUE=DATE:20261224", "RRULE:FREQ=HOURLY"), "is finer than days"),
        (("DTSTART;VALUE=DATE:20261224", "RRULE:FREQ=NEVER"), "NEVER"),
    ],
)
def test_an_event_that_is_not_whole_days_is_named_with_its_line(lines: tuple[str, ...], problem: str) -> None:
    (found,) = read(*lines).problems
    assert found.line == 3
    assert problem in found.message


def test_hostile_files_end_quickly() -> None:
    with pytest.raises(InvalidInput, match="more than 5,000 events"):
        days_of_ics(calendar(*["DTSTART;VALUE=DATE:20261224"] * (MAX_EVENTS + 1)), 2026, 2027)
    with pytest.raises(InvalidInput, match="bytes"):
        days_of_ics("BEGIN:VCALENDAR\r\n" + ";" * 2_000_000, 2026, 2027)
    with pytest.raises(InvalidInput, match="more than 5,000 days"):
        days_of_ics(calendar("DTSTART;VALUE=DATE:20200101\r\nRRULE:FREQ=DAILY"), 2026, 2060)
    assert days_of_ics(calendar('SUMMARY;A="' + ';";' * 100_000), 2026, 2027).days == ()
    for text in ("", "hello", "BEGIN:VEVENT\r\nEND:VEVENT"):
        with pytest.raises(InvalidInput, match="not an iCalendar file"):
            days_of_ics(text, 2026, 2027)


@pytest.mark.parametrize("seed", range(6))
def test_repeated_events_have_the_days_of_dateutil(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(25):
        start = date(2020, 1, 1) + timedelta(days=choose.randrange(2_500))
        length = choose.randint(1, 4)
        rule = choose.choice(
            (
                f"FREQ=YEARLY;INTERVAL={choose.randint(1, 3)}",
                f"FREQ=YEARLY;BYMONTH={start.month};BYDAY={(start.day - 1) // 7 + 1}{start:%a}".upper()[:-1],
                f"FREQ=MONTHLY;BYMONTHDAY={min(start.day, 28)};COUNT={choose.randint(1, 40)}",
                f"FREQ=WEEKLY;INTERVAL={choose.randint(1, 5)};UNTIL=20271231",
                f"FREQ=DAILY;INTERVAL={choose.randint(20, 90)}",
            )
        )
        end = start + timedelta(days=length)
        found = read(f"DTSTART;VALUE=DATE:{start:%Y%m%d}", f"DTEND;VALUE=DATE:{end:%Y%m%d}", f"RRULE:{rule}")
        oracle = rrulestr(rule, dtstart=datetime(start.year, start.month, start.day))
        expected = {
            wall.date() + timedelta(days=number)
            for wall in (*oracle.between(datetime(2015, 1, 1), datetime(2028, 1, 1), inc=True), oracle[0])
            for number in range(length)
        } | {start + timedelta(days=number) for number in range(length)}
        assert found.days == tuple(sorted(day for day in expected if day.year in (2026, 2027))), rule

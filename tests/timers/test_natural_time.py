"""One-shot times in words: each text is one instant after now, or it is refused with a hint."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timers.natural_time import parse_when
from timers.recurrence.zones import zone
from tocsin.core.errors import InvalidInput

TZ = "America/New_York"
NOW = datetime(2026, 3, 4, 10, 30, tzinfo=zone(TZ)).astimezone(UTC)  # a Wednesday; clocks change on the 8th
UNDERSTOOD = {
    "in 30 minutes": "2026-03-04 11:00",
    "in 90 seconds": "2026-03-04 10:31:30",
    "in 1h30m": "2026-03-04 12:00",
    "in 1 hour and 30 minutes": "2026-03-04 12:00",
    "in 1 hour, 30 minutes": "2026-03-04 12:00",
    "in an hour": "2026-03-04 11:30",
    "in half an hour": "2026-03-04 11:00",
    "in 2 weeks": "2026-03-18 10:30",
    "in 5 days": "2026-03-09 10:30",
    "in a week and 2 days": "2026-03-13 10:30",
    "in 120 hours": "2026-03-09 11:30",
    "in 4d": "2026-03-08 10:30",
    "in 1 day and 2 hours": "2026-03-05 12:30",
    "IN  30   Minutes": "2026-03-04 11:00",
    "tomorrow at 9am": "2026-03-05 09:00",
    "tomorrow at 9": "2026-03-05 09:00",
    "tomorrow 9:15 pm": "2026-03-05 21:15",
    "tomorrow at noon": "2026-03-05 12:00",
    "9am tomorrow": "2026-03-05 09:00",
    "the day after tomorrow at 12pm": "2026-03-06 12:00",
    "today at 17:30": "2026-03-04 17:30",
    "today at 17:30:15": "2026-03-04 17:30:15",
    "tonight at 8": "2026-03-04 20:00",
    "tonight at 8:30pm": "2026-03-04 20:30",
    "tonight at 23:00": "2026-03-04 23:00",
    "tonight at midnight": "2026-03-05 00:00",
    "next monday at 3pm": "2026-03-09 15:00",
    "next tuesday at 3pm": "2026-03-10 15:00",
    "30 minutes from now": "2026-03-04 11:00",
    "an hour from now": "2026-03-04 11:30",
    "two days from now": "2026-03-06 10:30",
    "half an hour from now": "2026-03-04 11:00",
    "in two hours": "2026-03-04 12:30",
    "in twenty-five minutes": "2026-03-04 10:55",
    "in ninety seconds": "2026-03-04 10:31:30",
    "tomorrow at nine": "2026-03-05 09:00",
    "tomorrow at nine p.m.": "2026-03-05 21:00",
    "tomorrow at 9 a.m.": "2026-03-05 09:00",
    "tomorrow at 9:30 P.M.": "2026-03-05 21:30",
    "tomorrow at 0900": "2026-03-05 09:00",
    "at 0900": "2026-03-05 09:00",
    "march 10 at 2130": "2026-03-10 21:30",
    "march 10 2027 at 0900": "2027-03-10 09:00",
    "at 0900 tomorrow": "2026-03-05 09:00",
    "tomorrow at half past nine": "2026-03-05 09:30",
    "tomorrow at half past 3pm": "2026-03-05 15:30",
    "half past ten pm tomorrow": "2026-03-05 22:30",
    "tomorrow at quarter to nine": "2026-03-05 08:45",
    "tomorrow at a quarter past 8": "2026-03-05 08:15",
    "tomorrow at quarter to 1 pm": "2026-03-05 12:45",
    "tonight at half past eight": "2026-03-04 20:30",
    "tomorrow at 9 o'clock": "2026-03-05 09:00",
    "friday at 15:00": "2026-03-06 15:00",
    "on friday at 15:00": "2026-03-06 15:00",
    "fri at 3pm": "2026-03-06 15:00",
    "wednesday at 11am": "2026-03-04 11:00",
    "wednesday at 9am": "2026-03-11 09:00",
    "next wednesday at 11am": "2026-03-11 11:00",
    "this wednesday at 11am": "2026-03-04 11:00",
    "at 9am": "2026-03-05 09:00",
    "at 11am": "2026-03-04 11:00",
    "at 12am": "2026-03-05 00:00",
    "at 10:30": "2026-03-05 10:30",
    "noon": "2026-03-04 12:00",
    "at midnight": "2026-03-05 00:00",
    "on 2026-03-10 at 14:00": "2026-03-10 14:00",
    "2026-03-10 at 2pm": "2026-03-10 14:00",
    "march 10 at 2pm": "2026-03-10 14:00",
    "on march 10th, 2027 at 2pm": "2027-03-10 14:00",
    "10 mar at 14:00": "2026-03-10 14:00",
    "january 1 at 00:00": "2027-01-01 00:00",
    "feb 29 at 9am": "2028-02-29 09:00",
    "2026-03-10T14:00:00Z": "2026-03-10 10:00",
    "2026-03-10T14:00:00+01:00": "2026-03-10 09:00",
    "2026-03-10T14:00": "2026-03-10 14:00",
    "2026-03-10 14:00": "2026-03-10 14:00",
    "sunday at 2:30am": "2026-03-08 03:00",
}
REFUSED = {
    "": "write 'in 30 minutes'",
    "1": "write 'in 30 minutes'",
    "9": "write 'in 30 minutes'",
    "soon": "write 'in 30 minutes'",
    "monday": "needs a clock time",
    "next monday": "needs a clock time",
    "tomorrow": "needs a clock time",
    "march 10": "needs a clock time",
    "2026-03-10": "needs a clock time",
    "tomorrow at 9am please": "write 'in 30 minutes'",
    "please tomorrow at 9am": "write 'in 30 minutes'",
    "tomorrow at 9am EST": "abbreviations are ambiguous",
    "in 2 months": "differ in length",
    "in a year": "differ in length",
    "in 5": "write 'in 30 minutes'",
    "in": "write 'in 30 minutes'",
    "in -5 minutes": "write 'in 30 minutes'",
    "in 30 minutes 1 hour": "write 'in 30 minutes'",
    "in 1h and": "write 'in 30 minutes'",
    "in 1.5 hours": "write 'in 30 minutes'",
    "in 4000 days": "too far away",
    "in 9999999 weeks": "too far away",
    "in 0 minutes": "in the past",
    "today at 9am": "in the past",
    "today at 10:30": "in the past",
    "2020-01-01T00:00:00Z": "in the past",
    "march 3, 2026 at 2pm": "in the past",
    "tomorrow at 25:00": "not a clock time",
    "tomorrow at 9:75": "not a clock time",
    "tomorrow at 13pm": "1 to 12",
    "tomorrow at 0am": "1 to 12",
    "tonight at 9am": "not tonight",
    "tonight at noon": "calendar|not tonight",
    "friday at midnight": "ambiguous",
    "3 jan 10": "'3 jan at 10'",
    "may 1st 01": "'may 1st at 01'",
    "14th april 15": "'14th april at 15'",
    "friday 10": "'friday at 10'",
    "tomorrow 0900": "'tomorrow at 0900'",
    "march 10 0900": "needs a clock time",
    "10 jan 3": "'10 jan at 3'",
    "15 tomorrow": "'tomorrow at 15'",
    "3 jan ten": "'3 jan at 10'",
    "friday at 3": "3am, 3pm or 03:00",
    "tomorrow at half past three": "half past 3am or half past 3pm",
    "nov 18th at 4": "4am, 4pm or 04:00",
    "next friday at 3pm": "'friday at 3pm' for 2026-03-06, or '2026-03-13 at 3pm'",
    "tomorrow at 2460": "not a clock time",
    "tomorrow at 0960": "not a clock time",
    "tomorrow at half past 13": "not a clock time|1 to 12",
    "from now": "write 'in 30 minutes'",
    "in five": "write 'in 30 minutes'",
    "in one two hours": "write 'in 30 minutes'",
    "tomorrow at midnight": "ambiguous",
    "feb 30 at 9am": "calendar",
    "march 10, 0000 at 9am": "calendar",
    "2026-02-30 at 9am": "calendar",
    "tomorrow at ٩": "write 'in 30 minutes'",
    "in " + "1h" * 1000: "write 'in 30 minutes'",
}


@pytest.mark.parametrize(("text", "local"), UNDERSTOOD.items())
def test_common_phrases_become_the_instants_that_they_mean(text: str, local: str) -> None:
    found = parse_when(text, now=NOW, tz=TZ)
    assert found.tzinfo is UTC
    assert found.astimezone(zone(TZ)).replace(tzinfo=None) == datetime.fromisoformat(local)


@pytest.mark.parametrize(("text", "hint"), REFUSED.items(), ids=[ascii(text[:40]) for text in REFUSED])
def test_vague_and_past_times_are_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(InvalidInput, match=hint) as refused:
        parse_when(text, now=NOW, tz=TZ)
    assert len(str(refused.value)) < 500


def test_days_keep_the_wall_clock_and_hours_are_elapsed() -> None:
    days = parse_when("in 7 days", now=NOW, tz=TZ)
    hours = parse_when("in 168 hours", now=NOW, tz=TZ)
    assert hours - NOW == timedelta(days=7)
    assert hours - days == timedelta(hours=1)


def test_a_repeated_time_is_the_first_one_still_ahead() -> None:
    first = datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    assert parse_when("at 1:30am", now=first - timedelta(minutes=5), tz=TZ) == first
    assert parse_when("at 1:30am", now=first + timedelta(minutes=5), tz=TZ) == first + timedelta(hours=1)


def test_now_and_the_zone_are_needed() -> None:
    with pytest.raises(InvalidInput, match="no timezone"):
        parse_when("at 9am", now=datetime(2026, 3, 4), tz=TZ)
    with pytest.raises(InvalidInput, match="unknown timezone"):
        parse_when("at 9am", now=NOW, tz="EDT")


def test_the_zone_decides_what_tomorrow_is() -> None:
    late = datetime(2026, 3, 4, 23, 30, tzinfo=UTC)
    assert parse_when("tomorrow at 9am", now=late, tz="Asia/Tokyo") == datetime(2026, 3, 6, 0, tzinfo=UTC)
    assert parse_when("tomorrow at 9am", now=late, tz="UTC") == datetime(2026, 3, 5, 9, tzinfo=UTC)


def test_the_end_of_the_calendar_is_an_error_not_a_crash() -> None:
    last = datetime(9999, 12, 31, 20, tzinfo=UTC)
    for text in ("tomorrow at 9am", "in 3 weeks", "friday at 1am", "at 9am", "midnight", "in 5 hours"):
        with pytest.raises(InvalidInput):
            parse_when(text, now=last, tz="UTC")


def test_a_long_text_is_refused_at_once() -> None:
    started = time.process_time()
    for text in ("in " + "1 hour and " * 8, "a" * 1_000_000, "march " * 16, "in " + "1" * 96):
        with pytest.raises(InvalidInput):
            parse_when(text, now=NOW, tz=TZ)
    assert time.process_time() - started < 1.0


@settings(max_examples=400)
@given(
    st.lists(
        st.sampled_from(
            [
                "in",
                "at",
                "on",
                "next",
                "this",
                "today",
                "tomorrow",
                "tonight",
                "friday",
                "mon",
                "march",
                "10",
                "9",
                "9am",
                "14:00",
                "noon",
                "midnight",
                "and",
                ",",
                "hours",
                "30",
                "minutes",
                "a",
                "an",
                "half",
                "hour",
                "day",
                "days",
                "2026-03-10",
                "2027",
                "1h30m",
                "8pm",
                "weeks",
                "the",
                "after",
            ]
        ),
        max_size=6,
    )
)
def test_any_words_are_an_instant_after_now_or_refused(words: list[str]) -> None:
    try:
        found = parse_when(" ".join(words), now=NOW, tz=TZ)
    except InvalidInput:
        return  # any other exception fails the test
    assert found > NOW

"""Times of the week: membership against a table and against minutes counted one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.documents.active_times import ActiveTimes
from timers.recurrence.active_times import TimeFilter, time_filter

WORKDAYS = {"only_in": {"workdays": {"weekdays": [0, 1, 2, 3, 4]}}}
MINUTE = timedelta(minutes=1)


def times(hours: list[str], tz: str = "UTC", days: dict[str, Any] | None = None) -> TimeFilter:
    return time_filter(ActiveTimes.model_validate({"hours": hours, "tz": tz, "days": days, "only_in": ["x"]}))


# 2026-03-02 is a Monday. The clocks of Amsterdam change on 2026-03-29, of New York on 2026-03-08.
@pytest.mark.parametrize(
    ("hours", "tz", "at", "expected"),
    [
        (["09:00-17:00"], "UTC", "2026-03-02T08:59:59.999999", "outside of 09:00-17:00 UTC"),
        (["09:00-17:00"], "UTC", "2026-03-02T09:00", None),
        (["09:00-17:00"], "UTC", "2026-03-02T16:59:59", None),
        (["09:00-17:00"], "UTC", "2026-03-02T17:00", "outside of 09:00-17:00 UTC"),
        (["09:00-17:00"], "UTC", "2026-03-01T12:00", "not in calendar workdays"),
        (["09:00-17:00"], "Europe/Amsterdam", "2026-03-27T08:00", None),
        (["09:00-17:00"], "Europe/Amsterdam", "2026-03-30T07:00", None),
        (["09:00-17:00"], "Europe/Amsterdam", "2026-03-30T15:00", "outside of 09:00-17:00 Europe/Amsterdam"),
        # Nights belong to the day on which they begin.
        (["22:00-06:00"], "UTC", "2026-03-02T05:00", "not in calendar workdays"),
        (["22:00-06:00"], "UTC", "2026-03-07T05:00", None),
        (["22:00-06:00"], "UTC", "2026-03-07T06:00", "outside of 22:00-06:00 UTC"),
        (["22:00-06:00"], "UTC", "2026-03-07T23:00", "not in calendar workdays"),
        (["00:00-24:00"], "UTC", "2026-03-06T23:59", None),
        ([], "UTC", "2026-03-06T23:59", None),
        ([], "America/New_York", "2026-03-07T04:59", None),
        ([], "America/New_York", "2026-03-07T05:00", "not in calendar workdays"),
        (["08:00-12:00", "13:00-17:00"], "UTC", "2026-03-02T12:30", "outside of 08:00-12:00, 13:00-17:00 UTC"),
        # The gap: 02:30 does not exist on 2026-03-29 in Amsterdam, which is a Sunday anyway.
        (["02:30-04:00"], "America/New_York", "2026-03-09T06:30", None),
    ],
)  # fmt: skip
def test_an_instant_is_inside_or_the_reason_is_named(
    hours: list[str], tz: str, at: str, expected: str | None
) -> None:
    assert times(hours, tz, WORKDAYS).exclusion(datetime.fromisoformat(at).replace(tzinfo=UTC)) == expected


def test_hours_of_a_day_with_a_changed_clock_are_those_of_the_wall() -> None:
    found = times(["01:00-04:00"], "Europe/Amsterdam")
    spring = datetime(2026, 3, 29, tzinfo=UTC)
    inside = [minute for minute in range(20 * 60) if found.exclusion(spring + minute * MINUTE) is None]
    assert len(inside) == 120, "01:00 to 04:00 without 02:00 to 03:00"
    autumn = datetime(2026, 10, 24, 22, tzinfo=UTC)
    inside = [minute for minute in range(20 * 60) if found.exclusion(autumn + minute * MINUTE) is None]
    assert len(inside) == 240


HOURS = st.tuples(st.integers(0, 47), st.integers(0, 48)).filter(lambda pair: pair[0] != pair[1])


@given(
    st.lists(HOURS, max_size=2),
    st.sampled_from(["UTC", "Europe/Amsterdam", "America/New_York", "Australia/Lord_Howe"]),
    st.integers(0, 365 * 24 * 4),
    st.booleans(),
)
def test_the_next_change_is_the_first_minute_that_differs(
    spans: list[tuple[int, int]], tz: str, quarter: int, has_days: bool
) -> None:
    texts = [f"{a // 2:02}:{a % 2 * 30:02}-{b // 2:02}:{b % 2 * 30:02}" for a, b in spans]
    found = times(texts, tz, WORKDAYS if has_days else None)
    at = datetime(2026, 1, 1, tzinfo=UTC) + quarter * 15 * MINUTE
    changed = found.next_change(at)
    is_inside = found.exclusion(at) is None
    counted = (
        at + minute * MINUTE
        for minute in range(15, 5 * 24 * 60, 15)
        if (found.exclusion(at + minute * MINUTE) is None) != is_inside
    )
    expected = next(counted, None)
    if expected is None:
        assert changed is None or changed > at + timedelta(days=4)
    else:
        assert changed == expected


@given(st.integers(0, 365 * 24 * 60), st.lists(HOURS, min_size=1, max_size=2))
def test_membership_is_that_of_the_wall_clock_counted_naively(
    minute: int, spans: list[tuple[int, int]]
) -> None:
    tz = "America/New_York"
    texts = [f"{a // 2:02}:{a % 2 * 30:02}-{b // 2:02}:{b % 2 * 30:02}" for a, b in spans]
    at = datetime(2026, 1, 1, tzinfo=UTC) + minute * MINUTE
    wall = at.astimezone(ZoneInfo(tz))
    clock = wall.hour * 2 + wall.minute // 30
    begins_today = any(a <= clock < (b if a < b else 48) for a, b in spans)
    began_yesterday = any(b < a and clock < b for a, b in spans)
    expected = (begins_today and wall.weekday() < 5) or (began_yesterday and (wall.weekday() - 1) % 7 < 5)
    assert (times(texts, tz, WORKDAYS).exclusion(at) is None) == expected

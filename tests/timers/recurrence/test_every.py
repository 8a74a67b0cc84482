"""Fixed intervals on elapsed time, counted by arithmetic."""

from datetime import UTC, datetime, timedelta

import pytest

from timers.recurrence import parse
from tocsin.core.errors import InvalidInput

ANCHOR = datetime(2026, 3, 8, 6, 0, 5, tzinfo=UTC)


def test_occurrences_are_multiples_of_the_interval_after_the_anchor() -> None:
    recurrence = parse(every="6h", anchor=ANCHOR, tz="America/New_York")
    assert recurrence.next_after(ANCHOR) == ANCHOR + timedelta(hours=6)
    assert recurrence.next_after(ANCHOR + timedelta(hours=6)) == ANCHOR + timedelta(hours=12)
    assert recurrence.next_after(ANCHOR + timedelta(hours=7)) == ANCHOR + timedelta(hours=12)


def test_the_anchor_is_the_first_occurrence() -> None:
    recurrence = parse(every="10s", anchor=ANCHOR)
    assert recurrence.next_after(ANCHOR - timedelta(days=1)) == ANCHOR


def test_without_an_anchor_occurrences_start_at_the_epoch() -> None:
    assert parse(every="15m").next_after(ANCHOR) == datetime(2026, 3, 8, 6, 15, tzinfo=UTC)


@pytest.mark.parametrize("text", ["@every 90s", "@every  1m30s", "@EVERY 90s"])
def test_the_cron_alias_is_stored_as_every(text: str) -> None:
    recurrence = parse(cron=text, anchor=ANCHOR)
    assert recurrence.spec["every"] == "1m30s"
    assert recurrence == parse(every="PT90S", anchor=ANCHOR)


def test_counting_is_arithmetic_over_any_outage() -> None:
    recurrence = parse(every="1s", anchor=ANCHOR)
    year = timedelta(days=365)
    assert recurrence.count_between(ANCHOR, ANCHOR + year) == (365 * 86400, False)
    assert recurrence.count_between(ANCHOR - year, ANCHOR) == (1, False)
    assert recurrence.count_between(ANCHOR - year, ANCHOR - timedelta(seconds=1)) == (0, False)
    assert recurrence.count_between(ANCHOR + year, ANCHOR) == (0, False)


def test_the_latest_is_arithmetic_over_any_outage() -> None:
    recurrence = parse(every="10s", anchor=ANCHOR)
    until = ANCHOR + timedelta(days=365, seconds=7)
    found = recurrence.latest_between(ANCHOR, until)
    assert found is not None
    assert found.at == ANCHOR + timedelta(days=365)
    assert recurrence.latest_between(ANCHOR, ANCHOR + timedelta(seconds=9)) is None
    assert recurrence.latest_between(ANCHOR - timedelta(days=9), ANCHOR - timedelta(days=1)) is None


def test_counting_respects_starts_at_and_ends_at() -> None:
    recurrence = parse(
        every="10s",
        anchor=ANCHOR,
        starts_at=ANCHOR + timedelta(seconds=20),
        ends_at=ANCHOR + timedelta(seconds=50),
    )
    far = timedelta(days=1)
    assert recurrence.count_between(ANCHOR - far, ANCHOR + far) == (4, False)
    latest = recurrence.latest_between(ANCHOR - far, ANCHOR + far)
    assert latest is not None
    assert latest.at == ANCHOR + timedelta(seconds=50)


@pytest.mark.parametrize("text", ["0s", "10ms", "10", "-5s", "4000d", "1mo", "", "9" * 100_000])
def test_invalid_intervals_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse(every=text)


def test_the_shortest_distance_is_the_interval() -> None:
    assert parse(every="90s").minimum_distance() == timedelta(seconds=90)


def test_there_are_no_fires_after_the_end_of_the_calendar() -> None:
    assert parse(every="3660d").next_after(datetime(9999, 12, 31, tzinfo=UTC)) is None
    assert parse(every="10s").next_after(datetime(9999, 12, 31, 23, 59, 55, tzinfo=UTC)) is None

"""One-shots: an instant is independent of tz data, a wall time follows the zone."""

from datetime import UTC, datetime, timedelta

import pytest

from timers.recurrence import parse
from tocsin.core.errors import InvalidInput

BEFORE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-03-10T14:00:00Z", datetime(2026, 3, 10, 14, tzinfo=UTC)),
        ("2026-03-10T14:00:00+02:00", datetime(2026, 3, 10, 12, tzinfo=UTC)),
        ("2026-03-10 14:00-0530", datetime(2026, 3, 10, 19, 30, tzinfo=UTC)),
        ("2026-03-10T14:00:00.250z", datetime(2026, 3, 10, 14, 0, 0, 250_000, tzinfo=UTC)),
        ("2026-03-10T14:00", datetime(2026, 3, 10, 18, tzinfo=UTC)),
        ("2026-01-10 14:00:30", datetime(2026, 1, 10, 19, 0, 30, tzinfo=UTC)),
    ],
)
def test_an_instant_stays_and_a_wall_time_follows_the_zone(text: str, at: datetime) -> None:
    recurrence = parse(at=text, tz="America/New_York")
    assert recurrence.next_after(BEFORE) == at
    assert recurrence.next_after(at) is None
    assert recurrence.next_after(at - timedelta(microseconds=1)) == at


def test_identity_is_the_instant_or_the_wall_time() -> None:
    instant = parse(at="2026-03-10T14:00:00+02:00", tz="America/New_York")
    wall = parse(at="2026-03-10T14:00", tz="America/New_York")
    found = instant.occurrence_after(BEFORE), wall.occurrence_after(BEFORE)
    assert found[0] is not None
    assert found[1] is not None
    assert instant.identity(found[0]) == "2026-03-10T12:00:00Z"
    assert wall.identity(found[1]) == "2026-03-10T14:00:00/0"


def test_a_wall_time_in_a_gap_moves_or_is_refused() -> None:
    moved = parse(at="2026-03-08T02:30", tz="America/New_York")
    assert moved.next_after(BEFORE) == datetime(2026, 3, 8, 7, tzinfo=UTC)
    with pytest.raises(InvalidInput, match="never fires"):
        parse(at="2026-03-08T02:30", tz="America/New_York", dst_gap="skip")


def test_a_wall_time_in_a_fold_fires_by_its_policy() -> None:
    both = parse(at="2026-11-01T01:30", tz="America/New_York", dst_fold="both")
    assert [each.at.hour for each in both.occurrences(BEFORE, BEFORE + timedelta(days=365), 9)] == [5, 6]
    second = parse(at="2026-11-01T01:30", tz="America/New_York", dst_fold="second")
    assert second.next_after(BEFORE) == datetime(2026, 11, 1, 6, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2026-03-10",
        "14:00",
        "2026-02-30T10:00",
        "2026-03-10T25:00",
        "10/03/2026 14:00",
        "20260310T1400Z",
        "٢٠٢٦-03-10T14:00",
        "2026-03-10T14:00 America/New_York",
        "2026-W10-2T14:00",
        "9" * 1000000,
        "2026-03-10T14:00Zx",
        "0001-01-01T00:00+14:00",
    ],
)
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="2026-03-10T14:00"):
        parse(at=text)

"""Wall times in gaps and folds: each fires by its policy, in the order of instants."""

from datetime import UTC, datetime, timedelta

import pytest

from timers.recurrence import Occurrence, parse
from timers.recurrence.wall_time import resolve
from timers.recurrence.zones import zone

NEW_YORK = "America/New_York"
SPRING = datetime(2026, 3, 8, tzinfo=UTC)  # 02:00 becomes 03:00 at 07:00Z
AUTUMN = datetime(2026, 11, 1, tzinfo=UTC)  # 02:00 becomes 01:00 at 06:00Z
DAY = timedelta(days=1, hours=4)


def fires(
    cron: str, day: datetime, *, gap: str = "forward", fold: str = "first", tz: str = NEW_YORK
) -> list[Occurrence]:
    recurrence = parse(cron=cron, tz=tz, dst_gap=gap, dst_fold=fold)
    start = day + timedelta(hours=4)
    return recurrence.occurrences(start, start + timedelta(hours=24), 10_000)


def clocks(found: list[Occurrence]) -> list[str]:
    return [f"{each.at:%H:%M}" for each in found]


def test_a_time_in_the_gap_fires_when_the_clocks_have_jumped() -> None:
    (only,) = fires("30 2 * * *", SPRING)
    assert only.at == SPRING + timedelta(hours=7)
    assert only.wall == datetime(2026, 3, 8, 2, 30)
    assert only.note == "02:30 does not exist on this day: moved to 03:00"


def test_a_time_in_the_gap_can_be_skipped() -> None:
    assert fires("30 2 * * *", SPRING, gap="skip") == []
    assert clocks(fires("30 1-3 * * *", SPRING, gap="skip")) == ["06:30", "07:30"]


def test_times_that_land_on_one_instant_are_one_fire_named_by_the_earliest() -> None:
    found = fires("0,30 2,3 * * *", SPRING)
    assert clocks(found) == ["07:00", "07:30"]
    assert found[0].wall == datetime(2026, 3, 8, 2, 0)


def test_an_occurrence_is_the_same_from_any_start_of_the_search() -> None:
    recurrence = parse(cron="0,30 2,3 * * *", tz=NEW_YORK)
    moved = SPRING + timedelta(hours=7)
    for before in (timedelta(microseconds=1), timedelta(minutes=1), timedelta(hours=2), timedelta(hours=4)):
        found = recurrence.occurrence_after(moved - before)
        assert found is not None
        assert (found.at, found.wall) == (moved, datetime(2026, 3, 8, 2, 0))


@pytest.mark.parametrize(
    ("fold", "expected"),
    [("first", ["05:30"]), ("second", ["06:30"]), ("both", ["05:30", "06:30"])],
)
def test_a_repeated_time_fires_by_its_policy(fold: str, expected: list[str]) -> None:
    found = fires("30 1 * * *", AUTUMN, fold=fold)
    assert clocks(found) == expected
    assert [each.fold for each in found] == [int(clock == "06:30") for clock in expected]
    assert all(each.note is not None and "01:30 comes twice" in each.note for each in found)


def test_both_passes_keep_the_order_of_instants_not_of_wall_times() -> None:
    found = fires("0,45 1 * * *", AUTUMN, fold="both")
    assert clocks(found) == ["05:00", "05:45", "06:00", "06:45"]
    assert [each.fold for each in found] == [0, 0, 1, 1]


def test_the_second_pass_is_found_from_within_the_first() -> None:
    recurrence = parse(cron="0 1 * * *", tz=NEW_YORK, dst_fold="second")
    assert recurrence.next_after(AUTUMN + timedelta(hours=5, minutes=40)) == AUTUMN + timedelta(hours=6)


def test_interval_like_runs_in_both_passes_and_not_in_the_gap() -> None:
    assert clocks(fires("*/30 1,2 * * *", AUTUMN)) == ["05:00", "05:30", "06:00", "06:30", "07:00", "07:30"]
    assert clocks(fires("*/30 1,2 * * *", SPRING)) == ["06:00", "06:30"]
    notes = [each.note for each in fires("*/30 1 * * *", AUTUMN)]
    assert notes[1] == "01:30 comes twice on this day: this is the first time"
    assert notes[3] == "01:30 comes twice on this day: this is the second time"


def test_interval_like_ignores_the_policies_of_fixed_times() -> None:
    assert clocks(fires("30 * * * *", AUTUMN, fold="second")) == clocks(
        fires("30 * * * *", AUTUMN, fold="first")
    )
    assert clocks(fires("*/20 2 * * *", SPRING, gap="forward")) == []


def test_interval_like_fires_on_the_transition_itself_when_it_matches() -> None:
    assert "07:00" in clocks(fires("0 * * * *", SPRING))
    assert clocks(fires("*/30 2 * * *", datetime(2026, 10, 3, 8, tzinfo=UTC), tz="Australia/Lord_Howe")) == [
        "15:30"
    ]


def test_a_half_hour_shift_keeps_every_hour_of_an_hourly_job() -> None:
    day = datetime(2026, 4, 4, 6, tzinfo=UTC)  # Lord Howe goes back thirty minutes at 15:00Z
    found = clocks(fires("0 * * * *", day, tz="Australia/Lord_Howe"))
    assert found[3:6] == ["14:00", "15:30", "16:30"]
    assert len(found) == 23


def test_a_day_that_does_not_exist_fires_at_the_start_of_the_next() -> None:
    recurrence = parse(cron="30 2 * * *", tz="Pacific/Apia")
    found = recurrence.occurrences(
        datetime(2011, 12, 29, 13, tzinfo=UTC), datetime(2011, 12, 31, tzinfo=UTC), 10
    )
    assert [each.wall and each.wall.day for each in found] == [30, 31]
    assert found[0].at == datetime(2011, 12, 30, 10, tzinfo=UTC)
    assert found[0].note == "02:30 does not exist on this day: moved to 2011-12-31 00:00"


def test_a_gap_at_midnight_moves_midnight_to_one() -> None:
    recurrence = parse(cron="0 0 * * *", tz="America/Sao_Paulo")
    found = recurrence.occurrence_after(datetime(2018, 11, 3, 12, tzinfo=UTC))
    assert found is not None
    assert found.note == "00:00 does not exist on this day: moved to 01:00"


def test_a_sparse_interval_like_job_crosses_many_transitions() -> None:
    recurrence = parse(cron="* 0 29 2 *", tz=NEW_YORK)
    assert recurrence.next_after(datetime(2026, 1, 1, tzinfo=UTC)) == datetime(2028, 2, 29, 5, tzinfo=UTC)


def test_resolve_distinguishes_plain_times_folds_and_gaps() -> None:
    new_york = zone(NEW_YORK)
    assert resolve(datetime(2026, 7, 1, 12), new_york).first == datetime(2026, 7, 1, 16, tzinfo=UTC)
    folded = resolve(datetime(2026, 11, 1, 1, 30), new_york)
    assert (folded.first, folded.second) == (AUTUMN + timedelta(hours=5.5), AUTUMN + timedelta(hours=6.5))
    assert resolve(datetime(2026, 3, 8, 2, 1), new_york).gap_end == datetime(2026, 3, 8, 3, 0)


@pytest.mark.parametrize(
    ("cron", "fold", "tz", "shortest"),
    [
        ("0 8 * * *", "first", "UTC", timedelta(hours=24)),
        ("0 8 * * *", "first", NEW_YORK, timedelta(hours=23)),
        ("30 2 * * *", "first", NEW_YORK, timedelta(hours=23, minutes=30)),
        ("30 1 * * *", "both", NEW_YORK, timedelta(hours=1)),
        ("0,45 1 * * *", "both", NEW_YORK, timedelta(minutes=15)),
        ("30 2,3 * * *", "first", NEW_YORK, timedelta(minutes=30)),
        ("*/5 * * * *", "first", NEW_YORK, timedelta(minutes=5)),
        ("0,50 * * * *", "first", "UTC", timedelta(minutes=10)),
        ("* * * * *", "first", NEW_YORK, timedelta(minutes=1)),
        ("0 * * * *", "first", "Australia/Lord_Howe", timedelta(minutes=60)),
        ("30 * * * *", "first", "Australia/Lord_Howe", timedelta(minutes=30)),
    ],
)
def test_the_shortest_distance_counts_changes_of_the_clocks(
    cron: str, fold: str, tz: str, shortest: timedelta
) -> None:
    assert parse(cron=cron, tz=tz, dst_fold=fold).minimum_distance() == shortest


@pytest.mark.parametrize(
    ("tz", "cron", "at", "note"),
    [
        # At 00:00 on June 1, which is May 31 in UTC.
        ("Asia/Karachi", "30 0 1 6 *", datetime(2008, 5, 31, 19, 0, tzinfo=UTC), "00:30 does not exist"),
        # At 24:00 on September 30, which is October 1 in UTC.
        ("America/Guatemala", "30 23 30 9 *", datetime(2006, 10, 1, 4, 30, tzinfo=UTC), "23:30 comes twice"),
    ],
)
def test_a_change_of_the_clocks_at_the_start_or_end_of_a_month_is_found(
    tz: str, cron: str, at: datetime, note: str
) -> None:
    found = parse(cron=cron, tz=tz).occurrence_after(at - timedelta(hours=12))
    assert found is not None
    assert found.at == at
    assert (found.note or "").startswith(note)

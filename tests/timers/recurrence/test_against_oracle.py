"""A seeded sample of what `python -m bench oracle` compares in full."""

import random
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest

from tests.timers.recurrence import oracle
from timers.recurrence import parse

SAMPLED_CHANGES_PER_ZONE = 3
APIA_LOSES_A_DAY = datetime(2011, 12, 30, 10, tzinfo=UTC)


@cache
def sampled_windows(zone: str) -> list[oracle.Window]:
    changes = list(oracle.changes(zone))
    chosen = random.Random(zone).sample(changes, SAMPLED_CHANGES_PER_ZONE)
    if zone == "Pacific/Apia" and APIA_LOSES_A_DAY not in chosen:
        chosen[0] = APIA_LOSES_A_DAY
    return [oracle.window(zone, change) for change in chosen]


@cache
def read(text: str) -> oracle.Expression:
    return oracle.Expression(text)


@pytest.mark.parametrize("zone", oracle.ZONES)
def test_every_expression_fires_as_the_oracle_counts_around_changes_of_the_clocks(zone: str) -> None:
    choose = random.Random(zone)
    compared = 0
    for text in oracle.EXPRESSIONS:
        seen = choose.choice(sampled_windows(zone))
        expression = read(text)
        walls = oracle.matching(expression, seen)
        policies = oracle.POLICIES if not expression.interval_like else choose.sample(oracle.POLICIES, 1)
        for gap, fold in policies:
            recurrence = parse(cron=text, tz=zone, dst_gap=gap, dst_fold=fold)
            found = [each.at for each in recurrence.occurrences(seen.start, seen.end, 100_000)]
            wanted = oracle.expected(expression, seen, walls, gap, fold)
            assert found == wanted, f"{text} in {zone}, gap {gap}, fold {fold}"
            compared += len(wanted)
    assert compared > 1000


@pytest.mark.parametrize(
    "zone", ["Australia/Lord_Howe", "America/New_York", "Pacific/Apia", "Antarctica/Troll"]
)
def test_the_hours_around_a_change_agree_under_all_policies(zone: str) -> None:
    for text in ("0 * * * *", "30 2 * * *", "0,30 1-3 * * *", "15,45 0-4 * * *", "10,40 23,0,1 * * *"):
        expression = read(text)
        for seen in sampled_windows(zone):
            walls = oracle.matching(expression, seen)
            for gap, fold in oracle.POLICIES:
                recurrence = parse(cron=text, tz=zone, dst_gap=gap, dst_fold=fold)
                found = [each.at for each in recurrence.occurrences(seen.start, seen.end, 100_000)]
                assert found == oracle.expected(expression, seen, walls, gap, fold), (
                    f"{text} {zone} {gap} {fold}"
                )


@pytest.mark.parametrize("text", oracle.EXPRESSIONS)
def test_days_agree_with_the_oracle_over_leap_and_ordinary_years(text: str) -> None:
    expression = read(text)
    first_minute = timedelta(hours=min(expression.hours), minutes=min(expression.minutes))
    recurrence = parse(cron=text)
    day = datetime(2027, 1, 1, tzinfo=UTC)
    while day.year < 2029:
        found = recurrence.next_after(day - timedelta(microseconds=1))
        assert found is not None
        if expression.matches_day(day.date()):
            assert found == day + first_minute
        else:
            assert found >= day + timedelta(days=1)
        day += timedelta(days=1)


@pytest.mark.parametrize("zone", oracle.ZONES)
@pytest.mark.parametrize("dst_fold", ["first", "second"])
def test_a_daily_job_runs_exactly_once_a_day_across_thirty_years(zone: str, dst_fold: str) -> None:
    recurrence = parse(cron="30 2 * * *", tz=zone, dst_fold=dst_fold)
    at = datetime(2007, 1, 1, 12, tzinfo=UTC)
    day = None
    for _ in range(30 * 365):
        found = recurrence.occurrence_after(at)
        assert found is not None
        assert found.wall is not None
        assert found.at > at
        if day is not None:
            assert found.wall.date() == day + timedelta(days=1)
        day, at = found.wall.date(), found.at


@pytest.mark.parametrize("zone", oracle.ZONES)
def test_an_interval_like_fire_shows_a_matching_wall_clock(zone: str) -> None:
    recurrence = parse(cron="*/10 * * * *", tz=zone)
    for seen in sampled_windows(zone):
        shown = dict(seen.minutes)
        found = [each.at for each in recurrence.occurrences(seen.start, seen.end, 10_000)]
        assert found
        assert all(shown[instant].minute % 10 == 0 for instant in found)

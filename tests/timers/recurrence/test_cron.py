"""Cron patterns return the wall times that croniter returns on naive time."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from croniter import croniter

from tests.timers.recurrence.oracle import EXPRESSIONS
from timers.recurrence import parse
from timers.recurrence.cron import cron_pattern
from timers.recurrence.cron_text import plain_cron
from tocsin.core.errors import InvalidInput

EXPRESSIONS_PER_SEED = 40


def random_field(choose: random.Random, low: int, high: int) -> str:
    kind = choose.randrange(6)
    first, last = sorted(choose.sample(range(low, high + 1), 2))
    step = choose.randint(1, max(1, (high - low) // 2))
    return (
        "*",
        f"*/{step}",
        str(first),
        f"{first}-{last}",
        ",".join(map(str, sorted(choose.sample(range(low, high + 1), 3)))),
        f"{first}-{last}/{step}",
    )[kind]


def random_expression(choose: random.Random) -> str:
    day = choose.choice(["*", "*", random_field(choose, 1, 31), "l", "l,3", "7w", "1w"])
    weekday = choose.choice(["*", random_field(choose, 0, 6), "mon-fri", "fri-mon", "mon#1", "2#3,4#1", "l5"])
    if day != "*" and weekday != "*":
        weekday = "*"
    month = choose.choice(["*", "*", random_field(choose, 1, 12), "jan,jul", "nov-feb"])
    return f"{random_field(choose, 0, 59)} {random_field(choose, 0, 23)} {day} {month} {weekday}"


@pytest.mark.parametrize("seed", range(8))
def test_wall_times_equal_those_of_croniter_on_naive_time(seed: int) -> None:
    choose = random.Random(seed)
    compared = 0
    for _ in range(EXPRESSIONS_PER_SEED):
        text = random_expression(choose)
        try:
            pattern = cron_pattern(plain_cron(text, ""))
        except InvalidInput:
            continue
        wall = datetime(choose.randint(2000, 2090), choose.randint(1, 12), choose.randint(1, 28), 13, 37, 11)
        reference = croniter(text, wall, max_years_between_matches=100)
        for _ in range(25):
            wanted = reference.get_next(datetime)
            found = pattern.next_wall(wall)
            assert found == wanted, text
            wall = wanted
            compared += 1
    assert compared > 500


def test_wall_times_equal_those_of_croniter_for_the_oracle_expressions() -> None:
    for text in EXPRESSIONS:
        wall = datetime(2026, 1, 1)
        reference = croniter(text, wall)
        pattern = cron_pattern(text)
        for _ in range(40):
            wanted = reference.get_next(datetime)
            found = pattern.next_wall(wall)
            assert found == wanted, text
            wall = wanted


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("0 0 L * *", ["2028-01-31", "2028-02-29", "2028-03-31"]),
        ("0 0 L,15 2 *", ["2028-02-15", "2028-02-29", "2029-02-15"]),
        ("0 0 * * mon#5", ["2028-01-31", "2028-05-29", "2028-07-31"]),
        ("0 0 * * L5", ["2028-01-28", "2028-02-25", "2028-03-31"]),
        ("0 0 1W * *", ["2028-01-03", "2028-02-01", "2028-03-01"]),
        ("0 0 15W * *", ["2028-01-14", "2028-02-15", "2028-03-15"]),
        ("0 0 13 * fri", ["2028-01-07", "2028-01-13", "2028-01-14"]),
        ("0 0 29 2 *", ["2028-02-29", "2032-02-29", "2036-02-29"]),
        ("0 0 31 2 mon", ["2028-02-07", "2028-02-14", "2028-02-21"]),
        ("0 0 * * 7", ["2028-01-02", "2028-01-09", "2028-01-16"]),
        ("0 0 * 2 mon#5", ["2044-02-29", "2072-02-29", "2112-02-29"]),
    ],
)
def test_special_days(text: str, dates: list[str]) -> None:
    pattern = cron_pattern(plain_cron(text, ""))
    wall: datetime | None = datetime(2027, 12, 31, 23, 59)
    found = []
    for _ in dates:
        assert wall is not None
        wall = pattern.next_wall(wall)
        assert wall is not None
        found.append(wall.date().isoformat())
    assert found == dates


def test_the_nearest_weekday_never_leaves_the_month() -> None:
    sunday_at_the_end = cron_pattern("0 0 28w 2 *").next_wall(datetime(2027, 1, 1))
    assert sunday_at_the_end == datetime(2027, 2, 26)
    saturday_at_the_start = cron_pattern("0 0 1w * *").next_wall(datetime(2028, 6, 30))
    assert saturday_at_the_start == datetime(2028, 7, 3)


def test_seconds_and_microseconds_do_not_hide_the_next_minute() -> None:
    pattern = cron_pattern("30 8 * * *")
    assert pattern.next_wall(datetime(2026, 1, 1, 8, 29, 59, 999_999)) == datetime(2026, 1, 1, 8, 30)
    assert pattern.next_wall(datetime(2026, 1, 1, 8, 30)) == datetime(2026, 1, 2, 8, 30)
    assert pattern.next_wall(datetime(2026, 1, 1, 8, 30, 0, 1)) == datetime(2026, 1, 2, 8, 30)


def test_there_are_no_fires_after_the_end_of_the_calendar() -> None:
    assert cron_pattern("0 0 29 2 *").next_wall(datetime(9996, 3, 1)) is None
    last = datetime(9999, 12, 31, 23, 59, 30, tzinfo=UTC)
    for tz in ("UTC", "America/New_York", "Asia/Tokyo"):
        for text in ("0 0 * * *", "* * * * *", "*/5 3 * * *", "0 0 1 1 *"):
            for fold in ("first", "second", "both"):
                recurrence = parse(cron=text, tz=tz, dst_fold=fold)
                assert recurrence.next_after(last) is None
                instant: datetime | None = last - timedelta(days=2)
                while instant is not None:
                    following = recurrence.next_after(instant)
                    assert following is None or following > instant
                    instant = following


def test_the_table_of_months_stays_bounded() -> None:
    pattern = cron_pattern("17 4 * * *")
    wall: datetime | None = datetime(1900, 1, 31, 12)
    for _ in range(1500):
        assert wall is not None
        wall = pattern.next_wall(wall.replace(day=28) + timedelta(days=4))
    assert len(pattern._days_by_month) <= 600

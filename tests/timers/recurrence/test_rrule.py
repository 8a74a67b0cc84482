"""RRULE recurrences return the dates of dateutil, from any start and in bounded work."""

import random
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from dateutil.rrule import rrulestr

from timers.recurrence import parse, parse_spec
from timers.recurrence.rrule_days import walls
from timers.recurrence.rrule_periods import BudgetSpent
from timers.recurrence.rrule_text import parse_rule
from tocsin.core.errors import InvalidInput

RULES_PER_SEED = 45
COMPARED_PER_RULE = 12
NEW_YORK = "America/New_York"


def numbers(choose: random.Random, low: int, high: int, count: int = 2) -> str:
    return ",".join(str(choose.randint(low, high)) for _ in range(choose.randint(1, count)))


def random_rule(choose: random.Random) -> str:
    freq = choose.choice(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY"])
    parts = [f"FREQ={freq}", f"INTERVAL={choose.choice([1, 1, 2, 3, 5, 7])}"]
    days = numbers_of_days(choose, freq)
    optional = [
        (0.3, f"BYMONTH={numbers(choose, 1, 12, 4)}"),
        (0.3 if freq != "WEEKLY" else 0, f"BYMONTHDAY={numbers(choose, 1, 28, 3)}"),
        (0.15 if freq != "WEEKLY" else 0, "BYMONTHDAY=-1"),
        (0.4, f"BYDAY={days}"),
        (0.15 if freq == "YEARLY" else 0, "BYYEARDAY=1,100,-1"),
        (0.4, f"BYHOUR={numbers(choose, 0, 23, 3)}"),
        (0.3, f"BYMINUTE={numbers(choose, 0, 59, 2)}"),
        (0.3, f"WKST={choose.choice(['MO', 'SU', 'WE'])}"),
    ]
    for chance, part in optional:
        if choose.random() < chance and not any(part.split("=")[0] == other.split("=")[0] for other in parts):
            parts.append(part)
    if freq == "YEARLY" and any(part.startswith("BYMONTHDAY") for part in parts):
        parts = [part for part in parts if not part.startswith("BYMONTH=")] + ["BYMONTH=2,7"]
    has_by = any(part.startswith("BY") for part in parts)
    # dateutil cuts the first week at DTSTART before BYSETPOS; the RFC, and we, do not.
    if freq in ("YEARLY", "MONTHLY", "DAILY") and has_by and choose.random() < 0.3:
        parts.append(f"BYSETPOS={choose.choice(['1', '-1', '2', '1,-1'])}")
    return ";".join(parts)


def numbers_of_days(choose: random.Random, freq: str) -> str:
    names = choose.sample(["MO", "TU", "WE", "TH", "FR", "SA", "SU"], choose.randint(1, 3))
    if freq in ("YEARLY", "MONTHLY") and choose.random() < 0.4:
        return ",".join(choose.choice(["1", "2", "-1", "5"]) + name for name in names)
    return ",".join(names)


@pytest.mark.parametrize("seed", range(8))
def test_wall_times_equal_those_of_dateutil_from_any_start(seed: int) -> None:
    choose = random.Random(seed)
    compared = skipped = 0
    for _ in range(RULES_PER_SEED):
        text = random_rule(choose)
        dtstart = datetime(choose.randint(2018, 2024), choose.randint(1, 12), choose.randint(1, 28), 9, 15)
        rule = parse_rule(text)
        try:
            ours = list(islice(walls(rule, dtstart, dtstart - timedelta(seconds=1)), COMPARED_PER_RULE))
        except BudgetSpent:
            ours = []
        # dateutil takes seconds for a rule that fires once in decades
        ours = [wall for wall in ours if wall.year < dtstart.year + 20]
        if not ours:
            skipped += 1  # dateutil would search to the year 9999
            continue
        assert list(islice(rrulestr(text, dtstart=dtstart), len(ours))) == ours, text
        position = choose.randrange(len(ours))
        asked = max(ours[position] - timedelta(days=choose.randint(0, 400), seconds=1), dtstart)
        later = [wall for wall in ours if wall > asked]
        assert next(walls(rule, dtstart, asked)) == later[0], text
        if position + 1 < len(ours):
            assert next(walls(rule, dtstart, ours[position])) == ours[position + 1], text
        compared += len(ours)
    assert compared > 200
    assert skipped < RULES_PER_SEED // 2


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=DAILY;INTERVAL=3",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH;WKST=SU",
        "FREQ=MONTHLY;INTERVAL=5;BYMONTHDAY=31",
        "FREQ=YEARLY;INTERVAL=2;BYDAY=20MO",
        "FREQ=YEARLY;BYWEEKNO=20;BYDAY=TU,FR",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE;BYSETPOS=-1",
        "FREQ=HOURLY;INTERVAL=7;BYDAY=MO",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
        "FREQ=YEARLY",
        "FREQ=MONTHLY",
    ],
)
def test_an_old_dtstart_gives_the_same_dates_as_counting_from_it(text: str) -> None:
    dtstart = datetime(2012, 1, 31, 8, 30)
    after = datetime(2026, 6, 17)
    wanted = list(islice((wall for wall in rrulestr(text, dtstart=dtstart) if wall > after), 10))
    recurrence = parse(rrule=text, dtstart=dtstart.isoformat())
    found = recurrence.occurrences(after.replace(tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC), 10)
    assert [each.wall for each in found] == wanted


def test_setpos_counts_the_whole_first_week_as_the_rfc_requires() -> None:
    recurrence = parse(
        rrule="FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=1", dtstart="2026-03-04T09:00"
    )  # a Wednesday
    assert recurrence.next_after(datetime(2026, 3, 1, tzinfo=UTC)) == datetime(2026, 3, 9, 9, tzinfo=UTC)


def test_daily_rules_keep_the_wall_clock_across_dst() -> None:
    recurrence = parse(rrule="FREQ=DAILY", dtstart="2026-03-07T02:30", tz=NEW_YORK)
    found = recurrence.occurrences(datetime(2026, 3, 7, tzinfo=UTC), datetime(2026, 3, 10, tzinfo=UTC), 9)
    assert [f"{each.at:%d %H:%M}" for each in found] == ["07 07:30", "08 07:00", "09 06:30"]


def test_sub_daily_rules_without_by_parts_run_on_elapsed_time() -> None:
    recurrence = parse(rrule="FREQ=HOURLY", dtstart="2026-11-01T00:30", tz=NEW_YORK)
    start = datetime(2026, 11, 1, 4, tzinfo=UTC)
    found = recurrence.occurrences(start, start + timedelta(hours=4), 9)
    assert [f"{each.at:%H:%M}" for each in found] == ["04:30", "05:30", "06:30", "07:30"]
    assert all(each.wall is None for each in found)
    assert recurrence.minimum_distance() == timedelta(hours=1)


def test_sub_daily_rules_with_by_parts_run_on_wall_time() -> None:
    recurrence = parse(rrule="FREQ=HOURLY;BYHOUR=0,1,2,3", dtstart="2026-11-01T00:30", tz=NEW_YORK)
    start = datetime(2026, 11, 1, 4, tzinfo=UTC)
    found = recurrence.occurrences(start, start + timedelta(hours=6), 9)
    assert [f"{each.at:%H:%M}" for each in found] == ["04:30", "05:30", "07:30", "08:30"]


def test_count_becomes_until_once_and_counts_excluded_dates() -> None:
    recurrence = parse(rrule="FREQ=DAILY;COUNT=4", dtstart="2026-03-07T09:00", exdates=["2026-03-08T09:00"])
    assert recurrence.spec["rrule"] == "FREQ=DAILY;UNTIL=20260310T090000"
    found = recurrence.occurrences(datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC), 99)
    assert [each.at.day for each in found] == [7, 9, 10]
    assert parse_spec(recurrence.spec) is recurrence


def test_count_of_elapsed_time_becomes_an_instant() -> None:
    recurrence = parse(rrule="FREQ=HOURLY;INTERVAL=5;COUNT=3", dtstart="2026-03-07T20:00", tz=NEW_YORK)
    assert recurrence.spec["rrule"] == "FREQ=HOURLY;INTERVAL=5;UNTIL=20260308T110000Z"
    found = recurrence.occurrences(datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC), 99)
    assert [each.at for each in found] == [datetime(2026, 3, 8, hour, tzinfo=UTC) for hour in (1, 6, 11)]


def test_count_of_elapsed_time_starts_where_the_rule_starts_in_a_fold() -> None:
    recurrence = parse(
        rrule="FREQ=HOURLY;COUNT=3", dtstart="2026-11-01T01:30", tz=NEW_YORK, dst_fold="second"
    )
    found = recurrence.occurrences(datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC), 99)
    assert [f"{each.at:%H:%M}" for each in found] == ["06:30", "07:30", "08:30"]


def test_a_count_beyond_the_calendar_is_no_limit() -> None:
    hourly = parse(rrule="FREQ=HOURLY;INTERVAL=1000000;COUNT=10000", dtstart="2026-01-01T00:00")
    assert hourly.spec["rrule"] == "FREQ=HOURLY;INTERVAL=1000000"
    daily = parse(rrule="FREQ=DAILY;COUNT=100", dtstart="9999-12-01T00:00")
    assert daily.spec["rrule"] == "FREQ=DAILY"


def test_a_count_that_reaches_more_than_a_century_ahead_is_refused() -> None:
    assert parse(rrule="FREQ=YEARLY;COUNT=100", dtstart="2026-01-01T00:00").spec["rrule"] == (
        "FREQ=YEARLY;UNTIL=21250101T000000"
    )
    with pytest.raises(InvalidInput, match="century"):
        parse(rrule="FREQ=YEARLY;INTERVAL=500;COUNT=3", dtstart="2026-01-01T00:00")


@pytest.mark.parametrize(
    ("until", "last_day"),
    [
        ("20260310T085959", 9),
        ("20260310T090000", 10),
        ("20260310", 10),
        ("20260310T130000Z", 10),
        ("20260310T125959Z", 9),
    ],
)
def test_until_is_inclusive_in_every_spelling(until: str, last_day: int) -> None:
    recurrence = parse(rrule=f"FREQ=DAILY;UNTIL={until}", dtstart="2026-03-07T09:00", tz=NEW_YORK)
    found = recurrence.occurrences(datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC), 99)
    assert found[-1].at.day == last_day
    assert recurrence.next_after(found[-1].at) is None
    assert "Z" not in str(recurrence.spec["rrule"])


def test_exdates_remove_and_rdates_add_dates() -> None:
    recurrence = parse(
        rrule="FREQ=WEEKLY;BYDAY=MO",
        dtstart="2026-03-02T09:00",
        exdates=["2026-03-09T09:00", "2026-03-18T12:00"],
        rdates=["2026-03-10T10:00", "2026-03-18T12:00", "2026-02-27T09:00", "2026-03-16T09:00"],
    )
    found = recurrence.occurrences(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 3, 20, tzinfo=UTC), 99)
    assert [f"{each.at:%m-%d %H:%M}" for each in found] == [
        "02-27 09:00",
        "03-02 09:00",
        "03-10 10:00",
        "03-16 09:00",
    ]


def test_exdates_and_rdates_apply_to_elapsed_time_as_well() -> None:
    recurrence = parse(
        rrule="FREQ=HOURLY;UNTIL=20260310T130000",
        dtstart="2026-03-10T09:00",
        tz="Europe/London",
        exdates=["2026-03-10T10:00", "2026-03-10T11:00"],
        rdates=["2026-03-10T11:20", "2026-03-11T09:00"],
    )
    found = recurrence.occurrences(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC), 99)
    assert [f"{each.at:%d %H:%M}" for each in found] == [
        "10 09:00",
        "10 11:20",
        "10 12:00",
        "10 13:00",
        "11 09:00",
    ]
    assert recurrence.minimum_distance() == timedelta(minutes=20)


@pytest.mark.parametrize("value", ["2026-03-10", "2026-03-10T09:00Z", "noon", "2026-03-10T09:00:00.5", ""])
def test_dates_must_be_wall_times(value: str) -> None:
    for arguments in ({"dtstart": value}, {"exdates": [value]}, {"rdates": [value]}):
        with pytest.raises(InvalidInput, match=r"wall time|whole seconds"):
            parse(rrule="FREQ=DAILY", **arguments)


def test_too_many_dates_are_refused() -> None:
    with pytest.raises(InvalidInput, match="too many"):
        parse(rrule="FREQ=DAILY", exdates=[f"2026-03-10T{hour % 24:02}:00" for hour in range(1001)])


def test_the_anchor_replaces_a_missing_dtstart_and_is_stored() -> None:
    anchor = datetime(2026, 3, 7, 14, 0, 0, 123_456, tzinfo=UTC)
    recurrence = parse(rrule="FREQ=DAILY", anchor=anchor, tz=NEW_YORK)
    assert recurrence.spec["dtstart"] == "2026-03-07T00:00:00"
    assert parse_spec(recurrence.spec) is recurrence
    assert recurrence.next_after(anchor) == datetime(2026, 3, 8, 5, tzinfo=UTC)


def test_searches_out_of_order_return_the_same_dates() -> None:
    recurrence = parse(rrule="FREQ=WEEKLY;BYDAY=MO,WE,FR", dtstart="2020-01-01T09:00")
    instants = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=7 * number) for number in range(300)]
    in_order = [recurrence.next_after(instant) for instant in instants]
    shuffled = instants[:]
    random.Random(5).shuffle(shuffled)
    fresh = parse(rrule="FREQ=WEEKLY;BYDAY=FR,WE,MO;UNTIL=22000101", dtstart="2020-01-01T09:00")
    assert {instant: fresh.next_after(instant) for instant in shuffled} == dict(
        zip(instants, in_order, strict=True)
    )


def test_a_search_at_the_end_of_a_rule_does_not_change_its_beginning() -> None:
    recurrence = parse(rrule="FREQ=YEARLY", dtstart="9990-01-01T00:00")
    assert recurrence.next_after(datetime(9999, 6, 1, tzinfo=UTC)) is None
    assert recurrence.next_after(datetime(9991, 6, 1, tzinfo=UTC)) == datetime(9992, 1, 1, tzinfo=UTC)


def test_a_rule_before_its_dtstart_begins_with_it() -> None:
    recurrence = parse(rrule="FREQ=MONTHLY;BYMONTHDAY=1,15", dtstart="2026-03-10T09:00")
    assert recurrence.next_after(datetime(1990, 1, 1, tzinfo=UTC)) == datetime(2026, 3, 15, 9, tzinfo=UTC)


def test_a_rule_at_the_end_of_the_calendar_is_finished() -> None:
    for text in (
        "FREQ=DAILY",
        "FREQ=YEARLY",
        "FREQ=WEEKLY",
        "FREQ=MONTHLY",
        "FREQ=HOURLY",
        "FREQ=HOURLY;BYHOUR=3",
    ):
        for tz in ("UTC", NEW_YORK, "Asia/Tokyo"):
            recurrence = parse(rrule=text, dtstart="2026-03-10T09:00", tz=tz)
            assert recurrence.next_after(datetime(9999, 12, 31, 23, 59, tzinfo=UTC)) is None


def test_the_shortest_distance_of_a_rule() -> None:
    assert parse(rrule="FREQ=WEEKLY", dtstart="2026-03-10T09:00").minimum_distance() == timedelta(days=1)
    quarter = parse(rrule="FREQ=MINUTELY;INTERVAL=45;BYDAY=MO", dtstart="2026-03-10T09:00")
    assert quarter.minimum_distance() == timedelta(minutes=45)
    wandering = parse(rrule="FREQ=MINUTELY;INTERVAL=7;BYHOUR=9,10", dtstart="2026-03-10T09:00")
    assert wandering.minimum_distance() == timedelta(minutes=1)
    two = parse(
        rrule="FREQ=DAILY;BYHOUR=9,12;BYMINUTE=0,20", dtstart="2026-03-10T09:00", rdates=["2026-03-11T12:05"]
    )
    assert two.minimum_distance() == timedelta(minutes=5)


@pytest.mark.parametrize(
    ("rule", "first"),
    [
        ("FREQ=WEEKLY;BYDAY=MO;BYHOUR=8", "2026-11-23T08:00:00+00:00"),
        ("FREQ=DAILY;BYHOUR=8;BYMINUTE=30", "2026-11-19T08:30:00+00:00"),
        ("FREQ=DAILY", "2026-11-19T00:00:00+00:00"),
        ("FREQ=HOURLY;BYDAY=WE", "2026-11-18T10:00:00+00:00"),
        ("FREQ=MINUTELY;BYHOUR=9", "2026-11-18T09:02:00+00:00"),
    ],
)
def test_times_that_a_rule_without_dtstart_leaves_out_are_zero(rule: str, first: str) -> None:
    """They do not depend on the minute and second at which the schedule was created."""
    for second in (3, 34):
        created = datetime(2026, 11, 18, 9, 1, second, tzinfo=UTC)
        following = parse(rrule=rule, anchor=created).next_after(created)
        assert following is not None
        assert following.isoformat() == first

"""BYWEEKNO counts whole weeks, also at the turn of the year, and BYDAY mixtures are unions."""

import random
from calendar import monthrange
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import islice

import pytest

from timers.recurrence import parse
from timers.recurrence.rrule_days import walls
from timers.recurrence.rrule_periods import BudgetSpent
from timers.recurrence.rrule_text import WEEKDAYS, parse_rule
from tocsin.core.errors import InvalidInput

FIRST_YEAR, LAST_YEAR = 1970, 2100
START = datetime(FIRST_YEAR, 1, 1, 9)
END = datetime(LAST_YEAR, 12, 31, 23)


def dates(text: str, dtstart: datetime = START, until: datetime = END) -> list[date]:
    found: list[date] = []
    with suppress(BudgetSpent):
        for wall in walls(parse_rule(text), dtstart, dtstart - timedelta(seconds=1)):
            if wall > until:
                break
            found.append(wall.date())
    return found


def weeks_in(year: int) -> int:
    return date(year, 12, 28).isocalendar().week


@pytest.mark.parametrize("week", [*range(1, 54), *range(-53, 0)])
def test_each_week_of_the_year_is_that_of_isocalendar(week: int) -> None:
    chosen: dict[str, list[date]] = {name: [] for name in WEEKDAYS}
    for year in range(FIRST_YEAR, LAST_YEAR + 2):
        number = week if week > 0 else weeks_in(year) + 1 + week
        if not 1 <= number <= weeks_in(year):
            continue
        for weekday, name in enumerate(WEEKDAYS, 1):
            day = date.fromisocalendar(year, number, weekday)
            if START.date() <= day <= END.date():
                chosen[name].append(day)
    for name in WEEKDAYS:
        assert dates(f"FREQ=YEARLY;BYWEEKNO={week};BYDAY={name}") == chosen[name], name


def test_a_week_without_a_day_means_the_weekday_of_dtstart() -> None:
    found = parse(rrule="FREQ=YEARLY;BYWEEKNO=20", dtstart="2026-01-05T09:00").occurrences(
        datetime(2026, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC), 3
    )
    assert [f"{each.at:%F}" for each in found] == ["2026-05-11", "2027-05-17", "2028-05-15"]


def test_positions_count_within_the_whole_week() -> None:
    text = "FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1"
    found = dates(text, datetime(2026, 1, 1, 9), datetime(2031, 1, 1))
    assert [f"{day:%F}" for day in found] == [
        "2026-01-02",
        "2027-01-08",
        "2028-01-07",
        "2029-01-05",
        "2030-01-04",
    ]


def test_an_interval_counts_years_of_weeks() -> None:
    found = dates("FREQ=YEARLY;INTERVAL=3;BYWEEKNO=1;BYDAY=TU", datetime(2022, 1, 1, 9), datetime(2032, 1, 1))
    assert [f"{day:%F}" for day in found] == ["2022-01-04", "2024-12-31", "2028-01-04", "2030-12-31"]


def test_the_first_day_of_the_week_changes_its_number() -> None:
    found = dates("FREQ=YEARLY;BYWEEKNO=1;BYDAY=SU;WKST=SU", datetime(2026, 1, 1, 9), datetime(2029, 1, 1))
    assert [f"{day:%F}" for day in found] == ["2026-01-04", "2027-01-03", "2028-01-02", "2028-12-31"]


def test_a_week_that_does_not_meet_its_month_never_fires() -> None:
    with pytest.raises(InvalidInput, match="never fires"):
        parse(rrule="FREQ=YEARLY;BYWEEKNO=20;BYMONTH=1", dtstart="2026-01-05T09:00")


def test_plain_and_numbered_days_are_a_union() -> None:
    found = parse(rrule="FREQ=MONTHLY;BYDAY=MO,1MO,1TU", dtstart="2026-01-01T09:00").occurrences(
        datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 4, tzinfo=UTC), 9
    )
    assert [f"{each.at:%m-%d}" for each in found] == [
        "01-05",
        "01-06",
        "01-12",
        "01-19",
        "01-26",
        "02-02",
        "02-03",
    ]


def matches(day: date, days: list[tuple[int, int]], *, in_year: bool) -> bool:
    position = day.timetuple().tm_yday if in_year else day.day
    length = date(day.year, 12, 31).timetuple().tm_yday if in_year else monthrange(day.year, day.month)[1]
    from_start, from_end = (position + 6) // 7, -((length - position) // 7 + 1)
    return any(day.weekday() == weekday and turn in (0, from_start, from_end) for turn, weekday in days)


def brute_force(
    freq: str, interval: int, days: list[tuple[int, int]], months: list[int], position: int
) -> list[date]:
    """Every day from 2020 to 2026 that matches, by looking at each of them."""
    periods: dict[tuple[int, int], list[date]] = {}
    day = date(2020, 1, 1)
    while day.year < 2027:
        period = (day.year, 0 if freq == "YEARLY" else day.month)
        turn = day.year - 2020 if freq == "YEARLY" else (day.year - 2020) * 12 + day.month - 1
        in_year = freq == "YEARLY" and not months
        if (
            turn % interval == 0
            and (not months or day.month in months)
            and matches(day, days, in_year=in_year)
        ):
            periods.setdefault(period, []).append(day)
        day += timedelta(days=1)
    if not position:
        return [day for found in periods.values() for day in found]
    index = position - 1 if position > 0 else position
    return [found[index] for found in periods.values() if -len(found) <= index < len(found)]


@pytest.mark.parametrize("seed", range(6))
def test_mixtures_equal_a_search_through_all_days(seed: int) -> None:
    choose = random.Random(seed)
    compared = 0
    for _ in range(40):
        freq = choose.choice(["MONTHLY", "MONTHLY", "YEARLY"])
        months = sorted(choose.sample(range(1, 13), 2)) if choose.random() < 0.4 else []
        turns = [1, 2, 4, 5, -1, -2] if freq == "MONTHLY" or months else [1, 2, 20, 52, -1, -30]
        days = [(0, choose.randrange(7)) for _ in range(choose.randint(1, 2))]
        days += [(choose.choice(turns), choose.randrange(7)) for _ in range(choose.randint(1, 3))]
        position = choose.choice([0, 0, 0, 1, 3, -1, -2])
        interval = choose.choice([1, 1, 2, 3])
        text = f"FREQ={freq};INTERVAL={interval};BYDAY=" + ",".join(
            f"{turn or ''}{WEEKDAYS[weekday]}" for turn, weekday in days
        )
        text += f";BYMONTH={','.join(map(str, months))}" if months else ""
        text += f";BYSETPOS={position}" if position else ""
        wanted = brute_force(freq, interval, days, months, position)
        start = datetime(2020, 1, 1, 9)
        assert dates(text, start, datetime(2026, 12, 31, 23)) == wanted, text
        later = datetime(2023, 5, 17, 10)
        following = [day for day in wanted if day > later.date()]
        if following:
            found = next(walls(parse_rule(text), start, later))
            assert found.date() == following[0], text
        compared += len(wanted)
    assert compared > 1000


def test_a_mixture_has_the_times_of_day_of_the_rule() -> None:
    rule = parse_rule("FREQ=MONTHLY;BYDAY=SA,1MO;BYHOUR=8,20;BYMINUTE=30")
    found = list(islice(walls(rule, datetime(2026, 1, 1), datetime(2026, 1, 3, 9)), 3))
    assert [f"{wall:%m-%d %H:%M}" for wall in found] == ["01-03 20:30", "01-05 08:30", "01-05 20:30"]


def test_an_impossible_mixture_is_rejected_in_bounded_work() -> None:
    with pytest.raises(InvalidInput, match="never fires"):
        parse(rrule="FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30;BYDAY=MO,1TU", dtstart="2026-01-01T09:00")


def test_a_yearly_day_of_the_month_without_a_month_is_rejected_with_the_choices() -> None:
    with pytest.raises(InvalidInput, match=r"FREQ=MONTHLY;BYMONTHDAY=31.*BYMONTH"):
        parse_rule("FREQ=YEARLY;BYMONTHDAY=31")

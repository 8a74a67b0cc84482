"""Calendars leave occurrences out or move them, on the days of the wall clock."""

import random
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from timers.recurrence import Recurrence, parse, parse_spec
from timers.recurrence.day_set import day_set, definition_text
from timers.recurrence.skipped import moved_away, skipped
from tocsin.core.errors import InvalidInput

HOLIDAYS = {"dates": ["2026-12-24/2026-12-26"], "yearly": ["01-01"]}
BUSINESS = {"weekdays": [0, 1, 2, 3, 4], "none_of": {"holidays": HOLIDAYS}}
NEW_YORK = "America/New_York"
DAY = timedelta(days=1)
YEARS = (date(2024, 1, 1), date(2027, 12, 31))


def all_days() -> list[date]:
    first, last = YEARS
    return [first + number * DAY for number in range((last - first).days + 1)]


def is_business_day(day: date) -> bool:
    holiday = date(2026, 12, 24) <= day <= date(2026, 12, 26) or (day.month, day.day) == (1, 1)
    return day.weekday() < 5 and not holiday


def walls(recurrence: Recurrence) -> list[datetime]:
    """Its wall times in the years that are compared, found in order."""
    first, last = (datetime.combine(day, time(), ZoneInfo(recurrence.tz)) for day in YEARS)
    found = recurrence.occurrences(first.astimezone(UTC) - DAY, last.astimezone(UTC) + 2 * DAY, 10_000)
    return [each.wall for each in found if each.wall is not None and YEARS[0] <= each.wall.date() <= YEARS[1]]


def inner(found: list[datetime]) -> list[datetime]:
    """Without the first and last month, into which times of other years are moved."""
    return [wall for wall in found if YEARS[0] + 31 * DAY < wall.date() < YEARS[1] - 31 * DAY]


def nearest(day: date, step: int) -> date:
    while not is_business_day(day):
        day += step * DAY
    return day


def test_the_days_of_a_set_are_those_that_its_parts_name() -> None:
    days = day_set(definition_text(BUSINESS))
    assert [day for day in all_days() if day in days] == [day for day in all_days() if is_business_day(day)]


def test_sets_of_days_are_combined_as_sets() -> None:
    parts: dict[str, tuple[dict[str, object], Callable[[date], bool]]] = {
        "mondays": ({"weekdays": [0]}, lambda day: day.weekday() == 0),
        "firsts": ({"rrules": ["FREQ=MONTHLY;BYMONTHDAY=1"]}, lambda day: day.day == 1),
        "march": ({"rrules": ["FREQ=DAILY;BYMONTH=3"]}, lambda day: day.month == 3),
    }
    choose = random.Random(7)
    for _ in range(40):
        chosen = {
            key: choose.sample(sorted(parts), choose.randint(0, 2)) for key in ("any_of", "all_of", "none_of")
        }
        definition = {key: {name: parts[name][0] for name in names} for key, names in chosen.items()}
        days = day_set(definition_text(definition))
        for day in all_days()[:800]:
            expected = (
                (not chosen["any_of"] or any(parts[name][1](day) for name in chosen["any_of"]))
                and all(parts[name][1](day) for name in chosen["all_of"])
                and not any(parts[name][1](day) for name in chosen["none_of"])
            )
            assert (day in days) == expected, (chosen, day)


@pytest.mark.parametrize("shift", [None, "next", "previous"])
@pytest.mark.parametrize(
    "text", ["0 9 * * *", "30 2,14 * * *", "0 17 L * *", "0 8 * * fri-mon", "0 8 25,26 12 *"]
)
def test_occurrences_are_those_of_a_brute_force_search(text: str, shift: str | None) -> None:
    plain = walls(parse(cron=text, tz=NEW_YORK))
    step = {"next": 1, "previous": -1, None: 0}[shift]
    expected = {
        wall if is_business_day(wall.date()) else datetime.combine(nearest(wall.date(), step), wall.time())
        for wall in plain
        if step or is_business_day(wall.date())
    }
    recurrence = parse(cron=text, tz=NEW_YORK, days={"only_in": {"business": BUSINESS}, "shift": shift})
    assert inner(walls(recurrence)) == inner(sorted(expected))
    assert parse_spec(recurrence.spec) == recurrence


@pytest.mark.parametrize("shift", [None, "next", "previous"])
def test_the_next_occurrence_is_the_same_from_every_start(shift: str | None) -> None:
    days = {"only_in": {"business": BUSINESS}, "shift": shift}
    recurrence = parse(rrule="FREQ=MONTHLY;BYMONTHDAY=1,15,-1;BYHOUR=9,17", tz="Asia/Tokyo", days=days)
    start, end = datetime(2026, 11, 1, tzinfo=UTC), datetime(2027, 2, 1, tzinfo=UTC)
    in_order = [each.at for each in recurrence.occurrences(start, end, 1_000)]
    instant = start
    while instant < in_order[-1]:
        assert recurrence.next_after(instant) == min(at for at in in_order if at > instant)
        instant += timedelta(hours=5)


def test_the_day_is_that_of_the_wall_clock() -> None:
    """23:00 in New York on Friday is Saturday in UTC."""
    weekdays = {"only_in": {"weekdays": {"weekdays": [0, 1, 2, 3, 4]}}}
    recurrence = parse(cron="0 23 * * *", tz=NEW_YORK, days=weekdays)
    assert recurrence.next_after(datetime(2026, 11, 20, 12, tzinfo=UTC)) == datetime(
        2026, 11, 21, 4, tzinfo=UTC
    )
    assert recurrence.next_after(datetime(2026, 11, 21, 4, tzinfo=UTC)) == datetime(
        2026, 11, 24, 4, tzinfo=UTC
    )


def test_a_moved_time_in_a_gap_of_the_clocks_is_moved_to_its_end() -> None:
    """Sunday 8 March 2026 is the day on which the clocks of New York skip 02:30."""
    days = {"only_in": {"sundays": {"weekdays": [6]}}, "shift": "next"}
    recurrence = parse(cron="30 2 7 3 *", tz=NEW_YORK, days=days)
    found = recurrence.occurrence_after(datetime(2026, 1, 1, tzinfo=UTC))
    assert found is not None
    assert found.at == datetime(2026, 3, 8, 7, tzinfo=UTC)
    assert found.note == (
        "moved from Sat 2026-03-07, not in calendar sundays; 02:30 does not exist on this day: moved to 03:00"
    )


def test_interval_like_expressions_skip_whole_days() -> None:
    recurrence = parse(cron="*/30 * * * *", tz=NEW_YORK, days={"except": {"holidays": HOLIDAYS}})
    last = datetime(2026, 12, 24, 5, tzinfo=UTC)
    assert recurrence.next_after(last - timedelta(minutes=31)) == last - timedelta(minutes=30)
    assert recurrence.next_after(last - timedelta(minutes=30)) == datetime(2026, 12, 27, 5, tzinfo=UTC)


def test_skipped_and_moved_occurrences_have_a_reason() -> None:
    start = datetime(2026, 12, 23, tzinfo=UTC)
    days = {"except": {"holidays": HOLIDAYS}, "only_in": {"weekdays": {"weekdays": [0, 1, 2, 3, 4]}}}
    found = skipped(parse(cron="0 9 * * *", days=days), start, start + 5 * DAY, 10)
    assert [(each.at.day, each.reason) for each in found] == [
        (24, "excluded by calendar holidays"),
        (25, "excluded by calendar holidays"),
        (26, "excluded by calendar holidays"),
        (27, "not in calendar weekdays"),
    ]
    moved = parse(cron="0 9 * * *", days={**days, "shift": "next"})
    assert skipped(moved, start, start + 5 * DAY, 10) == []
    away = moved_away(moved, start + 1.2 * DAY, start + 2.5 * DAY)
    assert away is not None
    assert away.reason == "excluded by calendar holidays, moved to the next day that is allowed"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"every": "10m"}, "counts elapsed time and has no days"),
        ({"rrule": "FREQ=HOURLY"}, "counts elapsed time and has no days"),
        ({"at": "2026-12-25T09:00"}, "not to a single time"),
        ({"cron": "0 9 25 12 *"}, "never fires"),
        ({"cron": "*/5 * * * *", "shift": "next"}, "it fires all day long"),
        ({"cron": "0 9 * * *", "shift": "later"}, "shift 'later' is unknown"),
    ],
)
def test_what_calendars_cannot_apply_to_is_rejected(keys: dict[str, str], message: str) -> None:
    days = {"except": {"holidays": {"yearly": ["12-25"]}}, "shift": keys.pop("shift", None)}
    with pytest.raises(InvalidInput, match=message):
        parse(**keys, days=days)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ({"dates": ["25.12.2026"]}, "is not a date"),
        ({"dates": ["2026-12-26/2026-12-24"]}, "ends before it begins"),
        ({"yearly": ["02-30"]}, "is not a day of the year"),
        ({"rrules": ["FREQ=HOURLY"]}, "a calendar is a set of days"),
        ({"rrules": ["FREQ=DAILY;BYHOUR=9"]}, "BYHOUR is finer"),
        ({"rrules": ["FREQ=DAILY;COUNT=3"]}, "write UNTIL"),
        ({"colour": ["red"]}, "is not a part of a calendar"),
        ({"dates": [f"{1000 + number}-01-01" for number in range(9_000)] * 2}, "keep it below"),
    ],
)
def test_a_wrong_calendar_is_rejected(definition: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput) as rejected:
        parse(cron="0 9 * * *", days={"except": {"wrong": definition}})
    assert message in f"{rejected.value} {rejected.value.remedy}"


def test_a_search_without_an_allowed_day_ends() -> None:
    mondays, tuesdays = {"weekdays": [0]}, {"weekdays": [1]}
    with pytest.raises(InvalidInput, match="never fires"):
        parse(cron="0 9 * * *", days={"only_in": {"mondays": mondays, "tuesdays": tuesdays}})
    with pytest.raises(InvalidInput, match="never fires"):
        parse(cron="0 9 * * *", days={"only_in": {"mondays": mondays}, "except": {"mondays": mondays}})


def test_days_that_begin_late_and_end_are_found_and_end() -> None:
    dates = {"dates": ["2030-05-01/2030-05-03", "2055-01-01"]}
    recurrence = parse(cron="0 9 * * *", days={"only_in": {"dates": dates}})
    found = recurrence.occurrences(datetime(1990, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC), 10)
    assert [str(each.at.date()) for each in found] == ["2030-05-01", "2030-05-02", "2030-05-03"]
    assert recurrence.next_after(datetime(2050, 1, 1, tzinfo=UTC)) == datetime(2055, 1, 1, 9, tzinfo=UTC)
    assert recurrence.next_after(datetime(2055, 1, 2, tzinfo=UTC)) is None

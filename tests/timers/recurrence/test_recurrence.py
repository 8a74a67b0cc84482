"""A recurrence: its searches, counts and identities agree with each other."""

import itertools
import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest

from timers.recurrence import Recurrence, parse
from tocsin.core.errors import InvalidInput

START = datetime(2026, 3, 1, tzinfo=UTC)
KINDS: tuple[dict[str, str], ...] = (
    {"cron": "30 2 * * *"},
    {"cron": "*/7 1-4 * * *"},
    {"cron": "0 0 L * *"},
    {"every": "37m"},
    {"rrule": "FREQ=WEEKLY;BYDAY=MO,SU", "dtstart": "2020-01-06T01:30"},
    {"rrule": "FREQ=MINUTELY;INTERVAL=50;BYHOUR=1,2", "dtstart": "2020-01-06T01:30"},
    {"rrule": "FREQ=HOURLY;INTERVAL=5", "dtstart": "2020-01-06T01:30"},
)


def build(kind: dict[str, str], fold: str = "first") -> Recurrence:
    return parse(**kind, tz="America/New_York", dst_fold=fold)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fold", ["first", "both"])
def test_all_methods_of_a_recurrence_agree_with_each_other(kind: dict[str, str], fold: str) -> None:
    recurrence = build(kind, fold)
    end = START + timedelta(days=280)
    all_of_them = recurrence.occurrences(START, end, 100_000)
    instants = [each.at for each in all_of_them]
    assert instants == sorted(set(instants))
    assert recurrence.count_between(START, end, limit=100_000) == (len(instants), False)
    assert recurrence.latest_between(START, end) == all_of_them[-1]
    assert recurrence.next_after(START) == instants[0]
    assert recurrence.count_between(START, instants[0]) == (1, False)
    assert recurrence.count_between(instants[0], instants[1]) == (1, False)
    assert recurrence.latest_between(START, instants[1] - timedelta(microseconds=1)) == all_of_them[0]
    assert recurrence.latest_between(instants[0], instants[1] - timedelta(microseconds=1)) is None
    assert len({recurrence.identity(each) for each in all_of_them}) == len(all_of_them)
    distances = [later - earlier for earlier, later in itertools.pairwise(instants)]
    assert recurrence.minimum_distance() <= min(distances)


def test_counting_stops_at_the_limit_and_reports_at_least() -> None:
    recurrence = build({"cron": "* * * * *"})
    assert recurrence.count_between(START, START + timedelta(minutes=100), limit=100) == (100, False)
    assert recurrence.count_between(START, START + timedelta(minutes=101), limit=100) == (100, True)


def test_occurrences_stop_at_the_limit() -> None:
    assert len(build({"cron": "* * * * *"}).occurrences(START, START + timedelta(days=1), 5)) == 5
    assert build({"cron": "* * * * *"}).occurrences(START, START - timedelta(days=1), 5) == []


def test_fires_lie_within_starts_at_and_ends_at_inclusive() -> None:
    first, last = datetime(2026, 3, 5, 8, tzinfo=UTC), datetime(2026, 3, 7, 8, tzinfo=UTC)
    recurrence = parse(cron="0 8 * * *", starts_at=first, ends_at=last)
    found = [each.at for each in recurrence.occurrences(START, START + timedelta(days=30), 99)]
    assert found == [first, first + timedelta(days=1), last]
    assert recurrence.next_after(last) is None
    assert recurrence.count_between(START, START + timedelta(days=30)) == (3, False)
    latest = recurrence.latest_between(START, START + timedelta(days=30))
    assert latest is not None
    assert latest.at == last
    assert recurrence.latest_between(START, first - timedelta(seconds=1)) is None


def test_identity_is_wall_time_and_fold_or_the_instant() -> None:
    fixed = build({"cron": "30 1 * * *"}, "both")
    found = fixed.occurrences(datetime(2026, 11, 1, 4, tzinfo=UTC), datetime(2026, 11, 1, 7, tzinfo=UTC), 9)
    assert [fixed.identity(each) for each in found] == ["2026-11-01T01:30:00/0", "2026-11-01T01:30:00/1"]
    interval = build({"cron": "30 * * * *"})
    found = interval.occurrences(
        datetime(2026, 11, 1, 5, tzinfo=UTC), datetime(2026, 11, 1, 7, tzinfo=UTC), 9
    )
    assert [interval.identity(each) for each in found] == ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]


def test_a_naive_instant_is_refused() -> None:
    recurrence = build({"cron": "0 8 * * *"})
    naive = datetime(2026, 3, 1)
    for ask in (
        lambda: recurrence.next_after(naive),
        lambda: recurrence.occurrences(naive, START, 1),
        lambda: recurrence.count_between(START, naive),
        lambda: recurrence.latest_between(naive, START),
    ):
        with pytest.raises(InvalidInput, match="no timezone"):
            ask()


def test_an_instant_in_another_zone_is_the_same_instant_and_the_answer_is_utc() -> None:
    recurrence = build({"cron": "0 8 * * *"})
    elsewhere = START.astimezone(timezone(timedelta(hours=9)))
    assert recurrence.next_after(elsewhere) == recurrence.next_after(START)
    found = recurrence.next_after(elsewhere)
    assert found is not None
    assert found.tzinfo is UTC


def test_the_beginning_of_the_calendar_is_an_instant_like_any_other() -> None:
    first = datetime.min.replace(tzinfo=UTC)
    for kind in KINDS:
        assert build(kind).next_after(first) is not None


def test_describe_names_kind_text_and_zone() -> None:
    assert build({"cron": "0 8 * * mon-fri"}).describe() == "cron 0 8 * * MON-FRI in America/New_York"
    assert parse(every="90s").describe() == "every 1m30s in UTC"


def test_threads_share_one_recurrence() -> None:
    recurrence = build({"rrule": "FREQ=DAILY;BYHOUR=1,2,3", "dtstart": "2020-01-06T01:30"})
    instants = [START + timedelta(hours=5 * number) for number in range(400)]
    wanted = [recurrence.next_after(instant) for instant in instants]
    wrong: list[datetime] = []

    def ask(order: int) -> None:
        for instant, expected in list(zip(instants, wanted, strict=True))[::order]:
            if recurrence.next_after(instant) != expected:
                wrong.append(instant)

    threads = [threading.Thread(target=ask, args=(order,)) for order in (1, -1, 3, -7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_latest_of_a_long_outage_is_found_without_walking_all_of_it() -> None:
    recurrence = build({"cron": "* * * * *"})
    latest = recurrence.latest_between(START - timedelta(days=365 * 40), START + timedelta(seconds=30))
    assert latest is not None
    assert latest.at == START

"""Catch-up decisions: each occurrence is fired or missed, never both, never neither."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timers.catch_up import COUNT_LIMIT, Decision, Policy, decide
from timers.recurrence import Recurrence, parse

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
HOURLY = parse(cron="0 * * * *")
EVERY_10S = parse(every="10s", anchor=T0)


def times(decision: Decision) -> list[datetime]:
    return [occurrence.at for occurrence in decision.fires]


def missed(decision: Decision) -> tuple[int, datetime, datetime] | None:
    record = decision.missed
    return None if record is None else (record.count, record.first.at, record.last.at)


def following(decision: Decision) -> datetime | None:
    return None if decision.following is None else decision.following.at


@pytest.mark.parametrize("late", [timedelta(0), SECOND, MINUTE])
def test_within_its_grace_a_tick_fires_as_itself(late: timedelta) -> None:
    decision = decide(HOURLY, Policy(), T0, T0 + late)
    assert (times(decision), missed(decision)) == ([T0], None)
    assert (following(decision), decision.done.at) == (T0 + HOUR, T0)


def test_the_next_tick_fires_on_its_own_even_when_it_is_due_as_well() -> None:
    policy = Policy(grace=HOUR)
    decision = decide(EVERY_10S, policy, T0 + 10 * SECOND, T0 + 25 * SECOND)
    assert (times(decision), missed(decision)) == ([T0 + 10 * SECOND], None)
    assert following(decision) == T0 + 20 * SECOND


def test_the_default_grace_is_a_minute_or_half_the_distance() -> None:
    just_late = MINUTE + timedelta(microseconds=1)
    assert missed(decide(HOURLY, Policy("none"), T0, T0 + MINUTE)) is None
    assert missed(decide(HOURLY, Policy("none"), T0, T0 + just_late)) == (1, T0, T0)
    at = T0 + 10 * SECOND
    assert missed(decide(EVERY_10S, Policy("none"), at, at + 5 * SECOND)) is None
    assert missed(decide(EVERY_10S, Policy("none"), at, at + 5.1 * SECOND)) == (1, at, at)


def test_a_grace_of_zero_still_lets_a_punctual_tick_fire() -> None:
    assert times(decide(HOURLY, Policy("none", grace=timedelta(0)), T0, T0)) == [T0]


def test_latest_fires_the_most_recent_one_and_records_the_rest() -> None:
    decision = decide(HOURLY, Policy(), T0, T0 + 3 * HOUR + 2 * MINUTE)
    assert times(decision) == [T0 + 3 * HOUR]
    assert missed(decision) == (3, T0, T0 + 2 * HOUR)
    assert (following(decision), decision.done.at) == (T0 + 4 * HOUR, T0 + 3 * HOUR)


def test_latest_of_one_late_occurrence_misses_nothing() -> None:
    decision = decide(HOURLY, Policy(), T0, T0 + 50 * MINUTE)
    assert (times(decision), missed(decision), following(decision)) == ([T0], None, T0 + HOUR)


def test_an_occurrence_due_exactly_now_is_settled_too() -> None:
    decision = decide(HOURLY, Policy(), T0, T0 + 2 * HOUR)
    assert (times(decision), missed(decision)) == ([T0 + 2 * HOUR], (2, T0, T0 + HOUR))


def test_latest_fires_nothing_that_is_older_than_the_window() -> None:
    now = T0 + 2 * HOUR + 30 * MINUTE
    inside = decide(HOURLY, Policy(window=30 * MINUTE), T0, now)
    assert times(inside) == [T0 + 2 * HOUR]
    outside = decide(HOURLY, Policy(window=29 * MINUTE), T0, now)
    assert (times(outside), missed(outside)) == ([], (3, T0, T0 + 2 * HOUR))
    assert outside.missed is not None
    assert outside.missed.reason == "older than the window"
    assert (following(outside), outside.done.at) == (T0 + 3 * HOUR, T0 + 2 * HOUR)


def test_all_fires_each_in_order() -> None:
    decision = decide(HOURLY, Policy("all"), T0, T0 + 3 * HOUR)
    assert (times(decision), missed(decision)) == ([T0 + n * HOUR for n in range(4)], None)
    assert following(decision) == T0 + 4 * HOUR


def test_all_fires_at_most_max_catch_up_and_keeps_the_newest() -> None:
    decision = decide(HOURLY, Policy("all", max_catch_up=2), T0, T0 + 3 * HOUR)
    assert times(decision) == [T0 + 2 * HOUR, T0 + 3 * HOUR]
    assert missed(decision) == (2, T0, T0 + HOUR)
    assert decision.missed is not None
    assert decision.missed.reason == "more than max_catch_up, or older than the window"


def test_all_within_a_window_misses_older_occurrences() -> None:
    decision = decide(HOURLY, Policy("all", window=HOUR), T0, T0 + 3 * HOUR + 10 * MINUTE)
    assert (times(decision), missed(decision)) == ([T0 + 3 * HOUR], (3, T0, T0 + 2 * HOUR))


def test_none_fires_nothing_late() -> None:
    decision = decide(HOURLY, Policy("none"), T0, T0 + 2 * HOUR)
    assert (times(decision), missed(decision)) == ([], (3, T0, T0 + 2 * HOUR))
    assert decision.missed is not None
    assert decision.missed.reason == "late, and catch_up is none"


def test_spread_counts_as_punctual_and_not_as_lateness() -> None:
    spread = 20 * MINUTE
    on_time = decide(HOURLY, Policy("none", spread=spread), T0, T0 + spread)
    assert times(on_time) == [T0]
    # Two hours later the occurrence of that hour is not due yet: its own spread has not passed.
    late = decide(HOURLY, Policy(spread=spread), T0, T0 + 2 * HOUR + 19 * MINUTE)
    assert (times(late), missed(late), following(late)) == ([T0 + HOUR], (1, T0, T0), T0 + 2 * HOUR)


def test_a_window_counts_from_when_the_occurrence_was_due_with_its_spread() -> None:
    policy = Policy(spread=20 * MINUTE, window=30 * MINUTE)
    last_chance = T0 + 2 * HOUR + 50 * MINUTE
    assert times(decide(HOURLY, policy, T0, last_chance)) == [T0 + 2 * HOUR]
    assert times(decide(HOURLY, policy, T0, last_chance + SECOND)) == []


def test_a_late_one_shot_fires_once_and_has_nothing_after_it() -> None:
    once = parse(at="2026-03-02T08:00:00Z")
    for late in (timedelta(0), 30 * HOUR):
        decision = decide(once, Policy(), T0, T0 + late)
        assert (times(decision), missed(decision), following(decision)) == ([T0], None, None)
    too_late = decide(once, Policy(window=HOUR), T0, T0 + 30 * HOUR)
    assert (times(too_late), missed(too_late), following(too_late)) == ([], (1, T0, T0), None)


def test_a_recurrence_that_has_ended_is_settled_up_to_its_end() -> None:
    ending = parse(cron="0 * * * *", ends_at=T0 + 2 * HOUR)
    decision = decide(ending, Policy("all"), T0, T0 + 30 * HOUR)
    assert times(decision) == [T0, T0 + HOUR, T0 + 2 * HOUR]
    assert following(decision) is None


def test_a_tick_that_the_recurrence_no_longer_names_still_fires_once() -> None:
    odd = T0 + 17 * SECOND
    assert times(decide(HOURLY, Policy(), odd, odd)) == [odd]
    late = decide(HOURLY, Policy(), odd, odd + 2 * HOUR)
    assert (times(late), missed(late)) == ([T0 + 2 * HOUR], (2, odd, T0 + HOUR))


def test_counting_stops_at_its_limit_and_reports_at_least() -> None:
    minutely = parse(cron="* * * * *")
    decision = decide(minutely, Policy("none"), T0, T0 + timedelta(days=30))
    assert decision.missed is not None
    assert (decision.missed.count, decision.missed.at_least) == (COUNT_LIMIT, True)
    assert decision.missed.last.at == T0 + timedelta(days=30)
    # `every` is arithmetic: exact however long it was.
    exact = decide(EVERY_10S, Policy("none"), T0 + 10 * SECOND, T0 + timedelta(days=30))
    assert exact.missed is not None
    assert (exact.missed.count, exact.missed.at_least) == (30 * 8640, False)


RECURRENCES: list[Recurrence] = [
    HOURLY,
    EVERY_10S,
    parse(every="7m", anchor=T0),
    parse(cron="*/15 8-9 * * *", tz="Europe/London"),
    parse(cron="30 2 * * *", tz="America/New_York", dst_fold="both"),
    parse(rrule="FREQ=DAILY;COUNT=4", tz="UTC", anchor=T0),
    parse(cron="0 * * * *", ends_at=T0 + 5 * HOUR),
]
durations = st.timedeltas(timedelta(0), timedelta(hours=30))


@settings(max_examples=500)
@given(
    recurrence=st.sampled_from(RECURRENCES),
    catch_up=st.sampled_from(["latest", "all", "none"]),
    window=st.none() | durations,
    grace=st.none() | durations,
    max_catch_up=st.integers(1, 50),
    spread=st.timedeltas(timedelta(0), timedelta(seconds=9)),
    begins=st.timedeltas(timedelta(0), timedelta(days=9)),
    late=st.timedeltas(timedelta(0), timedelta(hours=8)),
)
def test_every_occurrence_up_to_now_is_in_exactly_one_of_fires_and_missed(
    recurrence: Recurrence,
    catch_up: str,
    window: timedelta | None,
    grace: timedelta | None,
    max_catch_up: int,
    spread: timedelta,
    begins: timedelta,
    late: timedelta,
) -> None:
    own = recurrence.occurrence_after(T0 + begins)
    if own is None:
        return
    policy = Policy(catch_up, window, grace, max_catch_up, spread)
    now = own.at + spread + late
    decision = decide(recurrence, policy, own.at, now)

    settled = [
        occurrence.at
        for occurrence in recurrence.occurrences(own.at - timedelta(microseconds=1), decision.done.at, 9999)
    ]
    fired = times(decision)
    not_fired = [at for at in settled if at not in fired]
    assert settled[0] == own.at
    assert set(fired) <= set(settled)
    assert fired == sorted(set(fired))
    assert missed(decision) == ((len(not_fired), not_fired[0], not_fired[-1]) if not_fired else None)
    # Missed occurrences lie before fired ones, so that one record can name their first and last.
    assert not fired or not not_fired or not_fired[-1] < fired[0]
    assert following(decision) == recurrence.next_after(decision.done.at)
    assert decision.done.at <= now - spread
    if len(settled) > 1 or not fired:
        # It was a catch-up: nothing that is due is left for later.
        assert decision.following is None or decision.following.at > now - spread
    assert len(fired) <= (max_catch_up if catch_up == "all" else 1)
    if window is not None and late > (grace if grace is not None else MINUTE):
        assert all(at >= now - spread - window for at in fired)

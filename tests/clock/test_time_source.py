"""`now` follows the clock of the database, also when that clock jumps or drifts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from clock import time_source
from clock.time_source import DatabaseTime, steady_s, wall_now

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


class Steady:
    """A steady clock that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        monkeypatch.setattr(time_source, "steady_s", lambda: self.now_s)


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> Steady:
    return Steady(monkeypatch)


def test_steady_seconds_never_go_back() -> None:
    readings = [steady_s() for _ in range(100)]
    assert readings == sorted(readings)


def test_the_clock_of_the_host_has_a_timezone() -> None:
    assert wall_now().tzinfo is UTC


def test_before_the_first_reading_now_raises() -> None:
    time = DatabaseTime()
    assert not time.known
    with pytest.raises(RuntimeError, match="the database's clock has not been read yet"):
        time.now()


def test_between_readings_now_follows_the_steady_clock(steady: Steady) -> None:
    time = DatabaseTime()
    assert time.observe(T0, 999.9, 1000.0) == timedelta(0)
    assert time.known
    assert time.now() == T0
    steady.now_s += 7.5
    assert time.now() == T0 + timedelta(seconds=7.5)


def test_now_is_never_ahead_of_the_database(steady: Steady) -> None:
    """Postgres reads its clock before it answers, so counting from the answer is never early."""
    time = DatabaseTime()
    time.observe(T0, 998.0, 1000.0)
    assert time.now() <= T0


@pytest.mark.parametrize("jump_s", [-3600.0, -0.3, 0.3, 3600.0])
def test_a_jump_is_followed_at_once_and_returned(steady: Steady, jump_s: float) -> None:
    time = DatabaseTime()
    time.observe(T0, 1000.0, 1000.0)
    steady.now_s = 1010.0
    jumped = time.observe(T0 + timedelta(seconds=10 + jump_s), 1010.0, 1010.0)
    assert jumped == timedelta(seconds=jump_s)
    assert time.jumps == 1
    assert time.now() == T0 + timedelta(seconds=10 + jump_s)


def test_drift_is_followed_without_counting_a_jump(steady: Steady) -> None:
    time = DatabaseTime()
    for second in range(100):
        steady.now_s = 1000.0 + second
        assert time.observe(T0 + timedelta(seconds=second * 1.2), steady.now_s, steady.now_s) == timedelta(0)
    assert time.jumps == 0
    assert time.now() == T0 + timedelta(seconds=99 * 1.2)


def test_a_slow_answer_counts_no_jump_and_neither_does_a_quick_one_after_it(steady: Steady) -> None:
    time = DatabaseTime()
    time.observe(T0, 1000.0, 1000.0)
    assert time.observe(T0, 1000.0, 1005.0) == timedelta(0)
    steady.now_s = 1006.0
    assert time.observe(T0 + timedelta(seconds=6), 1006.0, 1006.0) == timedelta(0)
    assert time.jumps == 0
    assert time.now() == T0 + timedelta(seconds=6)

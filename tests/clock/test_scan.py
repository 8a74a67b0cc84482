"""The scan of one kind: where its mark is, and when it returns to rows that it has passed over."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

import pytest

from clock.kinds import FiringPlan
from clock.scan import Position, Scan
from tests.clock.clock_setup import SECOND, at


class Row(NamedTuple):
    fire_at: datetime
    ref: str
    held: bool
    key: str = ""
    generation: int = 1
    name: str = ""


def held_rows(fire_at: datetime, count: int) -> list[Row]:
    return [Row(fire_at, f"ref-{number}", True) for number in range(count)]


def walk(scan: Scan, rows: list[Row], now: datetime) -> None:
    scan.begin()
    taken = [row for row in rows if not row.held]
    scan.advance(rows, len(taken), FiringPlan(considered=len(taken)), now)


def recheck_at(scan: Scan, begins: float, ends: float) -> float | None:
    """The time, in steps of 10 ms, at which the scan returns to the rows held at 5 s."""
    for step in range(round((ends - begins) * 100)):
        scan.rescan_recent(at(begins + step / 100))
        if scan.mark.fire_at == at(5):
            return begins + step / 100
    return None


@pytest.mark.parametrize(("count", "after_s"), [(1, 0.05), (500, 0.05), (10_000, 1.0), (80_000, 5.0)])
def test_the_more_rows_are_held_the_later_the_scan_returns_to_them(count: int, after_s: float) -> None:
    scan = Scan(2_000_000)
    walk(scan, held_rows(at(5), count), at(10))
    returned = recheck_at(scan, 10, 20)
    assert returned == pytest.approx(10 + after_s, abs=0.011)


@pytest.mark.parametrize(("walk_s", "after_s"), [(0.001, 0.05), (0.05, 1.0), (0.5, 10.0), (60.0, 60.0)])
def test_a_pass_over_dead_tuples_costs_at_most_five_percent_of_the_time(
    walk_s: float, after_s: float
) -> None:
    """One row is held, and an open transaction keeps all rows that were consumed since."""
    scan = Scan(1_000)
    rows = held_rows(at(5), 1)
    for number, wait_s in enumerate((0.05, 0.05, after_s, after_s)):
        began = 100 * number + 10
        scan.lower(at(5))
        scan.begin()
        slow = 2 if number == 1 else 1
        scan.advance(rows, 0, FiringPlan(), at(began), slow * timedelta(seconds=walk_s))
        assert recheck_at(scan, began, began + 80) == pytest.approx(began + wait_s, abs=0.011)


@pytest.mark.parametrize("met_again", [9_500, 1, 0])
def test_a_scan_of_the_last_two_seconds_does_not_move_the_recheck_of_held_rows(met_again: int) -> None:
    """It walks over some of the held rows every 200 ms."""
    scan = Scan(100_000)
    walk(scan, held_rows(at(5), 10_000), at(10))
    for tenths in range(1, 10):
        scan.rescan_recent(at(10 + tenths / 10))
        walk(scan, held_rows(at(9), met_again), at(10 + tenths / 10))
        assert scan.mark != Position(at(5))
    assert recheck_at(scan, 10.9, 12) == pytest.approx(11.0, abs=0.011)


def test_the_recheck_begins_with_the_oldest_row_and_counts_again() -> None:
    scan = Scan(100_000)
    walk(scan, held_rows(at(5), 10_000), at(10))
    assert recheck_at(scan, 10, 12) == pytest.approx(11)
    walk(scan, held_rows(at(7), 1), at(11))
    assert scan.backstop_before == at(7)
    scan.rescan_recent(at(11.05))
    assert scan.mark == Position(at(7))


def test_a_new_pass_counts_the_held_rows_again() -> None:
    scan = Scan(10_000)
    walk(scan, held_rows(at(5), 10_000), at(10))
    scan.lower(at(4))
    walk(scan, held_rows(at(5), 1), at(10))
    assert recheck_at(scan, 10, 11) == pytest.approx(10.05)


def test_rows_that_are_no_longer_held_are_not_checked_again() -> None:
    scan = Scan(10)
    walk(scan, held_rows(at(5), 1), at(10))
    assert recheck_at(scan, 10, 11) == pytest.approx(10.05)
    walk(scan, [], at(10.05))
    assert scan.backstop_before == at(10.05)
    assert recheck_at(scan, 10.05, 20) is None


def test_a_backlog_is_drained_before_the_scan_returns_to_held_rows() -> None:
    scan = Scan(2)
    walk(scan, held_rows(at(5), 2), at(10))
    assert scan.draining
    scan.rescan_recent(at(11))
    assert scan.mark == Position(at(5), "ref-1")
    walk(scan, held_rows(at(6), 1), at(11))
    assert recheck_at(scan, 11, 12) == pytest.approx(11.05)


def test_a_failed_batch_whose_rows_are_gone_ends_the_drain() -> None:
    scan = Scan(2)
    scan.retry()
    scan.begin()
    scan.polled(at(10), at(10))
    assert scan.draining, "a row is still due"
    scan.begin()
    scan.polled(at(10), at(11))
    scan.rescan_recent(at(10))
    assert scan.mark == Position(at(8)), "the last two seconds are scanned again"


def test_after_the_clock_went_back_the_scan_returns_to_held_rows_at_once() -> None:
    scan = Scan(10_000)
    scan.rescan_recent(at(10))
    walk(scan, held_rows(at(5), 9_000), at(10))
    scan.rescan_recent(at(9.9))
    assert scan.mark == Position(at(5))


def test_a_plan_that_stops_early_leaves_the_mark_at_the_last_row_it_considered() -> None:
    scan = Scan(10)
    rows = [Row(at(5), "a", False), Row(at(5), "b", True), Row(at(5), "c", False), Row(at(5), "d", False)]
    scan.advance(rows, 3, FiringPlan(considered=2), at(10))
    assert (scan.mark, scan.draining) == (Position(at(5), "c"), True)
    assert scan.backstop_before == at(5)


def test_a_full_batch_of_rows_leaves_the_mark_at_the_last_of_them() -> None:
    scan = Scan(2)
    rows = [Row(at(5), "a", False, "k1"), Row(at(5), "a", True, "k2")]
    scan.advance(rows, 1, FiringPlan(considered=1), at(10))
    assert (scan.mark, scan.draining) == (Position(at(5), "a", "k2"), True)


def test_a_timer_that_moved_to_an_instant_that_is_due_as_well_is_found_at_once() -> None:
    class Moved(FiringPlan):
        @property
        def first_rearmed_at(self) -> datetime:
            return at(8)

    scan = Scan(10)
    scan.advance([Row(at(5), "a", False)], 1, Moved(considered=1), at(8))
    assert (scan.mark, scan.draining) == (Position(at(8)), True)


def test_a_kind_may_be_due_before_the_first_poll_and_from_its_next_due_time_on() -> None:
    scan = Scan(10)
    assert scan.may_be_due(at(0))
    scan.begin()
    scan.polled(at(0), at(10))
    assert [scan.may_be_due(at(second)) for second in (9, 10)] == [False, True]
    scan.begin()
    scan.polled(at(1), None)
    assert not scan.may_be_due(at(1000))
    scan.lower(at(1) - SECOND)
    assert scan.may_be_due(at(0))

"""Partitions are shared evenly, free ones are taken, and no worker releases one that it should keep."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.lanes.assignment import Assignment, PartitionRow, assign, fair_share


def table(*holders: str | None, lane: str = "data", left_s: float = 1.0) -> list[PartitionRow]:
    return [
        PartitionRow(lane, number, holder, left_s if holder else 0.0) for number, holder in enumerate(holders)
    ]


@given(st.integers(0, 300), st.integers(1, 40))
def test_the_shares_of_all_workers_are_all_partitions_and_differ_by_one_at_most(
    partitions: int, workers: int
) -> None:
    shares = [fair_share(partitions, workers, rank) for rank in range(workers)]
    assert sum(shares) == partitions
    assert max(shares) - min(shares) <= 1


def test_a_worker_alone_takes_everything_that_is_free() -> None:
    assignment = assign(table(None, None, None), ["a"], "a")
    assert sorted(assignment.take) == [("data", 0), ("data", 1), ("data", 2)]
    assert assignment.release == []


def test_the_partitions_of_a_living_worker_are_left_alone() -> None:
    assert assign(table("a", "a", "b", "b"), ["a", "b"], "b") == Assignment([], [])


def test_a_partition_whose_lease_has_ended_is_taken() -> None:
    held = table("a", None)[:1]
    dead = [PartitionRow("data", 1, "b", -0.1), *held]
    assert assign(dead, ["a"], "a") == Assignment([("data", 1)], [])
    assert assign([PartitionRow("data", 1, "b", 0.1), *held], ["a"], "a").take == []


def test_workers_release_their_surplus_for_a_worker_that_joins() -> None:
    assert assign(table("a", "a", "a", "a"), ["a", "b"], "a").release == [("data", 2), ("data", 3)]
    assert assign(table("a", "a", "a", "a"), ["a", "b"], "b") == Assignment([], [])


def test_a_lane_with_one_partition_stays_with_the_oldest_worker() -> None:
    record = table("a", lane="record")
    for workers in (["a"], ["a", "b"], ["a", "b", "c"]):
        assert all(assign(record, workers, me) == Assignment([], []) for me in workers)


def test_a_worker_that_is_not_counted_takes_nothing() -> None:
    assert assign(table(None), ["a"], "b") == Assignment([], [])


@given(st.data())
def test_after_workers_join_and_leave_all_partitions_are_held_evenly(data: st.DataObject) -> None:
    """Every worker follows its assignment, one after the other, until no assignment changes anything."""
    count = data.draw(st.integers(1, 16), "partitions")
    holders: list[str | None] = [None] * count
    workers: list[str] = []
    for step in range(data.draw(st.integers(1, 6), "changes")):
        leaves: bool = data.draw(st.booleans(), "leaves")
        if workers and leaves:
            gone = workers.pop(data.draw(st.integers(0, len(workers) - 1), "who"))
            holders = [None if holder == gone else holder for holder in holders]
        else:
            workers.append(f"w{step}")
        for _ in range(2 * count + 4):
            changed = False
            for me in workers:
                assignment = assign(table(*holders), workers, me)
                changed = changed or bool(assignment.take or assignment.release)
                for _, partition in assignment.release:
                    holders[partition] = None
                for _, partition in assignment.take:
                    holders[partition] = me
            if not changed:
                break
        else:
            pytest.fail("the assignments never settle")
        if workers:
            shares = [holders.count(worker) for worker in workers]
            assert sum(shares) == count
            assert max(shares) - min(shares) <= 1

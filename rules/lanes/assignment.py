"""The assignment of partitions to workers: a pure function of the rows in Postgres.

Guarantee: if every worker follows it, each lane is shared as evenly as whole partitions allow, a
worker takes each partition whose holder is gone, and a worker that joins or leaves moves no more
partitions than necessary.

Why by age: the oldest workers have the odd partitions. So a worker that joins takes from those that
have more, and the single partition of the record lane stays with its worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class PartitionRow(NamedTuple):
    """A partition and its holder, as in the table."""

    lane: str
    partition: int
    holder: str | None
    left_s: float
    """Seconds until its lease ends; not positive: it is free."""
    has_due_states: bool = False
    """Whether states change before its watermark although nothing arrives."""


class Assignment(NamedTuple):
    """The partitions that a worker must take and release."""

    take: list[tuple[str, int]]
    release: list[tuple[str, int]]


def fair_share(partitions: int, workers: int, rank: int) -> int:
    """The number of partitions for the worker at `rank` (0 is the oldest)."""
    return partitions // workers + (rank < partitions % workers)


def assign(table: Sequence[PartitionRow], workers: Sequence[str], me: str) -> Assignment:
    """`workers` are those alive, oldest first."""
    if me not in workers:
        return Assignment([], [])
    rank = workers.index(me)
    take: list[tuple[str, int]] = []
    release: list[tuple[str, int]] = []
    for lane in dict.fromkeys(row.lane for row in table):
        rows = [row for row in table if row.lane == lane]
        mine = [row.partition for row in rows if row.holder == me]
        free = [row.partition for row in rows if row.holder is None or row.left_s <= 0]
        free = [partition for partition in free if partition not in mine]
        due = fair_share(len(rows), len(workers), rank)
        release += [(lane, partition) for partition in mine[due:]]
        # Each worker starts at another partition, so that workers do not all try to take the same
        # one.
        start = rank * len(free) // len(workers)
        take += [(lane, partition) for partition in (free[start:] + free[:start])[: max(0, due - len(mine))]]
    return Assignment(take, release)

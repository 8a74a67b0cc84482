"""Who should hold which partition: pure, from what the tables say.

Guarantee: when every worker follows it, each lane is shared as evenly as whole partitions allow, a partition whose
holder is gone is taken by somebody, and a worker that joins or leaves moves no more partitions than that asks for.

Why by age: the oldest workers have the odd partitions, so one that joins takes from those that have more, and the
single partition of the record lane stays where it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Held(NamedTuple):
    """A partition as it stands in the table."""

    lane: str
    partition: int
    holder: str | None
    left_s: float
    """Until its holder is taken for dead; not positive: it is free."""


class Decision(NamedTuple):
    take: list[tuple[str, int]]
    give: list[tuple[str, int]]


def share(partitions: int, workers: int, rank: int) -> int:
    """How many of the partitions the worker at `rank` (0 is the oldest) should hold."""
    return partitions // workers + (rank < partitions % workers)


def decide(table: Sequence[Held], workers: Sequence[str], me: str) -> Decision:
    """`workers` are those alive, oldest first."""
    if me not in workers:
        return Decision([], [])
    rank = workers.index(me)
    take: list[tuple[str, int]] = []
    give: list[tuple[str, int]] = []
    for lane in dict.fromkeys(held.lane for held in table):
        rows = [held for held in table if held.lane == lane]
        mine = [held.partition for held in rows if held.holder == me]
        free = [held.partition for held in rows if held.holder is None or held.left_s <= 0]
        free = [partition for partition in free if partition not in mine]
        due = share(len(rows), len(workers), rank)
        give += [(lane, partition) for partition in mine[due:]]
        # Everybody begins at another place, so that workers that look at the same moment do not want the same.
        start = rank * len(free) // len(workers)
        take += [(lane, partition) for partition in (free[start:] + free[:start])[: max(0, due - len(mine))]]
    return Decision(take, give)

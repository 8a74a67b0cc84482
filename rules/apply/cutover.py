"""Records the position of every partition at every apply: which rules evaluated which datapoint.

Guarantee: each datapoint is evaluated with the documents of exactly one apply, and
`Cutovers.rules_seq` names that apply at any later time. An apply locks every partition
(`lock_partitions`) before it changes anything that a worker reads, and records in the same
transaction how far each partition has been read (`record_cutovers`). A batch locks its partition
and commits only if the apply whose rules it used is still the newest one (`newest_rules`). So a
batch either commits before the next apply and lies behind the recorded position, or it is evaluated
again with the new documents. No batch mixes the documents of two applies.

Why the apply records the position and not the batch: the position is exact without a statement in
every batch, and `watermark` tells which deadlines were decided when the apply changed the alarms.

A backtest walks the datapoints of a partition in the order (arrived_at, stream_seq). For each it
takes `RuleBook.at(rules_seq + 1)`. At a cutover it handles the staleness that was due up to
`watermark`, then changes the states with `rules/alarms/rule_change.py`, as the apply did.

The position of the record lane is recorded too. Its records are evaluated with the rules of their
seq, but the apply changed the alarms over events at the position of the lane
(`rules/replay/backtest/timelines.py`). So the batches of the record lane also commit only if no
apply came between.

A partition that was created after an apply has no row for it. Its rules before its first row are
those of the newest apply before that row.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from tocsin.core.db import Connection, fetch_all, statement

_BEGINNING = datetime.min.replace(tzinfo=UTC)


class Cutover(NamedTuple):
    """The position of a partition at an apply.

    Up to (watermark, seq) the partition was read with older rules.
    """

    partition: int
    rules_seq: int
    seq: int
    watermark: datetime | None

    @property
    def position(self) -> tuple[datetime, float]:
        """Sorts before every later arrival.

        Nothing has been read of a stream that was just created: its seq is 0.
        """
        return self.watermark or _BEGINNING, self.seq or math.inf


class Cutovers:
    def __init__(self, applies: Sequence[int], cutovers: Iterable[Cutover]) -> None:
        """`applies` are the seqs of all applies, in order."""
        self._applies = applies
        self._by_partition: dict[int, list[Cutover]] = {}
        for cutover in sorted(cutovers, key=lambda cutover: cutover.rules_seq):
            self._by_partition.setdefault(cutover.partition, []).append(cutover)

    def of_partition(self, partition: int) -> Sequence[Cutover]:
        return self._by_partition.get(partition, ())

    def rules_seq(self, partition: int, arrived_at: datetime, seq: int) -> int:
        """The apply whose documents evaluated a datapoint; 0 if none had been applied."""
        cutovers = self.of_partition(partition)
        passed = bisect_left(cutovers, (arrived_at, float(seq)), key=lambda cutover: cutover.position)
        if passed:
            return cutovers[passed - 1].rules_seq
        earlier = bisect_left(self._applies, cutovers[0].rules_seq) if cutovers else len(self._applies)
        return self._applies[earlier - 1] if earlier else 0


async def lock_partitions(connection: Connection) -> Mapping[tuple[str, int], datetime | None]:
    """Phase 0 of an apply: wait for the running batches and block new ones.

    Returns the watermark of every (lane, partition).
    """
    rows = await fetch_all(connection, "rules.apply/lock_partitions")
    return {(lane, partition): watermark for lane, partition, watermark in rows}


async def record_cutovers(connection: Connection, rules_seq: int) -> None:
    await connection.execute(statement("rules.apply/insert_cutovers"), {"rules_seq": rules_seq})

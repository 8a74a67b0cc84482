"""Where each partition stood when the rules changed: what a replay needs to judge as was judged.

Guarantee: a datapoint is judged by the documents of exactly one apply, and `Switches.rules_seq` names it, for ever. An
apply locks every partition (`lock_partitions`) before it changes anything that a worker reads, and in the same
transaction writes down how far each had read (`record_switches`). A batch locks its partition, and commits only if the
apply whose rules it used is still the newest one (`newest_rules`): so it either commits before the next apply and is
behind the recorded place, or it is judged again by the new documents. No batch can be in between, and none can mix two.

Why the apply writes it and not the batch: the place is then exact without a statement in every batch, and
`watermark` says which deadlines were decided when the apply acted on the alarms.

How the backtest uses it: it walks the datapoints of a partition in the order (arrived_at, stream_seq); for each it asks
for the `rules_seq` and takes `RuleBook.at(rules_seq + 1)`. At a switch it realises what was due up to the row's
`watermark`, then does what `rules/alarms/rule_change.py` does.

The record lane's place is written down as well: its records are judged by the rules of their seq, but what the apply
itself did to alarms over events, it did where the lane stood (`rules/replay/backtest/timelines.py`). So its batches,
too, commit only if no apply came between.

A partition that was made after an apply has no row of it: its rules before its first row are those of the newest apply
before that row.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from tocsin.core.db import Connection, fetch_all, statement

_EVER = datetime.min.replace(tzinfo=UTC)


class Switch(NamedTuple):
    """Everything up to (watermark, seq) was read under older rules."""

    partition: int
    rules_seq: int
    seq: int
    watermark: datetime | None

    @property
    def place(self) -> tuple[datetime, float]:
        """Of a stream that was just made, possibly anew, nothing was read: what comes arrives later than that."""
        return self.watermark or _EVER, self.seq or math.inf


class Switches:
    def __init__(self, applies: Sequence[int], rows: Iterable[Switch]) -> None:
        """`applies` are the seqs of all applies, in order."""
        self._applies = applies
        self._rows: dict[int, list[Switch]] = {}
        for row in sorted(rows, key=lambda row: row.rules_seq):
            self._rows.setdefault(row.partition, []).append(row)

    def of_partition(self, partition: int) -> Sequence[Switch]:
        return self._rows.get(partition, ())

    def rules_seq(self, partition: int, arrived_at: datetime, seq: int) -> int:
        """The apply whose documents judged a datapoint; 0 if none had been applied."""
        rows = self.of_partition(partition)
        place = bisect_left(rows, (arrived_at, float(seq)), key=lambda row: row.place)
        if place:
            return rows[place - 1].rules_seq
        earlier = bisect_left(self._applies, rows[0].rules_seq) if rows else len(self._applies)
        return self._applies[earlier - 1] if earlier else 0


async def lock_partitions(connection: Connection) -> Mapping[tuple[str, int], datetime | None]:
    """Phase 0 of an apply: waits for the batches under way; `watermark` of every (lane, partition)."""
    rows = await fetch_all(connection, "rules.apply/lock_partitions")
    return {(lane, partition): watermark for lane, partition, watermark in rows}


async def record_switches(connection: Connection, rules_seq: int) -> None:
    await connection.execute(statement("rules.apply/insert_switches"), {"rules_seq": rules_seq})


async def read_switches(connection: Connection) -> Switches:
    applies = await fetch_all(connection, "rules.apply/list_applies")
    rows = await fetch_all(connection, "rules.apply/list_switches")
    return Switches([seq for (seq,) in applies], [Switch(*row) for row in rows])

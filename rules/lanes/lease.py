"""Leases of partitions: rows with a holder and a deadline, on the clock of the database.

Guarantee: a partition has one holder. The holder keeps it while it renews the lease (with every
batch, and at least every quarter of the TTL). A holder that stops renewing loses it after the TTL.
A worker that leaves releases it at once and wakes the others.

The row only decides which worker tries. Whether a batch may commit is decided inside its own
transaction, by `Partition.move`.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime

from rules.lanes.assignment import Assignment, PartitionRow, assign
from rules.lanes.partition import Partition, PartitionKey, PartitionPosition
from tocsin.core.db import Connection, fetch_all, fetch_one, statement

# Also how often an idle partition reports its watermark.
_RENEWAL_S = 0.25
# After the deadline of an expired lease, so that it has passed when the worker looks.
_AFTER_DEADLINE_S = 0.01
_NONE: Mapping[PartitionKey, str] = {}


class Leases:
    """The leases of one worker, through a session of its own."""

    def __init__(self, connection: Connection, ttl_s: float) -> None:
        self.holder = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
        self.held: set[PartitionKey] = set()
        self.due: set[PartitionKey] = set()
        """Partitions with states that change before the watermark although nothing arrives."""
        self._connection = connection
        self._ttl_s = ttl_s
        self._next_deadline_s = ttl_s

    async def listen(self) -> None:
        """Be woken when another worker releases a partition."""
        await self._connection.execute(statement("rules.lanes/listen"))

    async def renew(
        self, watermarks: Mapping[PartitionKey, datetime], canary_errors: Mapping[PartitionKey, str] = _NONE
    ) -> Assignment:
        """Renew all leases; store the watermarks of idle partitions and the errors of canaries.

        Returns the partitions to take and to release.
        """
        parameters = {
            "holder": self.holder,
            "ttl_s": self._ttl_s,
            "lanes": [lane for lane, _ in watermarks],
            "partitions": [number for _, number in watermarks],
            "watermarks": list(watermarks.values()),
            "failing": [number for _, number in canary_errors],
            "errors": list(canary_errors.values()),
        }
        await self._connection.execute(statement("rules.lanes/renew_leases"), parameters)
        rows = await fetch_all(self._connection, "rules.lanes/read_leases")
        workers = await fetch_all(self._connection, "rules.lanes/read_workers")
        table = [PartitionRow(*row) for row in rows]
        self.held = {(row.lane, row.partition) for row in table if row.holder == self.holder}
        self.due = {(row.lane, row.partition) for row in table if row.has_due_states}
        others = [row.left_s for row in table if row.holder not in (None, self.holder)]
        self._next_deadline_s = min((left_s for left_s in others if left_s > 0), default=self._ttl_s)
        return assign(table, [holder for (holder,) in workers], self.holder)

    async def take(self, key: PartitionKey) -> Partition | None:
        """None: another worker was faster."""
        parameters = {"lane": key[0], "partition": key[1], "holder": self.holder, "ttl_s": self._ttl_s}
        row = await fetch_one(self._connection, "rules.lanes/take_partition", parameters)
        if row is None:
            return None
        self.held.add(key)
        *position, holder_before = row
        was_lost = holder_before is not None
        return Partition(key, self.holder, self._ttl_s, PartitionPosition(*position), was_lost=was_lost)

    async def release(self, keys: Iterable[PartitionKey]) -> None:
        released = sorted(keys)
        if not released:
            return
        self.held -= set(released)
        parameters = {
            "holder": self.holder,
            "lanes": [lane for lane, _ in released],
            "partitions": [number for _, number in released],
        }
        await self._connection.execute(statement("rules.lanes/release_partitions"), parameters)

    async def leave(self) -> None:
        """Release all partitions; the worker is no longer counted."""
        self.held.clear()
        await self._connection.execute(statement("rules.lanes/remove_worker"), {"holder": self.holder})

    async def wait(self) -> None:
        """Wait until the next renewal, or until a partition becomes free."""
        timeout_s = min(_RENEWAL_S, self._ttl_s / 4, self._next_deadline_s + _AFTER_DEADLINE_S)
        async for _ in self._connection.notifies(timeout=timeout_s, stop_after=1):
            pass

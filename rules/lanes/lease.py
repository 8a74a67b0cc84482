"""Holding partitions: a row with a holder and a deadline, on the database's clock.

Guarantee: a partition has one holder. It stays with it as long as the holder gives signs of life (every batch, and
a beat of at most a quarter of the TTL); a silent one loses it after the TTL, a leaving one gives it back at once
and wakes the others.

The row only decides who tries. That a batch may commit is proven inside its own transaction, by `Partition.move`.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime

from rules.lanes.assignment import Decision, Held, decide
from rules.lanes.partition import Key, Partition, Position
from tocsin.core.db import Connection, fetch_all, fetch_one, statement

# Also how often an idle partition says how far it is complete.
_BEAT_S = 0.25
# Behind the deadline of a silent holder, so that it has passed when we look.
_BEHIND_S = 0.01


class Holdings:
    """What one worker holds, through a session of its own."""

    def __init__(self, connection: Connection, ttl_s: float) -> None:
        self.holder = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:8]}"
        self.held: set[Key] = set()
        self._connection = connection
        self._ttl_s = ttl_s
        self._next_deadline_s = ttl_s

    async def join(self) -> None:
        await self._connection.execute(statement("rules.lanes/listen"))

    async def beat(self, complete: Mapping[Key, datetime]) -> Decision:
        """Say that we live and how far our partitions are complete; what to take and what to give back."""
        parameters = {
            "holder": self.holder,
            "ttl_s": self._ttl_s,
            "lanes": [lane for lane, _ in complete],
            "partitions": [number for _, number in complete],
            "complete": list(complete.values()),
        }
        await self._connection.execute(statement("rules.lanes/keep_holdings"), parameters)
        rows = await fetch_all(self._connection, "rules.lanes/read_holdings")
        workers = await fetch_all(self._connection, "rules.lanes/read_workers")
        table = [Held(*row) for row in rows]
        self.held = {(held.lane, held.partition) for held in table if held.holder == self.holder}
        others = [held.left_s for held in table if held.holder not in (None, self.holder)]
        self._next_deadline_s = min((left_s for left_s in others if left_s > 0), default=self._ttl_s)
        return decide(table, [holder for (holder,) in workers], self.holder)

    async def take(self, key: Key) -> Partition | None:
        """None: somebody else was quicker."""
        parameters = {"lane": key[0], "partition": key[1], "holder": self.holder, "ttl_s": self._ttl_s}
        row = await fetch_one(self._connection, "rules.lanes/take_partition", parameters)
        if row is None:
            return None
        self.held.add(key)
        return Partition(key, self.holder, self._ttl_s, Position(*row))

    async def give(self, keys: Iterable[Key]) -> None:
        given = sorted(keys)
        if not given:
            return
        self.held -= set(given)
        parameters = {
            "holder": self.holder,
            "lanes": [lane for lane, _ in given],
            "partitions": [number for _, number in given],
        }
        await self._connection.execute(statement("rules.lanes/give_partitions"), parameters)

    async def leave(self) -> None:
        self.held.clear()
        await self._connection.execute(statement("rules.lanes/leave"), {"holder": self.holder})

    async def rest(self) -> None:
        """Until the next beat: sooner when a partition is given back, or when a silent holder's time is up."""
        timeout_s = min(_BEAT_S, self._ttl_s / 4, self._next_deadline_s + _BEHIND_S)
        async for _ in self._connection.notifies(timeout=timeout_s, stop_after=1):
            pass

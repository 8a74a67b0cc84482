"""A partition that we hold, and how far it is drained.

Guarantee: `move` is the first lock of a batch's transaction. It succeeds only if the partition is still ours and still
where we left it, so of two workers that believe to hold it one commits, and the other is `Lost`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from rules.lanes.lane import Message
from tocsin.core.db import Connection, statement
from tocsin.core.errors import TocsinError

Key = tuple[str, int]
"""The name of a lane and the number of its partition."""


class Lost(TocsinError):
    """The partition is held by another worker: nothing of this batch may commit."""


class Position(NamedTuple):
    last_seq: int
    last_source_seq: int
    watermark: datetime | None
    incarnation: str | None
    """When the stream was made, as its server says it: sequences of another stream mean something else."""


class Partition:
    def __init__(self, key: Key, holder: str, ttl_s: float, position: Position) -> None:
        self.key = key
        self.position = position
        """As committed: set by whoever committed it."""
        self._holder = holder
        self._ttl_s = ttl_s

    @property
    def number(self) -> int:
        return self.key[1]

    def news(self, messages: Sequence[Message]) -> list[Message]:
        """Without sourced messages that have come before: their stream was rebuilt, and they come again."""
        news: list[Message] = []
        last = self.position.last_source_seq
        for message in messages:
            if message.source_seq is not None:
                if message.source_seq <= last:
                    continue
                last = message.source_seq
            news.append(message)
        return news

    async def move(
        self, connection: Connection, messages: Sequence[Message], watermark: datetime | None
    ) -> Position:
        """The position behind `messages`, as it is when the transaction commits."""
        before = self.position
        sourced = [message.source_seq for message in messages if message.source_seq is not None]
        after = before._replace(
            last_seq=messages[-1].seq,
            last_source_seq=max([before.last_source_seq, *sourced]),
            watermark=max(filter(None, (before.watermark, watermark)), default=None),
        )
        await self._update(
            connection,
            statement("rules.lanes/move_position"),
            last_seq=after.last_seq,
            last_source_seq=after.last_source_seq,
            complete=watermark,
            ttl_s=self._ttl_s,
        )
        return after

    async def begin(self, connection: Connection, last_seq: int, incarnation: str) -> None:
        """The stream is another one than before: go on behind `last_seq` of this one."""
        await self._update(
            connection,
            statement("rules.lanes/begin_incarnation"),
            last_seq=last_seq,
            incarnation=incarnation,
        )
        self.position = self.position._replace(last_seq=last_seq, incarnation=incarnation)

    async def _update(self, connection: Connection, query: bytes, **values: Any) -> None:
        lane, number = self.key
        mine = {"lane": lane, "partition": number, "holder": self._holder, "expected": self.position.last_seq}
        if (await connection.execute(query, {**mine, **values})).rowcount == 0:
            raise Lost(f"partition {number} of the {lane} lane is held by another worker: this one stops")

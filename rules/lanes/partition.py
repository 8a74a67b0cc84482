"""A partition that this worker holds, and its position.

Guarantee: `move` is the first lock of a batch's transaction. It succeeds only if this worker still
holds the partition at the expected position. If two workers both believe that they hold it, one can
commit, and the other gets `PartitionLost`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from rules.lanes.arrival_gap import record_gaps
from rules.lanes.lane import LaneMessage, ended_gaps
from tocsin.core.db import Connection, statement
from tocsin.core.errors import TocsinError

PartitionKey = tuple[str, int]
"""The name of a lane and the number of its partition."""


class PartitionLost(TocsinError):
    """Another worker holds the partition: nothing of this batch may commit."""


class PartitionWaits(TocsinError):
    """The next messages cannot be processed now, and none of them is to blame."""


class PartitionPosition(NamedTuple):
    last_seq: int
    last_source_seq: int
    watermark: datetime | None
    incarnation: str | None
    """The creation time of the stream, as its server reports it.

    Another stream has other sequences.
    """
    last_stored_at: datetime | None = None
    """When the server stored the message at `last_seq`: another one has another time."""
    last_gap_at: datetime | None = None
    """The start of the newest arrival gap.

    The end of a gap is committed without a new `last_seq` if it is a canary. If the worker does not
    know whether it was, this shows it.
    """


class Partition:
    def __init__(
        self,
        key: PartitionKey,
        holder: str,
        ttl_s: float,
        position: PartitionPosition,
        *,
        was_lost: bool = False,
    ) -> None:
        self.key = key
        self.was_lost = was_lost
        """Whether the holder before did not release it: it may have died over a message."""
        self.position = position
        """As committed, except for the watermark: the caller of `move` sets it after the commit."""
        self._holder = holder
        self._ttl_s = ttl_s

    @property
    def number(self) -> int:
        return self.key[1]

    def drop_repeated(self, messages: Sequence[LaneMessage]) -> list[LaneMessage]:
        """Drop sourced messages that were read before their stream was rebuilt."""
        new: list[LaneMessage] = []
        last = self.position.last_source_seq
        for message in messages:
            if message.source_seq is not None:
                if message.source_seq <= last:
                    continue
                last = message.source_seq
            new.append(message)
        return new

    def read_until(self, at: datetime) -> datetime:
        """Raise the watermark behind messages without effects; the holder stores it later.

        Returns the watermark.
        """
        self.position = self.position._replace(watermark=at)
        return at

    async def move(
        self,
        connection: Connection,
        messages: Sequence[LaneMessage],
        watermark: datetime | None,
    ) -> PartitionPosition:
        """Move behind `messages`, and record the arrival gaps that they ended.

        Returns the position that holds when the transaction commits. Its sequence is never that of
        a canary: canaries expire, and the message at the position shows whether a stream lost its
        end. Canaries behind it are read again by another reader, without an effect.
        """
        before = self.position
        last = next((message for message in reversed(messages) if not message.is_canary), None)
        gaps = ended_gaps(messages)
        sourced = [message.source_seq for message in messages if message.source_seq is not None]
        after = before._replace(
            last_seq=last.seq if last is not None else before.last_seq,
            last_source_seq=max([before.last_source_seq, *sourced]),
            watermark=max(filter(None, (before.watermark, watermark)), default=None),
            last_stored_at=last.stored_at if last is not None else before.last_stored_at,
            last_gap_at=gaps[-1].began_at if gaps else before.last_gap_at,
        )
        await self._update(
            connection,
            statement("rules.lanes/move_position"),
            last_seq=after.last_seq,
            last_source_seq=after.last_source_seq,
            watermark=watermark,
            last_stored_at=after.last_stored_at,
            last_gap_at=after.last_gap_at,
            ttl_s=self._ttl_s,
        )
        if gaps:
            await record_gaps(connection, self.number, gaps)
        return after

    async def begin_incarnation(self, connection: Connection, last_seq: int, incarnation: str) -> None:
        """Continue behind `last_seq` of a stream that was created again."""
        await self._update(
            connection,
            statement("rules.lanes/begin_incarnation"),
            last_seq=last_seq,
            incarnation=incarnation,
        )
        self.position = self.position._replace(
            last_seq=last_seq, incarnation=incarnation, last_stored_at=None
        )

    async def _update(self, connection: Connection, query: bytes, **values: Any) -> None:
        lane, number = self.key
        expected = {
            "lane": lane,
            "partition": number,
            "holder": self._holder,
            "expected": self.position.last_seq,
            "expected_gap": self.position.last_gap_at,
        }
        if (await connection.execute(query, {**expected, **values})).rowcount == 0:
            raise PartitionLost(
                f"partition {number} of the {lane} lane is held by another worker: this one stops"
            )

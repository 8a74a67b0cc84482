"""Arrival gaps: intervals in which no message arrived in a partition of the data stream.

Guarantee: while a worker reads a partition and the data stream accepts messages, a message arrives
at least every second, because the worker sends canaries (`rules/lanes/canary.py`). A longer
interval without one therefore means that nothing could arrive, or that no worker was there to send
canaries. Producers may have been unable to publish, so this time does not count against a series
(`rules/alarms/staleness.py`).

A slow stream stores a message long after its producer published it, for example because its disk is
slow. The worker knows this from the late acknowledgements of its canaries. The intervals between the
messages of such a time are gaps too, so together they cover it.

A gap is found by the message that ended it. It is recorded in the
transaction that moves the position behind that message, so it is recorded once, and the watermark
never passes a gap that is not recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from tocsin.core.db import Connection, fetch_all, statement

SHORTEST_GAP = timedelta(seconds=2)
"""Several times the interval of canaries: a worker that is a little late makes no gap."""
SHORTEST_GAP_OF_A_SLOW_STREAM = timedelta(milliseconds=100)
"""Bounds the number of recorded gaps: at most ten per second and partition."""


class ArrivalGap(NamedTuple):
    began_at: datetime
    """The arrival of the last message before the gap."""
    ended_at: datetime
    """The arrival of the first message after it."""


async def record_gaps(connection: Connection, partition: int, gaps: Sequence[ArrivalGap]) -> None:
    await connection.execute(
        statement("rules.lanes/record_gaps"),
        {
            "partition": partition,
            "began_at": [gap.began_at for gap in gaps],
            "ended_at": [gap.ended_at for gap in gaps],
        },
    )


async def read_gaps(connection: Connection, partition: int, since: datetime) -> list[ArrivalGap]:
    """The gaps of a partition that began at `since` or later, in order."""
    parameters = {"partition": partition, "since": since}
    return [ArrivalGap(*row) for row in await fetch_all(connection, "rules.lanes/read_gaps", parameters)]

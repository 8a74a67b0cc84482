"""A stream is slow while canaries come and are not acknowledged in time."""

from __future__ import annotations

from datetime import datetime
from typing import cast

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from rules.lanes.arrival_gap import SHORTEST_GAP, SHORTEST_GAP_OF_A_SLOW_STREAM
from rules.lanes.batch_size import BatchSize
from rules.lanes.data_lane import DataLane
from rules.lanes.partition import Partition, PartitionPosition
from rules.lanes.reader import Reader
from rules.lanes.stream_pace import StreamPace
from tests.clock.clock_setup import T0
from tocsin.core.db import Connection
from tocsin.core.instant import microseconds_of
from tocsin.core.pull import Puller
from tocsin.core.settings import Settings


def key(number: int) -> tuple[str, int]:
    return "data", number


def late_pace(*numbers: int) -> StreamPace:
    """Late canaries of these partitions at second 100; one was read at second 99."""
    pace = StreamPace()
    pace.canary_read(99.0)
    for number in numbers:
        pace.canary_late(key(number), 100.0)
    return pace


@pytest.mark.parametrize(("now_s", "is_slow"), [(100.0, True), (109.9, True), (110.0, False)])
def test_a_partition_is_slow_for_a_while_after_a_late_canary(now_s: float, is_slow: bool) -> None:
    assert late_pace(0).is_slow(key(0), now_s) is is_slow


def test_a_partition_whose_canaries_do_not_come_is_not_slow() -> None:
    """The worker may lack the right to publish, and series must become stale then."""
    pace = StreamPace()
    pace.canary_late(key(0), 100.0)
    assert not pace.is_slow(key(0), 100.0)
    pace.canary_read(40.5)
    assert pace.is_slow(key(0), 100.0)
    assert not pace.is_slow(key(0), 100.5)


@pytest.mark.parametrize(
    ("late", "in_time", "is_slow"),
    [((0,), (), False), ((0, 1), (2, 3), False), ((0, 1, 2), (2, 4), True), ((0, 1), (), True)],
)
def test_all_partitions_are_slow_if_most_are(
    late: tuple[int, ...], in_time: tuple[int, ...], is_slow: bool
) -> None:
    pace = late_pace(*late)
    for number in in_time:
        pace.canary_in_time(key(number), 99.5)
    assert pace.is_slow(key(9), 100.0) is is_slow


class OneMessage:
    """A stand-in for a puller: one message, stored at T0."""

    async def next_batch(self, _: float) -> list[Msg]:
        reply = f"$JS.ACK.stream.consumer.1.7.1.{microseconds_of(T0)}000.0"
        return [Msg(cast(Client, None), "subject", reply, b"{}")]


@pytest.mark.parametrize(
    ("before", "is_slow", "is_gap"),
    [
        (T0 - SHORTEST_GAP, False, False),
        (T0 - SHORTEST_GAP, True, True),
        (T0 - SHORTEST_GAP_OF_A_SLOW_STREAM, True, False),
        (T0 - SHORTEST_GAP - SHORTEST_GAP_OF_A_SLOW_STREAM, False, True),
    ],
)
async def test_the_time_between_messages_of_a_slow_stream_is_a_gap(
    before: datetime, is_slow: bool, is_gap: bool
) -> None:
    partition = Partition(key(0), "holder", 10.0, PartitionPosition(0, 0, before, None))
    reader = Reader(cast(Client, None), DataLane(Settings()), partition, BatchSize())
    reader._puller = cast(Puller, OneMessage())
    (message,) = await reader.next_batch(cast(Connection, None), is_stream_slow=is_slow)
    assert (message.at, message.gap_began_at) == (T0, before if is_gap else None)

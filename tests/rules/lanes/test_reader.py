"""A partition is read in order and without gaps, also if the consumer, the stream or the server fails."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.client import JetStreamContext

from rules.lanes.arrival_gap import SHORTEST_GAP
from rules.lanes.batch_size import BatchSize
from rules.lanes.data_lane import DataLane
from rules.lanes.data_stream import canary_subject, data_stream_config, ensure_data_stream
from rules.lanes.lane import LaneMessage
from rules.lanes.lease import Leases
from rules.lanes.partition import Partition, PartitionLost
from rules.lanes.reader import Reader
from tests.cdc.published_records import smaller, with_long_timeouts
from tests.rules.lanes.lane_setup import jetstream
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection, connect
from tocsin.core.errors import Unreachable
from tocsin.core.instant import MICROSECOND
from tocsin.core.settings import Settings
from tocsin.embedded import Nats, embedded_nats


@pytest.fixture
def own_nats(tmp_path: Path) -> Iterator[Nats]:
    with embedded_nats(tmp_path) as started:
        yield started


@pytest.fixture
def there(settings: Settings, own_nats: Nats) -> Settings:
    """One partition, on a server of its own."""
    return smaller(with_long_timeouts(settings), nats=own_nats.url, data_partitions=1)


@pytest.fixture
async def connection(there: Settings) -> AsyncIterator[Connection]:
    opened = await connect(there, "test")
    yield opened
    await opened.close()


@pytest.fixture
async def bus(there: Settings) -> AsyncIterator[Client]:
    connected = await connect_bus(there, "test")
    yield connected
    await connected.close()


@pytest.fixture
def js(bus: Client) -> JetStreamContext:
    return bus.jetstream(timeout=10)


class Reading:
    """A reader and its partition: messages are committed as soon as they are read."""

    def __init__(self, connection: Connection, bus: Client, lane: DataLane, partition: Partition) -> None:
        self.connection = connection
        self.partition = partition
        self.batch_size = BatchSize()
        self.reader = Reader(bus, lane, partition, self.batch_size)

    async def next(self, count: int) -> list[LaneMessage]:
        read: list[LaneMessage] = []

        async def are_read() -> bool:
            messages = (
                await self.reader.next_batch(self.connection)
                if await self.reader.wait_for_message(self.connection, 0.05)
                else []
            )
            if messages:
                self.partition.position = await self.partition.move(
                    self.connection, messages, messages[-1].at
                )
            read.extend(messages)
            return len(read) >= count

        await eventually(are_read, f"{count} messages are read")
        return read

    async def bodies(self, count: int) -> list[bytes]:
        return [message.data for message in await self.next(count)]


@pytest.fixture
async def reading(there: Settings, connection: Connection, bus: Client, js: JetStreamContext) -> Reading:
    lane = DataLane(there)
    await lane.open(connection, js)
    leases = Leases(connection, 60.0)
    await leases.listen()
    partition = await leases.take(("data", 0))
    assert partition is not None
    return Reading(connection, bus, lane, partition)


async def put(js: JetStreamContext, there: Settings, *bodies: bytes) -> None:
    for body in bodies:
        await js.publish(f"{there.subjects}.datapoint.plant.temperature", body)


async def test_messages_come_in_order_with_the_time_of_their_arrival(
    reading: Reading, js: JetStreamContext, there: Settings
) -> None:
    await put(js, there, b"a", b"b", b"c")
    messages = await reading.next(3)
    assert [(message.seq, message.data) for message in messages] == [(1, b"a"), (2, b"b"), (3, b"c")]
    assert messages[0].subject == f"{there.subjects}.data.0.plant.temperature"
    stored = await js.get_msg(there.data_stream, 3)
    assert stored.time is not None
    assert abs(messages[2].at - stored.time) < timedelta(milliseconds=1)
    assert [message.source_seq for message in messages] == [None] * 3


async def test_a_reader_begins_behind_the_position(
    reading: Reading, js: JetStreamContext, there: Settings, bus: Client
) -> None:
    await put(js, there, b"a", b"b")
    await reading.next(2)
    await put(js, there, b"c")
    again = Reading(reading.connection, bus, DataLane(there), reading.partition)
    assert await again.bodies(1) == [b"c"]


async def test_a_deleted_consumer_is_created_again(
    reading: Reading, js: JetStreamContext, there: Settings
) -> None:
    await put(js, there, b"a")
    await reading.next(1)
    await js.delete_consumer(there.data_stream, reading.reader._consumer)
    await put(js, there, b"b")
    assert await reading.bodies(1) == [b"b"]


async def test_messages_lost_in_transit_are_read_again(
    reading: Reading, js: JetStreamContext, there: Settings
) -> None:
    await put(js, there, b"a")
    await reading.next(1)
    puller = reading.reader._puller
    assert puller is not None
    await put(js, there, b"b", b"c", b"d")

    async def have_arrived() -> bool:
        return len(puller._arrived) >= 3

    await puller._request_batch()
    await eventually(have_arrived, "three messages arrive")
    del puller._arrived[1]  # the connection died between the two
    assert await reading.bodies(3) == [b"b", b"c", b"d"]


async def test_a_lost_last_message_is_noticed_while_no_other_comes(
    reading: Reading, js: JetStreamContext, there: Settings
) -> None:
    await put(js, there, b"a")
    await reading.next(1)
    puller = reading.reader._puller
    assert puller is not None
    await put(js, there, b"b")

    async def has_arrived() -> bool:
        return len(puller._arrived) >= 1

    await puller._request_batch()
    await eventually(has_arrived, "it arrives")
    puller._arrived.clear()
    read: list[bytes] = []

    async def is_read() -> bool:
        assert not await reading.reader.check_consumer(), "not everything is read"
        if await reading.reader.wait_for_message(reading.connection, 0.02):
            read.extend(message.data for message in await reading.reader.next_batch(reading.connection))
        return bool(read)

    await eventually(is_read, "the lost message is read")
    assert read == [b"b"]


async def test_a_restart_of_nats_is_survived(
    reading: Reading, js: JetStreamContext, there: Settings, bus: Client, own_nats: Nats
) -> None:
    await put(js, there, b"a")
    await reading.next(1)
    own_nats.kill()
    own_nats.start()

    async def is_back() -> bool:
        return bus.is_connected and bus.stats["reconnects"] > 0

    await eventually(is_back, "the client reconnects")
    await put(js, there, b"b")
    assert await reading.bodies(1) == [b"b"]


async def test_a_missing_stream_is_an_error(reading: Reading, js: JetStreamContext, there: Settings) -> None:
    await put(js, there, b"a")
    await reading.next(1)
    await js.delete_stream(there.data_stream)
    with pytest.raises(Unreachable, match=r"cannot be read \(stream not found\)"):
        await reading.next(1)


@pytest.mark.parametrize("by", ["us", "an operator", "an operator, with more messages than before"])
async def test_a_stream_that_is_created_again_is_read_from_its_beginning(
    reading: Reading, js: JetStreamContext, there: Settings, by: str
) -> None:
    """Its sequences are those of other messages, even if they are greater than the position."""
    await put(js, there, b"a", b"b", b"c")
    await reading.next(3)
    await js.delete_stream(there.data_stream)
    if by == "us":
        await ensure_data_stream(js, there, reading.partition.position.last_seq + 1)
    else:
        await js.add_stream(data_stream_config(there))
    bodies = [b"d", b"e"] if "more" not in by else [b"%d" % number for number in range(5)]
    await put(js, there, *bodies)
    assert await reading.bodies(len(bodies)) == bodies
    await put(js, there, b"f")
    assert await reading.bodies(1) == [b"f"]


async def test_a_stream_that_lost_its_end_is_read_by_the_time_of_arrival(
    reading: Reading, js: JetStreamContext, there: Settings, bus: Client
) -> None:
    """A power failure can lose acknowledged messages; new messages then reuse the sequences."""
    await put(js, there, b"a", b"b")
    await reading.next(2)
    ahead = reading.partition.position._replace(last_seq=9)
    await reading.connection.execute("update tocsin.lane_partition set last_seq = 9")
    reading.partition.position = ahead
    await put(js, there, b"c")
    again = Reading(reading.connection, bus, DataLane(there), reading.partition)
    assert await again.bodies(1) == [b"c"]
    assert reading.partition.position.last_seq == 3


async def test_a_stream_that_lost_its_end_and_grew_past_the_position_is_read_by_the_time_of_arrival(
    reading: Reading, there: Settings, bus: Client, own_nats: Nats, tmp_path: Path
) -> None:
    """Producers were faster than the worker: the sequences behind the position are those of newer messages."""
    js = bus.jetstream(timeout=10)
    await put(js, there, b"a", b"b")
    own_nats.stop()
    shutil.copytree(tmp_path / "nats", tmp_path / "backup")
    own_nats.start()
    await put_when_connected(there, b"c", b"d", b"e")
    await reading.next(5)
    await reading.reader.close()
    own_nats.stop()
    shutil.rmtree(tmp_path / "nats")
    shutil.move(tmp_path / "backup", tmp_path / "nats")
    own_nats.start()
    newer = [b"%d" % number for number in range(6)]
    await put_when_connected(there, *newer)
    again = Reading(reading.connection, bus, DataLane(there), reading.partition)
    assert await again.bodies(len(newer)) == newer
    assert reading.partition.position.last_seq == 8
    await put_when_connected(there, b"last")
    later = Reading(reading.connection, bus, DataLane(there), reading.partition)
    assert await later.bodies(1) == [b"last"]


async def test_a_reader_continues_at_its_position_if_the_last_message_has_expired(
    reading: Reading, js: JetStreamContext, there: Settings, bus: Client
) -> None:
    await put(js, there, b"a", b"b", b"c")
    await reading.next(3)
    await js.purge_stream(there.data_stream, seq=4)
    await put(js, there, b"d")
    again = Reading(reading.connection, bus, DataLane(there), reading.partition)
    assert await again.bodies(1) == [b"d"]


async def put_when_connected(there: Settings, *bodies: bytes) -> None:
    async with jetstream(there) as js:
        await put(js, there, *bodies)


async def test_arrivals_never_decrease_even_if_the_clock_of_the_server_does(
    reading: Reading, js: JetStreamContext, there: Settings, bus: Client
) -> None:
    await put(js, there, b"a")
    (first,) = await reading.next(1)
    future = first.at + timedelta(hours=1)
    reading.partition.position = reading.partition.position._replace(watermark=future)
    await put(js, there, b"b", b"c")
    later = await reading.next(2)
    arrivals = [message.at for message in later]
    assert future < arrivals[0] <= arrivals[1] <= future + timedelta(microseconds=2), "in one batch or in two"


async def test_a_message_that_ends_a_gap_carries_its_start(
    reading: Reading, js: JetStreamContext, there: Settings, bus: Client
) -> None:
    await put(js, there, b"a")
    (a,) = await reading.next(1)
    assert a.gap_began_at is None, "nothing was read before the first message"
    long_ago = a.at - timedelta(minutes=5)
    reading.partition.position = reading.partition.position._replace(watermark=long_ago)
    again = Reading(reading.connection, bus, DataLane(there), reading.partition)
    await put(js, there, b"b", b"c")
    b, c = await again.next(2)
    assert [b.gap_began_at, c.gap_began_at] == [long_ago, None]
    rows = await all_rows(reading.connection, "select partition, began_at, ended_at from tocsin.arrival_gap")
    assert [tuple(row.values()) for row in rows] == [(0, long_ago, b.at)]


async def test_the_position_is_never_that_of_a_canary(
    reading: Reading, js: JetStreamContext, there: Settings, bus: Client
) -> None:
    """The server deletes canaries, and a message that is missing there means that the stream lost its end."""
    await put(js, there, b"a")
    await js.publish(canary_subject(there, 0))
    _, canary = await reading.next(2)
    position = reading.partition.position
    assert (position.last_seq, position.watermark) == (1, canary.at)
    await put(js, there, b"b")
    assert await Reading(reading.connection, bus, DataLane(there), reading.partition).bodies(2) == [b"", b"b"]


async def test_the_end_of_a_gap_is_not_committed_twice_by_a_worker_that_does_not_know_of_its_commit(
    reading: Reading, js: JetStreamContext, there: Settings, bus: Client
) -> None:
    await put(js, there, b"a")
    (a,) = await reading.next(1)
    before = reading.partition.position._replace(watermark=a.at - timedelta(minutes=5))
    reading.partition.position = before
    await js.publish(canary_subject(there, 0))
    await Reading(reading.connection, bus, DataLane(there), reading.partition).next(1)
    reading.partition.position = before
    with pytest.raises(PartitionLost):
        await Reading(reading.connection, bus, DataLane(there), reading.partition).next(1)


async def test_canaries_that_expired_are_not_a_gap_for_a_new_reader(
    reading: Reading, js: JetStreamContext, there: Settings, bus: Client
) -> None:
    """A partition that waited out an error has a new reader; its position is that of the last datapoint."""
    await put(js, there, b"a")
    (a,) = await reading.next(1)
    reading.partition.position = reading.partition.position._replace(watermark=a.at - timedelta(hours=1))
    reading.partition.read_until(a.at)
    again = Reading(reading.connection, bus, DataLane(there), reading.partition)
    await put(js, there, b"b")
    assert [message.gap_began_at for message in await again.next(1)] == [None]


async def test_a_gap_is_longer_than_two_seconds(
    reading: Reading, js: JetStreamContext, there: Settings, bus: Client
) -> None:
    await put(js, there, b"a")
    (a,) = await reading.next(1)
    before = Reader(bus, DataLane(there), reading.partition, BatchSize())._with_gap
    assert before(a._replace(at=a.at + SHORTEST_GAP)).gap_began_at is None
    assert before(a._replace(at=a.at + 2 * SHORTEST_GAP + MICROSECOND)).gap_began_at == a.at + SHORTEST_GAP


async def test_a_consumer_that_vanished_is_made_again(
    reading: Reading, js: JetStreamContext, there: Settings
) -> None:
    """As on a cluster, where it dies with its node and the connection stays."""
    await put(js, there, b"a")
    await reading.next(1)
    await js.delete_consumer(there.data_stream, reading.reader._consumer)
    assert not await reading.reader.check_consumer()
    assert reading.reader._puller is None
    await put(js, there, b"b")
    assert await reading.bodies(1) == [b"b"]


async def test_a_batch_is_bounded_by_its_bytes(
    reading: Reading, js: JetStreamContext, there: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rules.lanes.reader._MESSAGE_BYTES", 0)
    reading.batch_size.max_bytes = 10
    await put(js, there, b"1234567", b"1234", b"12345678901234", b"1", b"2")
    sizes = []

    async def all_read() -> bool:
        if await reading.reader.wait_for_message(reading.connection, 0.05):
            sizes.append(
                [len(message.data) for message in await reading.reader.next_batch(reading.connection)]
            )
        return sum(map(len, sizes)) == 5

    await eventually(all_read, "all are read")
    assert all(sum(batch) <= 10 or len(batch) == 1 for batch in sizes)

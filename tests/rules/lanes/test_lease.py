"""A partition has one holder. A holder that does not renew its lease loses it, and cannot commit afterwards."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rules.lanes.lane import LaneMessage
from rules.lanes.lease import Leases
from rules.lanes.partition import PartitionLost
from tests.rules.lanes.lane_setup import partitions
from tests.sessions import Sessions
from tocsin.core.db import Connection

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
KEY = ("data", 0)


def message(seq: int, at: datetime = T0) -> LaneMessage:
    return LaneMessage(seq, at, "s", b"")


@pytest.fixture(autouse=True)
async def lane(connection: Connection) -> None:
    await connection.execute(
        "insert into tocsin.lane_partition (lane, partition) select 'data', n from generate_series(0, 3) n"
    )


async def new_leases(sessions: Sessions, name: str, ttl_s: float = 60.0) -> Leases:
    leases = Leases(await sessions(name), ttl_s)
    await leases.listen()
    await leases.renew({})
    return leases


async def test_a_partition_is_taken_by_one(sessions: Sessions) -> None:
    first, second = await new_leases(sessions, "one"), await new_leases(sessions, "other")
    assert await first.take(KEY) is not None
    assert await second.take(KEY) is None
    assert await first.take(KEY) is None


async def test_one_of_many_concurrent_workers_takes_it(sessions: Sessions) -> None:
    many = [await new_leases(sessions, str(number)) for number in range(6)]
    taken = await asyncio.gather(*(each.take(KEY) for each in many))
    assert len([partition for partition in taken if partition is not None]) == 1


async def test_a_holder_whose_lease_ended_is_replaced_and_then_rejected(
    sessions: Sessions, connection: Connection
) -> None:
    frozen, quick = await new_leases(sessions, "frozen"), await new_leases(sessions, "quick")
    old = await frozen.take(KEY)
    assert old is not None
    await connection.execute("update tocsin.lane_partition set held_until = tocsin.instant()")
    new = await quick.take(KEY)
    assert new is not None
    session = await sessions("batch")
    new.position = await new.move(session, [message(5)], T0)
    with pytest.raises(PartitionLost, match="partition 0 of the data lane is held by another worker"):
        await old.move(session, [message(5)], T0)
    await frozen.renew({})
    assert frozen.held == set()


async def test_a_worker_that_lost_it_and_has_it_again_is_rejected_at_its_old_position(
    sessions: Sessions, connection: Connection
) -> None:
    """The position is part of the check: an old batch of the same worker must not commit either."""
    worker = await new_leases(sessions, "worker")
    old = await worker.take(KEY)
    assert old is not None
    await worker.release([KEY])
    new = await worker.take(KEY)
    assert new is not None
    new.position = await new.move(connection, [message(5)], T0)
    with pytest.raises(PartitionLost):
        await old.move(connection, [message(5)], T0)
    assert (await partitions(connection))[0]["last_seq"] == 5


async def test_a_batch_that_was_rolled_back_leaves_the_position(
    sessions: Sessions, connection: Connection
) -> None:
    partition = await (await new_leases(sessions, "worker")).take(KEY)
    assert partition is not None
    async with connection.transaction(force_rollback=True):
        await partition.move(connection, [message(5)], T0)
    partition.position = await partition.move(connection, [message(3), message(6)], T0)
    assert partition.position.last_seq == 6


async def test_the_watermark_never_decreases(sessions: Sessions, connection: Connection) -> None:
    worker = await new_leases(sessions, "worker")
    partition = await worker.take(KEY)
    assert partition is not None
    later = T0 + timedelta(seconds=1)
    await worker.renew({KEY: later})
    partition.position = await partition.move(connection, [message(1)], T0)
    assert (await partitions(connection))[0]["watermark"] == later
    await worker.renew({KEY: T0})
    assert (await partitions(connection))[0]["watermark"] == later
    await worker.renew({KEY: later + timedelta(seconds=1), ("data", 1): later})
    rows = await partitions(connection)
    assert rows[0]["watermark"] == later + timedelta(seconds=1)
    assert rows[1]["watermark"] is None, "not ours to say"


async def test_a_renewal_does_not_wait_for_a_batch(sessions: Sessions) -> None:
    worker = await new_leases(sessions, "worker")
    partition = await worker.take(KEY)
    assert partition is not None
    session = await sessions("batch")
    async with session.transaction():
        await partition.move(session, [message(1)], T0)
        await worker.renew({KEY: T0})
        assert worker.held == {KEY}


async def test_a_locked_partition_is_not_waited_for(sessions: Sessions, connection: Connection) -> None:
    frozen, quick = await new_leases(sessions, "frozen"), await new_leases(sessions, "quick")
    partition = await frozen.take(KEY)
    assert partition is not None
    await connection.execute("update tocsin.lane_partition set held_until = tocsin.instant()")
    session = await sessions("batch")
    async with session.transaction():
        await session.execute("select from tocsin.lane_partition where partition = 0 for update")
        assert await quick.take(KEY) is None


async def test_a_release_wakes_the_other_workers(
    sessions: Sessions, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rules.lanes.lease._RENEWAL_S", 3600.0)
    first = await new_leases(sessions, "one", ttl_s=3600.0)
    assert await first.take(KEY) is not None
    second = await new_leases(sessions, "other", ttl_s=3600.0)
    waiting = asyncio.create_task(second.wait())
    await first.leave()
    await asyncio.wait_for(waiting, 30)
    assert await second.take(KEY) is not None


async def test_a_worker_that_is_cancelled_while_it_takes_a_partition_releases_that_too(
    sessions: Sessions, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres has committed the take, and the worker was cancelled before it read the answer."""
    first = await new_leases(sessions, "one")
    session = first._connection
    execute = session.execute

    async def execute_and_be_cancelled(query: bytes, parameters: Any = None) -> None:
        await execute(query, parameters)
        raise asyncio.CancelledError

    with monkeypatch.context() as cancelling:
        cancelling.setattr(session, "execute", execute_and_be_cancelled)
        with pytest.raises(asyncio.CancelledError):
            await first.take(KEY)
    assert (await partitions(connection))[0]["holder"] == first.holder
    await first.leave()
    assert [row["holder"] for row in await partitions(connection)] == [None] * 4


async def test_a_worker_that_left_is_not_counted(sessions: Sessions) -> None:
    first, second = await new_leases(sessions, "one"), await new_leases(sessions, "other")
    assert len((await first.renew({})).take) == 2
    await second.leave()
    assert len((await first.renew({})).take) == 4


async def test_a_worker_that_died_is_counted_until_its_lease_ends(
    sessions: Sessions, connection: Connection
) -> None:
    first, dead = await new_leases(sessions, "one"), await new_leases(sessions, "dead")
    assert len((await first.renew({})).take) == 2
    await connection.execute(
        "update tocsin.lane_worker set seen_until = tocsin.instant() where holder = %s", (dead.holder,)
    )
    assert len((await first.renew({})).take) == 4
    await connection.execute(
        "update tocsin.lane_worker set seen_until = tocsin.instant() - interval '2 minutes' where holder = %s",
        (dead.holder,),
    )
    await first.renew({})
    await first.renew({})
    cursor = await connection.execute("select holder from tocsin.lane_worker")
    assert await cursor.fetchall() == [(first.holder,)]

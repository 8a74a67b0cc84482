"""The inbox alone: a record is claimed once, also at the moment when its row is deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg import AsyncConnection

from tests.client.service import make_service
from tests.sql import all_rows, blocked
from tests.wait import eventually
from tocsin.client import Delivery, Inbox
from tocsin.client._mark_store import ConsumerContext, Mark
from tocsin.client.inbox import OpenInbox
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


@pytest.fixture
async def inbox(settings: Settings, ledger: Connection) -> AsyncIterator[OpenInbox]:
    bus = await connect_bus(settings, "test")
    context = ConsumerContext(bus, "tocsin", "billing", 1, Delivery(concurrency=3))
    async with Inbox(settings.postgres).open(context) as opened:
        await opened.begin(Mark(0))
        yield opened
    await bus.close()


class Work:
    def __init__(self) -> None:
        self.done = 0

    async def __call__(self, connection: Any) -> None:
        assert connection is not None
        self.done += 1


async def test_a_record_is_claimed_once(inbox: OpenInbox) -> None:
    work = Work()
    assert [await inbox.once(Mark(7), work) for _ in range(3)] == [True, False, False]
    assert work.done == 1


async def test_a_record_before_the_mark_is_handled_although_its_row_is_deleted(
    inbox: OpenInbox, ledger: Connection
) -> None:
    work = Work()
    await inbox.once(Mark(3), work)
    assert await inbox.raise_mark(0, Mark(5), 1) is True
    assert await all_rows(ledger, "select from tocsin_inbox_ahead") == []
    assert [await inbox.once(Mark(seq), work) for seq in (3, 5, 6)] == [False, False, True]
    assert work.done == 2
    assert await all_rows(ledger, "select seq from tocsin_inbox_ahead") == [{"seq": 6}]


async def test_the_mark_never_moves_back(inbox: OpenInbox) -> None:
    assert await inbox.raise_mark(0, Mark(5), 0) is True
    assert await inbox.raise_mark(0, Mark(4), 0) is False
    assert await inbox.mark() == Mark(5)
    assert await inbox.begin(Mark(1)) == Mark(5)


async def test_the_mark_stays_if_the_records_before_it_are_lost(inbox: OpenInbox, ledger: Connection) -> None:
    """A failover between the comparison and the update."""
    work = Work()
    for seq in (1, 2, 4):
        await inbox.once(Mark(seq), work)
    assert await inbox.handled_beyond(0, 4, 10) == [1, 2, 4]
    assert await inbox.handled_beyond(1, 3, 10) == [2]
    assert await inbox.handled_beyond(0, 4, 2) == [1, 2]
    await ledger.execute("delete from tocsin_inbox_ahead where seq = 2")
    assert await inbox.raise_mark(0, Mark(4), 3) is False
    assert await inbox.mark() == Mark(0)
    assert await inbox.raise_mark(0, Mark(2), 1) is True


async def test_a_claim_during_the_deletion_of_its_row_sees_the_mark(
    settings: Settings, inbox: OpenInbox, ledger: Connection
) -> None:
    """The deletion and the new mark are not committed: the second delivery waits and is skipped."""
    work = Work()
    await inbox.once(Mark(3), work)
    tidying: Connection = await AsyncConnection.connect(settings.postgres)
    await tidying.execute("update tocsin_inbox set last_seq = 5")
    await tidying.execute("delete from tocsin_inbox_ahead")
    second = asyncio.create_task(inbox.once(Mark(3), work))

    async def waits_or_is_done() -> bool:
        rows = await all_rows(
            ledger,
            "select from pg_stat_activity where %s = any(pg_blocking_pids(pid))",
            (tidying.info.backend_pid,),
        )
        return bool(rows) or second.done()

    await eventually(waits_or_is_done, "the second delivery meets the tidying")
    await tidying.commit()
    await tidying.close()
    assert await second is False
    assert work.done == 1


async def test_raising_the_mark_does_not_wait_for_a_running_handler(
    inbox: OpenInbox, ledger: Connection
) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    async def slow(_: Any) -> None:
        began.set()
        await go_on.wait()

    task = asyncio.create_task(inbox.once(Mark(9), slow))
    await began.wait()
    async with asyncio.timeout(10):
        assert await inbox.raise_mark(0, Mark(8), 0) is True
    go_on.set()
    assert await task is True
    assert await all_rows(ledger, "select seq from tocsin_inbox_ahead") == [{"seq": 9}]


async def test_a_deadlock_is_retried(settings: Settings, inbox: OpenInbox, ledger: Connection) -> None:
    await ledger.execute("create table account as select n from generate_series(1, 2) n")
    rival: Connection = await AsyncConnection.connect(settings.postgres)
    await rival.execute("set deadlock_timeout = '10min'")
    await rival.execute("update account set n = n where n = 2")
    crossing: list[asyncio.Task[Any]] = []

    async def rival_waits() -> bool:
        return await blocked(ledger, rival)

    async def work(connection: Connection) -> None:
        if crossing:  # the second time, after the rival has committed
            await crossing[0]
            await rival.rollback()
        await connection.execute("update account set n = n where n = 1")
        if not crossing:
            crossing.append(asyncio.create_task(rival.execute("update account set n = n where n = 1")))
            await eventually(rival_waits, "the rival waits")
        await connection.execute("update account set n = n where n = 2")

    assert await inbox.once(Mark(1), work) is True
    assert len(crossing) == 1
    await rival.close()


async def test_creating_the_inbox_twice_changes_nothing(ledger: Connection) -> None:
    await ledger.execute("insert into tocsin_inbox values ('tocsin', 'billing', 7)")
    await ledger.execute("drop table effect")
    await make_service(ledger)
    assert await all_rows(ledger, "select last_seq from tocsin_inbox") == [{"last_seq": 7}]

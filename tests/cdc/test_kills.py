"""Publishers killed without warning while others write: 0 lost, 0 duplicated, 0 out of order, bodies equal."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from asyncio.subprocess import Process

import pytest
from nats.js.errors import NotFoundError

from cdc.publisher import Publisher
from tests.cdc.published_records import published, smaller, write
from tests.cdc.publishers import kill, start
from tests.clock.clock_setup import T0
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

KILLS = 5


async def wait_for_lines(process: Process, count: int) -> None:
    assert process.stdout is not None
    for _ in range(count):
        async with asyncio.timeout(60):
            assert await process.stdout.readline(), "the publisher ended by itself"


@pytest.mark.parametrize("seed", [20260302])
async def test_two_publishers_that_are_killed_repeatedly_lose_and_duplicate_nothing(
    settings: Settings, connection: Connection, seed: int
) -> None:
    print(f"seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    small = smaller(settings, cdc_chunk=5, cdc_in_flight=20)
    enough = asyncio.Event()
    writers = [asyncio.create_task(write(settings, seed + n, 1500, enough)) for n in range(2)]
    publishers = list(await asyncio.gather(start(small), start(small)))
    try:
        for _ in range(KILLS):
            victim = chance.randrange(2)
            # The positions it prints prove that it is at work; the kill comes in the middle of it.
            await wait_for_lines(publishers[victim], chance.randint(1, 60))
            await kill(publishers[victim])
            publishers[victim] = await start(small)
        enough.set()
        committed = sum(await asyncio.gather(*writers))
        assert len(await published(settings, connection)) == committed
    finally:
        enough.set()
        for process in publishers:
            await kill(process)
        await asyncio.gather(*writers, return_exceptions=True)


async def test_a_publisher_whose_database_session_hangs_is_replaced(
    short_lease: Settings, connection: Connection
) -> None:
    """Its process runs and NATS answers it, so its lease would be renewed forever."""
    first, second = Service("cdc", Publisher(short_lease).run), Service("cdc", Publisher(short_lease).run)
    backend = 0
    async with running(first):
        try:
            await append_events(connection, [NewEvent(T0, "caused", "before")])
            await eventually(lambda: is_published(short_lease, 1), "the first one publishes")
            (row,) = await all_rows(
                connection,
                "select pid from pg_stat_activity"
                " where application_name = 'tocsin cdc' and datname = current_database()",
            )
            backend = row["pid"]
            os.kill(backend, signal.SIGSTOP)
            async with running(second):
                await append_events(connection, [NewEvent(T0, "caused", "after")])
                await eventually(lambda: is_published(short_lease, 2), "the second one publishes", within=60)
        finally:
            if backend:
                os.kill(backend, signal.SIGCONT)


async def is_published(settings: Settings, seq: int) -> bool:
    async with open_bus(settings, "test") as bus:
        try:
            return (await bus.jetstream().stream_info(settings.namespace)).state.last_seq >= seq
        except NotFoundError:
            return False

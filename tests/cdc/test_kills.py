"""Publishers killed without warning while others write: 0 lost, 0 duplicated, 0 out of order, bodies equal."""

from __future__ import annotations

import asyncio
import random
from asyncio.subprocess import Process

import pytest

from tests.cdc.published_records import published, smaller, write
from tests.cdc.publishers import kill, start
from tocsin.core.db import Connection
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

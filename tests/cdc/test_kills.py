"""Publishers killed without warning while others write: 0 lost, 0 duplicated, 0 out of order, bodies equal."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from asyncio.subprocess import PIPE, Process

import pytest

from tests.cdc.publishing import published, smaller, write
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

KILLS = 5


def environment(settings: Settings) -> dict[str, str]:
    given = settings.model_dump(include={"postgres", "nats", "namespace", "cdc_chunk", "cdc_in_flight"})
    return {**os.environ, **{f"TOCSIN_{name.upper()}": str(value) for name, value in given.items()}}


async def start(settings: Settings) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.cdc.publisher_process", env=environment(settings), stdout=PIPE
    )


async def wait_for_lines(process: Process, count: int) -> None:
    assert process.stdout is not None
    for _ in range(count):
        async with asyncio.timeout(60):
            assert await process.stdout.readline(), "the publisher ended by itself"


async def kill(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


@pytest.mark.parametrize("seed", [20260302])
async def test_two_publishers_killed_again_and_again_lose_and_double_nothing(
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

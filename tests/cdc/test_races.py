"""Two publishers at once, and publishers cut off at any point: nothing is lost, duplicated or out of order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest

from cdc.chain import ChainBroken
from cdc.stream import ensure_stream
from tests.cdc.published_records import Live, append, last_sequence, live, published, smaller, write
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


async def has(settings: Settings, seq: int) -> bool:
    return await last_sequence(settings) == seq


async def test_a_second_publisher_is_refused_and_resumes_behind_the_first(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 10)
    async with live(settings) as first, live(smaller(settings, cdc_chunk=5)) as second:
        assert await first.step()
        await eventually(lambda: has(settings, 10), "the first was quicker")
        assert await second.step()
        assert await second.step()
        await first.drain()
        with pytest.raises(ChainBroken, match="wrong last sequence: 10"):
            await second.step()
        await second.resume()
        assert second.publisher.position == 10
        # The chain is dropped with the other chunks in flight.
        assert not await second.step()
    await published(settings, connection)


async def test_publishers_that_take_turns_break_each_others_chain_and_lose_nothing(
    settings: Settings, connection: Connection
) -> None:
    small = smaller(settings, cdc_chunk=3, cdc_in_flight=9)
    async with live(small) as first, live(small) as second:
        for turn in range(30):
            await append(connection, 2)
            publisher = (first, second)[turn % 2]
            try:
                await publisher.step()
            except ChainBroken:
                publisher.broken += 1
                await publisher.resume()
        await first.drain()
        await second.drain()
        assert first.broken + second.broken > 0
    await published(settings, connection)


async def test_two_publishers_at_once_need_no_election(settings: Settings, connection: Connection) -> None:
    small = smaller(settings, cdc_chunk=7, cdc_in_flight=50)
    written = asyncio.Event()

    async def publish(publisher: Live) -> None:
        while not written.is_set():
            await publisher.drain()
        await publisher.drain()

    async with live(small) as first, live(small) as second:
        publishing = asyncio.gather(publish(first), publish(second))
        committed = await asyncio.gather(*(write(settings, seed, 100) for seed in (10, 11)))
        written.set()
        await publishing
    assert len(await published(settings, connection)) == sum(committed)


async def cut_off(work: Coroutine[Any, Any, None], passes: int) -> bool:
    """Cancel the work after so many passes of the event loop; true if it was not done by then."""
    task = asyncio.create_task(work)
    loop = asyncio.get_running_loop()

    def count_down(left: int) -> None:
        if left == 0:
            task.cancel()
        elif not task.done():
            loop.call_soon(count_down, left - 1)

    count_down(passes)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
    return task.cancelled()


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_the_next_publisher_continues_after_one_that_was_cancelled_anywhere(
    settings: Settings, connection: Connection, seed: int
) -> None:
    chance = random.Random(seed)
    small = smaller(settings, cdc_chunk=5, cdc_in_flight=20)
    cut = 0
    for _ in range(25):
        await append(connection, chance.randint(0, 12) or 1)
        async with live(small) as publisher:
            cut += await cut_off(publisher.drain(), chance.randint(1, 150))
    assert cut > 0
    async with live(small) as publisher:
        await publisher.drain()
    await published(settings, connection)


async def test_a_publisher_that_resumes_beside_another_reports_no_difference(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with live(settings) as first, live(settings) as second:

        async def look_late(*arguments: Any) -> tuple[int, int]:
            # Between two reads of the publisher that resumes, the other one publishes a new commit.
            await append(connection, 1)
            await first.drain()
            return await ensure_stream(*arguments)

        monkeypatch.setattr("cdc.publisher.ensure_stream", look_late)
        await second.resume()
        assert second.publisher.position == 1
    await published(settings, connection)

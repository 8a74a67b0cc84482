"""A reader of the stream misses nothing and repeats nothing when its connection dies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from urllib.parse import urlsplit

import nats
import pytest

from tests.client.service import publish
from tests.cutting_proxy import CuttingProxy, cutting_proxy
from tests.ports import at_port
from tests.wait import eventually
from tocsin.client import Events, replay
from tocsin.client._follow import follow
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


@pytest.fixture
async def proxy(settings: Settings) -> AsyncIterator[CuttingProxy]:
    address = urlsplit(settings.nats)
    async with cutting_proxy(str(address.hostname), address.port or 4222) as opened:
        yield opened


def through(proxy: CuttingProxy, settings: Settings) -> Settings:
    return settings.model_copy(update={"nats": at_port(settings.nats, proxy.port)})


async def until_sent(settings: Settings, count: int) -> None:
    """Wait until the server has written message number `count` to the connection of the reader."""
    bus = await nats.connect(settings.nats)
    js = bus.jetstream()

    async def is_sent() -> bool:
        return any(
            info.delivered is not None and info.delivered.consumer_seq >= count
            for info in await js.consumers_info(settings.stream)
        )

    try:
        await eventually(is_sent, f"message {count} is on the wire")
    finally:
        await bus.close()


@pytest.mark.parametrize("has_later_records", [True, False])
async def test_records_that_were_on_a_connection_that_died_are_read_again(
    settings: Settings, ledger: Connection, proxy: CuttingProxy, has_later_records: bool
) -> None:
    """Without later records nothing but the count of the server shows that some are missing."""
    await publish(settings, ledger, 5)
    last = 10 if has_later_records else 6
    read: list[int] = []
    events = replay(Events(namespace=settings.namespace), follow=True, nats=through(proxy, settings).nats)
    async with aclosing(events), asyncio.timeout(60):
        async for event in events:
            read.append(event.seq)
            if event.seq == 5:
                proxy.lose_answers()
                losing = asyncio.create_task(_lose(settings, ledger, proxy, has_later_records))
            if event.seq == last:
                break
        await losing
    assert read == list(range(1, last + 1))


async def _lose(settings: Settings, ledger: Connection, proxy: CuttingProxy, has_later_records: bool) -> None:
    await publish(settings, ledger, 1)
    await until_sent(settings, 6)
    proxy.cut()
    if has_later_records:
        await publish(settings, ledger, 4)


async def test_a_backlog_is_read_completely_although_connections_die_in_the_middle_of_it(
    settings: Settings, ledger: Connection, proxy: CuttingProxy
) -> None:
    """Some messages of a request arrive, and the others are lost. Later requests hide the gap."""
    await publish(settings, ledger, 1000)
    bus = await connect_bus(through(proxy, settings), "test")
    read: list[int] = []
    try:
        async with aclosing(follow(bus, settings.stream, 0)) as messages, asyncio.timeout(60):
            async for message in messages:
                read.append(message.metadata.sequence.stream)
                if read[-1] in (1, 400):
                    proxy.cut_after(30_000)
                if read[-1] == 1000:
                    break
    finally:
        await bus.close()
    assert read == list(range(1, 1001))

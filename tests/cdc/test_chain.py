"""The acknowledgement of its last message, with the expected sequence, proves that a chunk is stored."""

from __future__ import annotations

import asyncio

import pytest
from nats.aio.msg import Msg

from cdc.chain import ChainBroken, SentChunk
from tests.cdc.published_records import append, live, published
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


async def test_an_acknowledgement_with_another_sequence_breaks_the_chain(settings: Settings) -> None:
    async with live(settings) as publisher:
        acknowledged: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        acknowledged.set_result(4)
        with pytest.raises(ChainBroken, match="record 3 was stored as 4: another process"):
            await publisher.chain.confirm(SentChunk("1", 3, 3, 100, acknowledged), 20)


async def test_a_late_answer_to_a_chunk_that_was_given_up_is_ignored(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 3)
    async with live(settings) as publisher:
        records = await publisher.reader.read(0, 3)
        given_up = await publisher.chain.send(records)
        publisher.chain.forget(given_up)
        again = await publisher.chain.send(records)
        late = Msg(_client=publisher.bus, subject=f"inbox.{given_up.token}.last", data=b'{"seq": 999}')
        await publisher.chain._acknowledge(late)
        with pytest.raises(ChainBroken, match="wrong last sequence"):
            await publisher.chain.confirm(again, 20)
        assert publisher.chain._waiting == {}
        await publisher.resume()
        assert publisher.publisher.position == 3
    await published(settings, connection)


async def test_an_answer_that_does_not_come_breaks_the_chain(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 1)
    async with live(settings) as publisher:
        sent = await publisher.chain.send(await publisher.reader.read(0, 1))
        publisher.chain._waiting.clear()
        with pytest.raises(ChainBroken, match=r"no acknowledgement of record 1 within 0\.05 s"):
            await publisher.chain.confirm(sent, 0.05)


async def test_a_missing_stream_breaks_the_chain(settings: Settings, connection: Connection) -> None:
    await append(connection, 1)
    async with live(settings) as publisher:
        await publisher.js.delete_stream(settings.stream)
        sent = await publisher.chain.send(await publisher.reader.read(0, 1))
        with pytest.raises(ChainBroken, match="no stream takes"):
            await publisher.chain.confirm(sent, 20)

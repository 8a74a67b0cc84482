"""A link forwards in order, and holds, resets or delays what passes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.faults.chaos.link import Link
from tests.wait import eventually


@asynccontextmanager
async def echo_link() -> AsyncIterator[Link]:
    """A link to a server that sends back what it gets."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    link = Link(lambda: asyncio.open_connection("127.0.0.1", port))
    await link.open()
    try:
        yield link
    finally:
        await link.close()
        server.close()


async def connect(link: Link) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", link.port)


async def test_a_healthy_link_forwards_both_ways() -> None:
    async with echo_link() as link:
        reader, writer = await connect(link)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.close()
        assert link.counts.connected == 1


async def test_a_cut_link_resets_its_connections_and_rejects_new_ones_until_it_is_healed() -> None:
    async with echo_link() as link:
        reader, writer = await connect(link)
        writer.write(b"hello")
        await reader.readexactly(5)
        await link.cut()
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        rejected, _ = await connect(link)
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await rejected.readexactly(1)
        assert (link.counts.cut, link.counts.rejected) == (1, 1)
        await link.heal()
        reader, writer = await connect(link)
        writer.write(b"again")
        assert await reader.readexactly(5) == b"again"
        writer.close()


async def test_a_stalled_link_holds_bytes_and_delivers_them_in_order_when_it_is_healed() -> None:
    async with echo_link() as link:
        reader, writer = await connect(link)
        await link.stall()
        writer.write(b"one ")

        async def is_held() -> bool:
            return link.counts.held == 1

        await eventually(is_held, "the bytes are held")
        writer.write(b"two ")
        await link.heal()
        assert await reader.readexactly(8) == b"one two "
        writer.close()


async def test_bytes_that_follow_a_delay_do_not_overtake_delayed_ones() -> None:
    async with echo_link() as link:
        reader, writer = await connect(link)
        await link.delay(0.2)
        writer.write(b"late ")

        async def is_delayed() -> bool:
            return link.counts.delayed >= 1

        await eventually(is_delayed, "the bytes are delayed")
        await link.heal()
        writer.write(b"later")
        assert await reader.readexactly(10) == b"late later"
        writer.close()

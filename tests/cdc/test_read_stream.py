"""The reader behind `cdc verify` takes no record for missing that its own connection lost."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from cdc.read_stream import read_messages
from tests.cdc.published_records import append, live
from tests.cutting_proxy import cutting_proxy
from tests.ports import at_port
from tests.wait import eventually
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection
from tocsin.core.errors import Unreachable
from tocsin.core.settings import Settings


async def test_messages_that_a_connection_lost_end_the_reading(
    settings: Settings, connection: Connection
) -> None:
    """NATS continues behind them after the reconnection, because nothing is acknowledged."""
    await append(connection, 1000)
    async with live(settings) as publisher:
        await publisher.drain()
    address = urlsplit(settings.nats)
    read: list[int] = []

    async def read_all() -> None:
        async with (
            cutting_proxy(str(address.hostname), address.port or 4222) as proxy,
            open_bus(settings.model_copy(update={"nats": at_port(settings.nats, proxy.port)}), "test") as bus,
        ):
            proxy.cut_after(60_000)

            async def is_reconnected() -> bool:
                return bool(bus.stats["reconnects"])

            async for message in read_messages(bus, settings.stream, 1, 1000):
                read.append(message.seq)
                await eventually(is_reconnected, "the connection is cut while the reader works")

    with pytest.raises(Unreachable, match="lost messages"):
        await read_all()
    assert read == list(range(1, len(read) + 1))

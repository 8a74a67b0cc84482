"""Events and records for the tests of commands that read them."""

from __future__ import annotations

import asyncio

from cdc.publisher import Publisher
from clock.service import Clock
from tests.streams import read_stream
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


def fire(settings: Settings, records: int) -> None:
    """Let the clock fire and the publisher publish until the stream has that many records."""

    async def until_published() -> None:
        services = Service("clock", Clock(settings).run), Service("cdc", Publisher(settings).run)
        async with running(*services):
            await read_stream(settings, records)

    asyncio.run(until_published())

"""A house to tell stories in."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client

from tests.rules.instance import House
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


@pytest.fixture
async def bus(settings: Settings) -> AsyncIterator[Client]:
    connected = await connect_bus(settings, "test")
    yield connected
    await connected.close()


@pytest.fixture
async def house(settings: Settings, connection: Connection, bus: Client) -> House:
    return await House.open(settings, connection, bus)

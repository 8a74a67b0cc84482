"""An instance in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client

from tests.rules.instance import Instance
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


@pytest.fixture
async def bus(settings: Settings) -> AsyncIterator[Client]:
    connected = await connect_bus(settings, "test")
    yield connected
    await connected.close()


@pytest.fixture
async def instance(settings: Settings, connection: Connection, bus: Client) -> Instance:
    return await Instance.open(settings, connection, bus)

"""A service with an inbox in the database of the records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from tests.client.service import make_service
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


@pytest.fixture
async def ledger(settings: Settings) -> AsyncIterator[Connection]:
    """A session of the service itself, to read what the service wrote."""
    opened: Connection = await AsyncConnection.connect(settings.postgres, autocommit=True)
    try:
        await make_service(opened)
        yield opened
    finally:
        await opened.close()


@pytest.fixture
async def pool(settings: Settings) -> AsyncIterator[AsyncConnectionPool[Any]]:
    """A pool of the service, with rows as dictionaries."""
    async with AsyncConnectionPool[AsyncConnection[Any]](
        settings.postgres, min_size=1, max_size=4, kwargs={"row_factory": dict_row}, open=False
    ) as opened:
        yield opened


@pytest.fixture
def stop() -> asyncio.Event:
    return asyncio.Event()

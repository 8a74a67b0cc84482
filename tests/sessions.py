"""Sessions for tests of races, with long timeouts, so that a slow machine does not decide the result.

A session of the product gives up a lock or an open transaction after a second or less. A test holds one
open on purpose, until another session waits for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tocsin.core.db import Connection, connect_service
from tocsin.core.settings import Settings

Sessions = Callable[[str], Awaitable[Connection]]


@asynccontextmanager
async def open_sessions(settings: Settings) -> AsyncIterator[Sessions]:
    """A function that opens sessions; all of them are closed at the end."""
    async with AsyncExitStack() as stack:

        async def open_session(name: str) -> Connection:
            connection = await connect_service(settings, name)
            stack.push_async_callback(connection.close)
            await connection.execute("set lock_timeout = '60s'")
            await connection.execute("set idle_in_transaction_session_timeout = 0")
            return connection

        yield open_session


@pytest.fixture
async def sessions(settings: Settings) -> AsyncIterator[Sessions]:
    async with open_sessions(settings) as open_session:
        yield open_session


@pytest.fixture
async def connection(sessions: Sessions) -> Connection:
    return await sessions("test")


@pytest.fixture
async def watch(sessions: Sessions) -> Connection:
    """A session that observes the others."""
    return await sessions("watch")

"""Sessions for tests of races: patient, so that a slow machine cannot decide who wins.

A session of the product gives up a lock or an open transaction after a second or less. A test that holds one
open on purpose, until it has seen somebody wait for it, must not be timed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tocsin.core.db import Connection, connect
from tocsin.core.settings import Settings

Sessions = Callable[[str], Awaitable[Connection]]


@asynccontextmanager
async def opening_sessions(settings: Settings) -> AsyncIterator[Sessions]:
    """As many as the test asks for, all closed at its end."""
    async with AsyncExitStack() as stack:

        async def open_session(name: str) -> Connection:
            connection = await connect(settings, name)
            stack.push_async_callback(connection.close)
            await connection.execute("set lock_timeout = '60s'")
            await connection.execute("set idle_in_transaction_session_timeout = 0")
            return connection

        yield open_session


@pytest.fixture
async def sessions(settings: Settings) -> AsyncIterator[Sessions]:
    async with opening_sessions(settings) as open_session:
        yield open_session


@pytest.fixture
async def connection(sessions: Sessions) -> Connection:
    return await sessions("test")


@pytest.fixture
async def watch(sessions: Sessions) -> Connection:
    """Looks on from outside."""
    return await sessions("watch")

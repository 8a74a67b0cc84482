"""Patient sessions for all tests of the clock."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.sessions import Sessions, opening_sessions
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


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

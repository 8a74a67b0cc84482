"""Sessions that a stalled machine does not lose: the limits of a session follow from the TTL of the lease."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.cdc.publishing import patient
from tocsin.core.db import Connection, connect
from tocsin.core.settings import Settings


@pytest.fixture
async def connection(settings: Settings) -> AsyncIterator[Connection]:
    opened = await connect(patient(settings), "test")
    try:
        yield opened
    finally:
        await opened.close()

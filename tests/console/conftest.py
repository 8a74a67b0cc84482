"""The API with the console on loopback, on the database and the namespace of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.api.running_api import RunningApi, running_api
from tocsin.cli.served import SERVED
from tocsin.core.settings import Settings


@pytest.fixture
async def console(settings: Settings) -> AsyncIterator[RunningApi]:
    async with running_api(settings, SERVED) as started:
        yield started

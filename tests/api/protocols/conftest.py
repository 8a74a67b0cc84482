"""An instance with an API: the worker, the publisher and the API run, on the servers of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import nats
import pytest

from cdc.publisher import Publisher
from rules.worker import Worker
from tests.api.running_api import RunningApi, running_api
from tests.cdc.published_records import smaller
from tests.wait import eventually
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


@pytest.fixture
async def instance(settings: Settings) -> AsyncIterator[RunningApi]:
    settings = smaller(settings)
    async with (
        running(Service("worker", Worker(settings).run), Service("cdc", Publisher(settings).run)),
        running_api(settings) as started,
    ):
        await _streams_exist(settings)
        yield started


async def _streams_exist(settings: Settings) -> None:
    """The worker creates them when it starts."""
    bus = await nats.connect(settings.nats.split(","))
    wanted = {settings.data_stream, settings.ingest_stream, settings.dead_stream}

    async def exist() -> bool:
        return wanted <= {info.config.name for info in await bus.jetstream().streams_info()}

    await eventually(exist, "the streams exist")
    await bus.close()

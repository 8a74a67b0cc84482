"""Synchronous replication: nothing is published that the standby does not have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from cdc.publisher import Publisher
from migrations.roles.create import create_roles
from migrations.runner import migrate
from tests.cdc.published_records import append, last_sequence, live, published, smaller, with_long_timeouts
from tests.sql import all_rows
from tests.standby import SynchronousStandby, synchronous_standby
from tests.wait import eventually
from tocsin.core.db import Connection, connect, fetch_value
from tocsin.core.errors import Unreachable
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings
from tocsin.embedded import Postgres, embedded_postgres

_WAITING = "select pid from pg_stat_activity where application_name = %s and wait_event = 'SyncRep'"


@pytest.fixture
def primary(tmp_path: Path) -> Iterator[Postgres]:
    with embedded_postgres(tmp_path, durable=False) as started:
        yield started


@pytest.fixture
def standby(primary: Postgres, tmp_path: Path) -> Iterator[SynchronousStandby]:
    with synchronous_standby(primary, tmp_path) as started:
        yield started


@pytest.fixture
async def replicated(
    settings: Settings, primary: Postgres, standby: SynchronousStandby
) -> AsyncIterator[tuple[Settings, Connection]]:
    there = smaller(settings, postgres=primary.url)
    connection = await connect(with_long_timeouts(there), "test")
    await migrate(connection)
    await create_roles(connection)
    yield there, connection
    await connection.close()


async def is_waiting(connection: Connection, name: str) -> bool:
    """Whether a commit of the session waits for the standby."""
    return bool(await all_rows(connection, _WAITING, (name,)))


async def append_unreplicated(settings: Settings, watch: Connection) -> None:
    """Append a record whose session is ended while it waits for the standby: it becomes visible."""

    async def waits() -> bool:
        return await is_waiting(watch, "tocsin writer")

    writer = await connect(with_long_timeouts(settings), "writer")
    appending = asyncio.create_task(append(writer, 1))
    await eventually(waits, "the commit waits for the standby")
    await watch.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tocsin writer'"
    )
    with suppress(psycopg.Error):
        await appending
    await writer.close()


async def test_a_record_that_no_synchronous_standby_has_is_published_only_when_it_has_it(
    replicated: tuple[Settings, Connection], standby: SynchronousStandby
) -> None:
    settings, connection = replicated
    await append(connection, 3)
    service = Service("cdc", Publisher(settings).run)
    async with running(service):
        await published(settings, connection)
        standby.stop()
        await append_unreplicated(settings, connection)
        assert (await all_rows(connection, "select max(seq) as head from tocsin.event"))[0]["head"] == 4

        async def is_decided() -> bool:
            return await is_waiting(connection, "tocsin cdc") or await last_sequence(settings) > 3

        await eventually(is_decided, "the publisher waits for the standby")
        assert await fetch_value(connection, "tocsin.metrics/read_commit_wait") > 0
        assert await last_sequence(settings) == 3

        async def is_reported() -> bool:
            return "synchronous standby" in (service.problem or "")

        await eventually(is_reported, "the service reports what it waits for")
        standby.start()
        assert len(await published(settings, connection)) == 4


async def test_a_wait_that_an_operator_cancels_confirms_nothing(
    replicated: tuple[Settings, Connection], standby: SynchronousStandby
) -> None:
    settings, connection = replicated
    async with live(settings) as publisher:
        await append(connection, 1)
        await publisher.drain()
        standby.stop()
        await append_unreplicated(settings, connection)
        draining = asyncio.create_task(publisher.drain())

        async def waits() -> bool:
            return await is_waiting(connection, "tocsin test publisher")

        await eventually(waits, "the publisher waits for the standby")
        await connection.execute(
            "select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'tocsin test publisher'"
        )
        with pytest.raises(Unreachable, match=r"no synchronous standby has confirmed .*cancel"):
            await draining
    assert await last_sequence(settings) == 1

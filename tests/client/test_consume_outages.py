"""Outages of the inbox and of NATS are waited out and do not count as attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from tests.client.service import billing, dead_letters, publish, running, until_acknowledged, until_handled
from tests.wait import eventually
from tocsin.client import Delivery, Inbox
from tocsin.core.db import Connection
from tocsin.core.settings import Settings
from tocsin.embedded import Nats, embedded_nats


async def test_an_outage_of_the_inbox_does_not_count_as_an_attempt(
    settings: Settings, ledger: Connection, stop: asyncio.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """The table is locked, and the sessions of the service reach their lock timeout."""
    await publish(settings, ledger, 2)
    impatient = Inbox(make_conninfo(settings.postgres, options="-c lock_timeout=20ms"))
    delivery = Delivery(attempts=1)
    async with running(billing(settings, stop, keep=impatient, delivery=delivery), stop=stop):
        await until_handled(ledger, [1, 2])
        await until_acknowledged(settings)
        async with ledger.transaction():
            await ledger.execute("lock tocsin_inbox_ahead in access exclusive mode")
            other = await _another(settings)
            await publish(settings, other, 1)
            await other.close()

            async def has_waited() -> bool:
                return caplog.text.count("record 3 waits for the store: the inbox does not answer") >= 2

            await eventually(has_waited, "the consumer meets the lock, again and again")
        await until_handled(ledger, [1, 2, 3])
    assert await dead_letters(settings) == []


async def _another(settings: Settings) -> Connection:
    return await AsyncConnection.connect(settings.postgres, autocommit=True)


async def test_lost_sessions_are_opened_again(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 2)
    async with running(billing(settings, stop, delivery=Delivery(back_off_s=0.02)), stop=stop):
        await until_handled(ledger, [1, 2])
        await ledger.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name like 'tocsin consume%%' and datname = current_database()",
            (),
        )
        await publish(settings, ledger, 2)
        await until_handled(ledger, [1, 2, 3, 4])


@pytest.fixture
def own_nats(tmp_path: Path) -> Iterator[Nats]:
    with embedded_nats(tmp_path) as started:
        yield started


async def test_a_restart_of_nats_is_survived(
    settings: Settings, ledger: Connection, stop: asyncio.Event, own_nats: Nats
) -> None:
    there = settings.model_copy(update={"nats": own_nats.url})
    await publish(there, ledger, 5)
    async with running(billing(there, stop, delivery=Delivery(ack_wait_s=1.0)), stop=stop):
        await until_handled(ledger, range(1, 6))
        own_nats.kill()
        own_nats.start()
        await publish(there, ledger, 5)
        await until_handled(ledger, range(1, 11))

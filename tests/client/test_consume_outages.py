"""Outages of the inbox and of NATS are waited out and do not count as attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from tests.client.service import (
    billing,
    dead_letters,
    note,
    publish,
    running,
    until_acknowledged,
    until_handled,
)
from tests.wait import eventually
from tocsin.client import Delivery, Event, Inbox, consume_batches
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


@pytest.mark.parametrize("is_batch", [False, True])
async def test_a_connection_that_breaks_under_the_handler_uses_no_attempt(
    settings: Settings, ledger: Connection, stop: asyncio.Event, is_batch: bool
) -> None:
    await publish(settings, ledger, 3)
    breaks = [1, 2]

    async def break_connection(events: list[Event], connection: Connection) -> None:
        for event in events:
            await note(event, connection)
        if breaks:
            breaks.pop()
            await connection.execute("select pg_terminate_backend(pg_backend_pid())")

    async def break_one(event: Event, connection: Connection) -> None:
        await break_connection([event], connection)

    options: dict[str, Any] = {"delivery": Delivery(attempts=1)}
    if is_batch:
        options |= {"handle": break_connection, "call": consume_batches}
    else:
        options |= {"handle": break_one}
    async with running(billing(settings, stop, **options), stop=stop):
        await until_handled(ledger, [1, 2, 3])
    assert breaks == []
    assert await dead_letters(settings) == []


async def test_a_missing_table_of_the_inbox_is_waited_for(
    settings: Settings, ledger: Connection, stop: asyncio.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """A table that is replaced, or a right that is missing for a while."""
    await publish(settings, ledger, 1)

    async def is_logged() -> bool:
        return "record 2 waits for the store: the inbox cannot be used: UndefinedTable" in caplog.text

    async with running(billing(settings, stop, delivery=Delivery(attempts=1)), stop=stop):
        await until_handled(ledger, [1])
        await ledger.execute("alter table tocsin_inbox_ahead rename to replaced")
        await publish(settings, ledger, 1)
        await eventually(is_logged, "the consumer waits for the table")
        await ledger.execute("alter table replaced rename to tocsin_inbox_ahead")
        await until_handled(ledger, [1, 2])
    assert await dead_letters(settings) == []


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

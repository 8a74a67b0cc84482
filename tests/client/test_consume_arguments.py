"""Invalid arguments are rejected before a record is consumed, with an error that has a remedy."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool

from tests.client.service import billing, effects, publish, running, until_handled
from tests.sql import all_rows
from tocsin.client import (
    Delivery,
    Event,
    Events,
    Inbox,
    InvalidInput,
    KvMark,
    Refused,
    Unreachable,
    consume,
    inbox_sql,
)
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


async def one(record: object) -> None: ...


async def three(record: object, connection: object, more: object) -> None: ...


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"select": "tocsin.v1.event.>"}, "'tocsin.v1.event.>' selects no records: give Events()"),
        ({"consumer": "bill.ing"}, "consumer='bill.ing' is not a name: use 1 to 64 letters"),
        ({"consumer": ""}, "consumer='' is not a name"),
        ({"keep": "postgresql://db"}, "keep='postgresql://db': give Inbox(...) or KvMark()"),
        ({"handle": 3}, "handle=3 cannot be called: give an async function"),
        (
            {"handle": one},
            "handle is called as handle(record, connection) with Inbox, and one(record: 'object') -> 'None' "
            "does not take that",
        ),
        ({"handle": three, "keep": KvMark()}, "handle is called as handle(record) with KvMark"),
        (
            {"handle": one, "keep": KvMark(), "delivery": Delivery(concurrency=2)},
            "concurrency=2 is not possible with KvMark",
        ),
        ({"delivery": {"concurrency": 2}}, "delivery={'concurrency': 2}: give Delivery(...)"),
        ({"start": "yesterday"}, "start='yesterday' is not a position in the stream: use 'new', 'beginning'"),
        ({"start": 0}, "start=0 is not a position in the stream"),
        ({"start": True}, "start=True is not a position"),
        (
            {"start": datetime(2026, 3, 2)},
            "start 2026-03-02T00:00:00 has no timezone: give an aware datetime",
        ),
        ({"nats": 4222}, "nats=4222: give a URL such as nats://localhost:4222"),
        ({"select": Events(namespace="a.b")}, "TOCSIN_NAMESPACE='a.b'"),
    ],
)
async def test_an_invalid_argument_is_rejected(
    settings: Settings, stop: asyncio.Event, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        await billing(settings, stop, **changes)


def test_an_inbox_needs_a_postgres() -> None:
    with pytest.raises(InvalidInput, match="give a connection string or an open"):
        Inbox("")


async def test_an_unreachable_postgres_is_reported_without_the_password(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 1)
    away = Inbox("postgresql://me:secret@127.0.0.1:9/shop")
    with pytest.raises(
        Unreachable, match=r"cannot reach the inbox's postgres at 127\.0\.0\.1:9/shop"
    ) as raised:
        await billing(settings, stop, keep=away)
    assert "secret" not in str(raised.value)
    with pytest.raises(InvalidInput, match="is not a connection string"):
        await billing(settings, stop, keep=Inbox("postgres db=x"))


async def test_a_missing_inbox_table_is_reported_with_the_remedy(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 1)
    await ledger.execute("drop table tocsin_inbox_ahead")
    with pytest.raises(Refused, match=r"no tables: run the SQL of tocsin.client.inbox_sql\(\)"):
        await billing(settings, stop)
    for _ in range(2):
        await ledger.execute(inbox_sql().encode())
    async with running(billing(settings, stop), stop=stop):
        await until_handled(ledger, [1])


async def test_a_missing_privilege_on_the_inbox_is_named(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 1)
    role = f"poor_{settings.namespace}"
    await ledger.execute(f"create role {role} login".encode())
    try:
        poor = Inbox(f"{settings.postgres} user={role}")
        with pytest.raises(Refused, match=r"permission denied for table tocsin_inbox.*grant select, insert"):
            await billing(settings, stop, keep=poor)
    finally:
        await ledger.execute(f"drop role {role}".encode())


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
async def test_an_inbox_needs_read_committed(
    settings: Settings, ledger: Connection, stop: asyncio.Event, level: str
) -> None:
    await publish(settings, ledger, 1)
    options = "-c default_transaction_isolation=" + level.replace(" ", r"\ ")
    strict = Inbox(make_conninfo(settings.postgres, options=options))
    with pytest.raises(Refused, match=f"needs read committed transactions, and these are {level}"):
        await billing(settings, stop, keep=strict)


async def test_a_closed_pool_is_reported(settings: Settings, ledger: Connection, stop: asyncio.Event) -> None:
    await publish(settings, ledger, 1)
    closed: AsyncConnectionPool[Any] = AsyncConnectionPool(settings.postgres, open=False)
    with pytest.raises(Refused, match="the inbox's pool is not open"):
        await billing(settings, stop, keep=Inbox(closed))


async def test_a_handler_that_is_not_async_stops_the_consumer_without_a_dead_letter(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 1)

    def handle(event: Event, connection: Connection) -> None: ...

    with pytest.raises(Refused, match="handle returned None: it must be an async function"):
        await billing(settings, stop, handle=handle, delivery=Delivery(attempts=1))
    assert await all_rows(ledger, "select from tocsin_inbox_ahead") == []
    again = asyncio.Event()
    async with running(billing(settings, again), stop=again):
        await until_handled(ledger, [1])


async def test_a_stream_that_does_not_exist_is_named(
    settings: Settings, ledger: Connection, stop: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.client._durable._STREAM_TIMEOUT_S", 0.1)
    select = Events(namespace="elsewhere")
    with pytest.raises(
        Unreachable, match="the stream 'elsewhere' does not exist: run `tocsin streams create`"
    ):
        await billing(settings, stop, select=select)
    assert await effects(ledger) == []


async def test_an_unreachable_nats_is_named(settings: Settings, stop: asyncio.Event) -> None:
    with pytest.raises(Unreachable, match=r"cannot reach nats at nats://127\.0\.0\.1:9 "):
        await billing(settings, stop, nats="nats://127.0.0.1:9")


async def test_without_an_address_the_environment_variable_is_used(
    settings: Settings, ledger: Connection, stop: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish(settings, ledger, 1)
    monkeypatch.setenv("TOCSIN_NATS", settings.nats)
    monkeypatch.setenv("TOCSIN_NAMESPACE", settings.namespace)
    seen = asyncio.Event()

    async def handle(_: Event) -> None:
        seen.set()

    async with running(
        consume(Events(), handle, consumer="x", keep=KvMark(), start="beginning", stop=stop), stop=stop
    ):
        async with asyncio.timeout(10):
            await seen.wait()

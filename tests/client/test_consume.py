"""Each selected record is handled once, in the transaction of its handler, from the given start."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from nats.aio.client import Client
from psycopg_pool import AsyncConnectionPool

from tests.cdc.published_records import append_steps, live
from tests.client.service import (
    billing,
    bring_up,
    effects,
    note,
    publish,
    running,
    until_acknowledged,
    until_handled,
)
from tests.sql import all_rows, one_row
from tests.wait import eventually
from tocsin.client import (
    ActionStep,
    Delivery,
    Event,
    Events,
    Inbox,
    Records,
    Steps,
)
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


@pytest.mark.parametrize("concurrency", [1, 8])
async def test_every_record_is_handled_once(
    settings: Settings, ledger: Connection, stop: asyncio.Event, concurrency: int
) -> None:
    await publish(settings, ledger, 30)
    delivery = Delivery(concurrency=concurrency)
    async with running(billing(settings, stop, delivery=delivery), stop=stop):
        await until_handled(ledger, range(1, 31))
        last = await publish(settings, ledger, 30)
        await until_handled(ledger, range(1, last + 1))


async def test_records_one_at_a_time_are_in_order_over_all_processes(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 40)
    seen: list[int] = []
    at_work = 0

    async def handle(event: Event, connection: Connection) -> None:
        nonlocal at_work
        at_work += 1
        assert at_work == 1
        seen.append(event.seq)
        await note(event, connection)
        at_work -= 1

    async with running(*(billing(settings, stop, handle=handle) for _ in range(3)), stop=stop):
        await until_handled(ledger, range(1, 41))
    assert seen == list(range(1, 41))


async def test_with_concurrency_a_slow_record_delays_no_other_record(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 20)
    go_on, three_at_work = asyncio.Event(), asyncio.Event()
    at_work: list[int] = []
    most = 0

    async def handle(event: Event, connection: Connection) -> None:
        nonlocal most
        at_work.append(event.seq)
        most = max(most, len(at_work))
        if len(at_work) == 3:
            three_at_work.set()
        if event.seq == 1:
            await go_on.wait()
        await three_at_work.wait()
        await note(event, connection)
        at_work.remove(event.seq)

    async with running(billing(settings, stop, handle=handle, delivery=Delivery(concurrency=3)), stop=stop):
        await until_handled(ledger, range(2, 21))
        go_on.set()
        await until_handled(ledger, range(1, 21))
    assert most == 3


async def test_a_restart_continues_where_the_consumer_stopped(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 5)
    async with running(billing(settings, stop), stop=stop):
        await until_handled(ledger, range(1, 6))
    await publish(settings, ledger, 5)
    again = asyncio.Event()
    # The start is used only for a new name.
    async with running(billing(settings, again, start="new"), stop=again):
        await until_handled(ledger, range(1, 11))


async def test_the_writes_of_a_handler_are_rolled_back_if_it_fails(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 2)
    failures = iter([True, False, False])

    async def handle(event: Event, connection: Connection) -> None:
        await note(event, connection)
        if next(failures):
            raise ValueError("not this time")

    async with running(billing(settings, stop, handle=handle, delivery=Delivery(back_off_s=0.01)), stop=stop):
        await until_handled(ledger, [1, 2])


async def test_a_handler_that_swallowed_an_error_of_postgres_has_failed(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    """Its transaction is aborted: a commit would write nothing, and the record would be lost."""
    await publish(settings, ledger, 1)
    calls = 0

    async def handle(event: Event, connection: Connection) -> None:
        nonlocal calls
        calls += 1
        await note(event, connection)
        if calls == 1:
            with pytest.raises(Exception, match="division by zero"):
                await connection.execute("select 1 / 0")

    async with running(billing(settings, stop, handle=handle, delivery=Delivery(back_off_s=0.01)), stop=stop):
        await until_handled(ledger, [1])
    assert calls == 2


async def test_a_service_may_use_its_own_pool_and_client(
    settings: Settings, ledger: Connection, stop: asyncio.Event, pool: AsyncConnectionPool[Any]
) -> None:
    await publish(settings, ledger, 3)
    bus: Client = await connect_bus(settings, "service")
    async with running(billing(settings, stop, keep=Inbox(pool), nats=bus), stop=stop):
        await until_handled(ledger, [1, 2, 3])
    assert bus.is_connected
    await bus.close()


async def test_consumers_with_different_names_each_handle_every_record(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 3)
    async with running(billing(settings, stop), billing(settings, stop, consumer="shipping"), stop=stop):
        await until_handled(ledger, [1, 1, 2, 2, 3, 3])


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ({"owner": "plant 7"}, [1, 2]),
        ({"type": "noted", "owner": ""}, [5]),
        ({"name": ["a.b", "c"]}, [3, 4]),
        ({"origin": "caused"}, [1, 2, 3, 4, 5]),
        ({"origin": ["external", "derived"]}, []),
    ],
)
async def test_only_selected_records_are_handled(
    settings: Settings,
    ledger: Connection,
    stop: asyncio.Event,
    select: dict[str, Any],
    expected: list[int],
) -> None:
    await publish(settings, ledger, 2, owner="plant 7")
    await publish(settings, ledger, 1, schedule="a.b", owner="x")
    await publish(settings, ledger, 1, rule="c", owner="x")
    await publish(settings, ledger, 1)
    chosen = Events(namespace=settings.namespace, **select)
    async with running(billing(settings, stop, select=chosen), stop=stop):
        await until_handled(ledger, expected)
        await until_acknowledged(settings)
    assert await effects(ledger) == expected


async def test_each_kind_of_record_is_handed_over_as_its_model(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 1)
    await append_steps(ledger, 1)
    await bring_up(settings)
    seen: list[object] = []

    async def see(record: object, _: Connection) -> None:
        seen.append(type(record))

    steps, records = Steps(namespace=settings.namespace), Records(namespace=settings.namespace)
    async with running(
        billing(settings, stop, handle=see, select=steps, consumer="steps"),
        billing(settings, stop, handle=see, select=records, consumer="records"),
        stop=stop,
    ):

        async def are_seen() -> bool:
            return len(seen) >= 3

        await eventually(are_seen, "all are seen")
    assert sorted(str(kind) for kind in seen) == sorted(str(kind) for kind in (ActionStep, Event, ActionStep))


async def committed_at(ledger: Connection, seq: int) -> datetime:
    row = await one_row(ledger, "select recorded_at from tocsin.event where seq = %s", (seq,))
    at: datetime = row["recorded_at"]
    return at


@pytest.mark.parametrize(("start", "first"), [("beginning", 1), (4, 4), ("new", 7), (12, 12)])
async def test_a_consumer_begins_at_the_requested_position(
    settings: Settings, ledger: Connection, stop: asyncio.Event, start: Any, first: int
) -> None:
    await publish(settings, ledger, 6)
    async with running(billing(settings, stop, start=start), stop=stop):

        async def has_begun() -> bool:
            return bool(await all_rows(ledger, "select from tocsin_inbox"))

        await eventually(has_begun, "the consumer has begun")
        last = await publish(settings, ledger, 8)
        await until_handled(ledger, range(first, last + 1))


async def test_a_start_time_is_compared_with_commit_times_also_in_a_rebuilt_stream(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    for _ in range(6):
        await publish(settings, ledger, 1)
    at = await committed_at(ledger, 4)
    async with live(settings) as publisher:
        await publisher.js.delete_stream(settings.stream)
        await publisher.resume()
        await publisher.drain()
    async with running(billing(settings, stop, start=at), stop=stop):
        await until_handled(ledger, [4, 5, 6])
    later = asyncio.Event()
    after = at + timedelta(microseconds=1)
    async with running(billing(settings, later, start=after, consumer="other"), stop=later):
        await until_handled(ledger, [4, 5, 5, 6, 6])


async def test_the_inbox_stays_small(
    settings: Settings, ledger: Connection, stop: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.client._consumer_loop._CHECK_MARK_RECORDS", 10)
    await publish(settings, ledger, 35)
    most = 0

    async def handle(event: Event, connection: Connection) -> None:
        nonlocal most
        rows = await all_rows(connection, "select from tocsin_inbox_ahead")
        most = max(most, len(rows))
        await note(event, connection)

    async with running(billing(settings, stop, handle=handle), stop=stop):
        await until_handled(ledger, range(1, 36))
    assert most < 25
    assert await all_rows(ledger, "select from tocsin_inbox_ahead") == []
    kept = await one_row(ledger, "select last_seq, last_id from tocsin_inbox")
    last = await one_row(ledger, "select seq, id from tocsin.event order by seq desc limit 1")
    assert (kept["last_seq"], kept["last_id"]) == (last["seq"], last["id"])

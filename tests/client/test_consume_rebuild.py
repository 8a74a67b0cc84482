"""The stored mark decides: a lost, rebuilt or replaced stream or consumer repeats no record."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from nats.js.api import AckPolicy, ConsumerConfig

from cdc.stream import record_stream_config
from tests.cdc.published_records import last_sequence, live
from tests.client.service import (
    billing,
    bring_up,
    delete_stream,
    effects,
    publish,
    running,
    until_acknowledged,
    until_handled,
)
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.client import Delivery, Events, KvMark, Refused
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


async def on_stream(settings: Settings, method: str, *arguments: Any) -> None:
    bus = await connect_bus(settings, "test")
    try:
        await getattr(bus.jetstream(timeout=10), method)(settings.stream, *arguments)
    finally:
        await bus.close()


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_rebuilt_stream_is_continued_and_no_record_is_handled_again(
    settings: Settings, ledger: Connection, stop: asyncio.Event, concurrency: int
) -> None:
    await publish(settings, ledger, 20)
    delivery = Delivery(concurrency=concurrency)
    async with running(billing(settings, stop, delivery=delivery), stop=stop):
        await until_handled(ledger, range(1, 21))
        await delete_stream(settings)
        await bring_up(settings)
        last = await publish(settings, ledger, 20)
        await until_handled(ledger, range(1, last + 1))
        await until_acknowledged(settings)
    assert await effects(ledger) == list(range(1, last + 1))


async def test_the_consumer_waits_for_a_stream_that_lost_its_end(
    settings: Settings, ledger: Connection, stop: asyncio.Event, caplog: pytest.LogCaptureFixture
) -> None:
    await publish(settings, ledger, 10)
    async with running(billing(settings, stop), stop=stop):
        await until_handled(ledger, range(1, 11))
        await until_acknowledged(settings)
    await delete_stream(settings)
    again = asyncio.Event()
    async with live(settings) as publisher:
        chunk = await publisher.reader.read(0, 4)
        await publisher.chain.confirm(await publisher.chain.send(chunk), 10)
        assert await last_sequence(settings) == 4
        async with running(billing(settings, again), stop=again):

            async def is_logged() -> bool:
                return "ends at 4, but 10 is handled" in caplog.text

            await eventually(is_logged, "the consumer waits")
            await publisher.resume()
            await publisher.drain()
            await publish(settings, ledger, 1)
            await until_handled(ledger, range(1, 12))


async def test_a_deleted_consumer_is_created_again(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 5)
    async with running(billing(settings, stop), stop=stop):
        await until_handled(ledger, range(1, 6))
        await on_stream(settings, "delete_consumer", "billing")
        await publish(settings, ledger, 5)
        await until_handled(ledger, range(1, 11))


async def test_a_database_restored_from_a_backup_handles_only_the_lost_records_again(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 4)
    async with running(billing(settings, stop), stop=stop):
        await until_handled(ledger, range(1, 5))
        await until_acknowledged(settings)
    # The backup has the mark 2 and record 4, as concurrent handlers leave it.
    await ledger.execute("update tocsin_inbox set last_seq = 2, last_id = null")
    await ledger.execute("insert into tocsin_inbox_ahead select stream, consumer, 4 from tocsin_inbox")
    await ledger.execute("delete from effect where seq = 3")
    await publish(settings, ledger, 2)
    again = asyncio.Event()
    async with running(billing(settings, again), stop=again):
        await until_handled(ledger, [1, 2, 3, 4, 5, 6])


async def test_another_log_under_the_same_name_is_refused(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 3)
    async with running(billing(settings, stop), stop=stop):
        await until_handled(ledger, [1, 2, 3])
        await until_acknowledged(settings)
    await delete_stream(settings)
    await ledger.execute("update tocsin.event set id = gen_random_uuid()")
    await bring_up(settings)
    with pytest.raises(Refused, match=r"at 3, but 'billing' has handled .* there: this is another log"):
        await billing(settings, asyncio.Event())


@pytest.mark.parametrize("keep", ["inbox", "kv"])
async def test_the_consumer_of_another_service_is_refused(
    settings: Settings, ledger: Connection, stop: asyncio.Event, keep: str
) -> None:
    await publish(settings, ledger, 1)
    bus = await connect_bus(settings, "other service")
    theirs = await bus.jetstream(timeout=10).pull_subscribe(">", "billing", stream=settings.stream)
    await theirs.fetch(1, timeout=10)
    await bus.close()
    changes: dict[str, Any] = {"keep": KvMark(), "handle": print} if keep == "kv" else {}
    with pytest.raises(Refused, match=r"'billing' is in use in nats.*nats consumer rm test_\d+ billing"):
        await billing(settings, stop, **changes)


async def test_a_consumer_that_an_operator_created_is_used_unchanged(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    """For a service that has no permission to create one."""
    await publish(settings, ledger, 3)
    made = ConsumerConfig(
        durable_name="billing",
        description="made by hand",
        filter_subject=f"{settings.subjects}.event.>",
        ack_policy=AckPolicy.EXPLICIT,
        max_ack_pending=1,
    )
    await on_stream(settings, "add_consumer", made)
    async with running(billing(settings, stop, start=2), stop=stop):
        await until_handled(ledger, [2, 3])
    bus = await connect_bus(settings, "test")
    info = await bus.jetstream(timeout=10).consumer_info(settings.stream, "billing")
    await bus.close()
    assert info.config.description == "made by hand"


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_consumer_of_another_kind_is_refused(
    settings: Settings, ledger: Connection, stop: asyncio.Event, is_new: bool
) -> None:
    await publish(settings, ledger, 1)
    async with running(billing(settings, stop), stop=stop):
        await until_handled(ledger, [1])
    if is_new:
        await ledger.execute("delete from tocsin_inbox")
    for description, policy, message in (
        ("tocsin workers: rules", AckPolicy.EXPLICIT, "belongs to tocsin itself"),
        ("mine", AckPolicy.NONE, "not a pull consumer with explicit acknowledgements"),
    ):
        await on_stream(settings, "delete_consumer", "billing")
        config = ConsumerConfig(durable_name="billing", description=description, ack_policy=policy)
        await on_stream(settings, "add_consumer", config)
        with pytest.raises(Refused, match=message):
            await billing(settings, asyncio.Event())


async def test_records_that_the_stream_no_longer_has_are_logged_as_missed(
    settings: Settings, ledger: Connection, stop: asyncio.Event, caplog: pytest.LogCaptureFixture
) -> None:
    await publish(settings, ledger, 3)
    async with running(billing(settings, stop), stop=stop):
        await until_handled(ledger, [1, 2, 3])
        await until_acknowledged(settings)
    await publish(settings, ledger, 4)
    # As if the first six had passed the retention of the stream.
    await delete_stream(settings)
    bus = await connect_bus(settings, "test")
    await bus.jetstream(timeout=10).add_stream(record_stream_config(settings, first_seq=7))
    await bus.close()
    await bring_up(settings)
    again = asyncio.Event()
    async with running(billing(settings, again), stop=again):
        await until_handled(ledger, [1, 2, 3, 7])
    assert "records 4 to 6 are no longer in the stream" in caplog.text


async def test_a_new_selection_applies_from_the_restart(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    for owner in ("a", "b"):
        await publish(settings, ledger, 2, owner=owner)
    of_a, of_both = (Events(namespace=settings.namespace, owner=owner) for owner in ("a", ["a", "b"]))
    async with running(billing(settings, stop, select=of_a), stop=stop):
        await until_handled(ledger, [1, 2])
        await until_acknowledged(settings)
    again = asyncio.Event()
    async with running(billing(settings, again, select=of_both), stop=again):
        await publish(settings, ledger, 1, owner="b")
        await publish(settings, ledger, 1, owner="a")
        await publish(settings, ledger, 1, owner="c")
        await until_handled(ledger, [1, 2, 5, 6])


async def test_the_delivery_options_may_change_with_a_restart(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    """Also from concurrent to ordered: neither loses the records that the other left open."""
    await publish(settings, ledger, 12)
    for concurrency, until in ((4, 12), (1, 18), (4, 24)):
        again = asyncio.Event()
        delivery = Delivery(concurrency=concurrency, ack_wait_s=5 + concurrency)
        async with running(billing(settings, again, delivery=delivery), stop=again):
            if until > 12:
                await publish(settings, ledger, 6)
            await until_handled(ledger, range(1, until + 1))
        bus = await connect_bus(settings, "test")
        config = (await bus.jetstream(timeout=10).consumer_info(settings.stream, "billing")).config
        await bus.close()
        assert (config.max_ack_pending, config.ack_wait) == (delivery.most_pending, delivery.ack_wait_s)


async def test_missing_rows_of_an_inbox_stop_the_consumer_with_an_error(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 1)
    running_task = asyncio.create_task(billing(settings, stop))
    await until_handled(ledger, [1])
    await ledger.execute("delete from tocsin_inbox")
    await publish(settings, ledger, 1)
    with pytest.raises(Refused, match="no longer has a row of the consumer 'billing'"):
        await running_task
    assert await effects(ledger) == [1]
    assert await all_rows(ledger, "select from tocsin_inbox_ahead where seq = 2") == []

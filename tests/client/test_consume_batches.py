"""Batches: in order, each record once, one transaction per batch, a failing record alone."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import nats
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.client.failover import publish_and_fail_over
from tests.client.service import (
    billing,
    bring_up,
    dead_letters,
    delete_stream,
    effects,
    publish,
    running,
    until_acknowledged,
    until_handled,
)
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.client import (
    Delivery,
    Event,
    Events,
    Inbox,
    InvalidInput,
    KvMark,
    Undeliverable,
    consume_batches,
)
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


class Batches:
    """A handler that notes its records, and fails if one of them is to fail."""

    def __init__(self, *failing: int) -> None:
        self.failing = set(failing)
        self.calls: list[list[int]] = []

    async def __call__(self, events: list[Event], connection: Connection) -> None:
        self.calls.append([event.seq for event in events])
        async with connection.cursor() as cursor:
            await cursor.executemany(
                "insert into effect values (%s, %s)", [(event.seq, event.id) for event in events]
            )
        if bad := self.failing & {event.seq for event in events}:
            raise ValueError(f"no {min(bad)}")


def in_batches(settings: Settings, stop: asyncio.Event, handle: Any, **changes: Any) -> Any:
    wanted: dict[str, Any] = {
        "select": Events(namespace=settings.namespace),
        "handle": handle,
        "consumer": "billing",
        "keep": Inbox(settings.postgres),
        "delivery": Delivery(batch=100),
        "start": "beginning",
        "nats": settings.nats,
        "stop": stop,
        **changes,
    }
    return consume_batches(**wanted)


async def in_order_of_commit(connection: Connection) -> list[int]:
    """The effects in the order in which their transactions wrote them."""
    rows = await all_rows(connection, "select seq from effect order by xmin::text::bigint, seq")
    return [row["seq"] for row in rows]


async def test_a_backlog_is_handled_in_order_in_few_transactions(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 250)
    handle = Batches()
    async with running(in_batches(settings, stop, handle), stop=stop):
        await until_handled(ledger, range(1, 251))
        await until_acknowledged(settings)
        last = await publish(settings, ledger, 3)
        await until_handled(ledger, range(1, last + 1))
    assert [seq for call in handle.calls for seq in call] == list(range(1, 254))
    assert max(len(call) for call in handle.calls) == 100
    assert await all_rows(ledger, "select last_seq from tocsin_inbox") == [{"last_seq": 253}]
    assert await all_rows(ledger, "select from tocsin_inbox_ahead") == []


async def test_only_selected_records_are_in_a_batch(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    for owner in "abacab":
        await publish(settings, ledger, 2, owner=owner)
    handle = Batches()
    select = Events(namespace=settings.namespace, owner=["a", "c"])
    async with running(in_batches(settings, stop, handle, select=select), stop=stop):
        await until_handled(ledger, [1, 2, 5, 6, 7, 8, 9, 10])
    assert len(handle.calls) <= 3


async def test_a_failing_record_is_isolated_and_becomes_a_dead_letter(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 60)
    handle = Batches(23, 24, 60)
    delivery = Delivery(attempts=2, back_off_s=0.01)
    async with running(in_batches(settings, stop, handle, delivery=delivery), stop=stop):
        expected = sorted({*range(1, 61)} - handle.failing)
        await until_handled(ledger, expected)
        await until_acknowledged(settings)
    assert await in_order_of_commit(ledger) == expected
    letters = await dead_letters(settings)
    assert [letter.headers["Tocsin-Seq"] for letter in letters] == ["23", "24", "60"]
    assert letters[0].headers["Tocsin-Reason"] == "ValueError: no 23"
    assert letters[0].headers["Tocsin-Attempts"] == "2"
    assert handle.calls.count([23]) == 2


async def test_no_record_passes_a_failing_one_that_is_tried_again(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 20)
    handle = Batches(7)
    delivery = Delivery(attempts=1000, back_off_s=0.01, longest_back_off_s=0.01)

    async def has_tried() -> bool:
        return handle.calls.count([7]) >= 5

    async with running(in_batches(settings, stop, handle, delivery=delivery), stop=stop):
        await eventually(has_tried, "the failing record is tried again")
        assert await effects(ledger) == list(range(1, 7))
        handle.failing.clear()
        await until_handled(ledger, range(1, 21))
    assert await dead_letters(settings) == []


async def test_a_record_that_fails_for_the_last_time_can_stop_the_consumer(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 10)
    delivery = Delivery(attempts=1, when_dead="stop")
    with pytest.raises(Undeliverable, match=r"stops at record 4 .*failed 1 times \(ValueError: no 4\)"):
        await in_batches(settings, stop, Batches(4), delivery=delivery)
    assert await effects(ledger) == [1, 2, 3]
    again = asyncio.Event()
    async with running(in_batches(settings, again, Batches(), delivery=delivery), stop=again):
        await until_handled(ledger, range(1, 11))


async def test_a_message_that_is_not_a_record_becomes_a_dead_letter(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 3)
    bus = await nats.connect(settings.nats)
    for _ in range(2):
        await bus.jetstream().publish(f"{settings.subjects}.event.caused.x._._", b"?")
    await bus.close()
    async with running(in_batches(settings, stop, Batches()), stop=stop):
        await until_handled(ledger, [1, 2, 3])
        await until_acknowledged(settings)
    assert [letter.headers["Tocsin-Seq"] for letter in await dead_letters(settings)] == ["4", "5"]


async def die(task: asyncio.Task[None], monkeypatch: pytest.MonkeyPatch) -> None:
    """End a consumer as a kill does: NATS gets no answer, and redelivers after the ack wait."""

    async def answer_nothing(*_: Any, **__: Any) -> None:
        return None

    with monkeypatch.context() as killed:
        killed.setattr("nats.aio.msg.Msg.nak", answer_nothing)
        killed.setattr("tocsin.client._durable.DurableConsumer.unpin", answer_nothing)
        task.cancel()
        await asyncio.wait([task])


class Hanging(Batches):
    """A handler that never returns once it has a certain record."""

    def __init__(self, *hanging: int) -> None:
        super().__init__()
        self.hanging = set(hanging)
        self.hangs = asyncio.Event()

    async def __call__(self, events: list[Event], connection: Connection) -> None:
        await super().__call__(events, connection)
        if self.hanging & {event.seq for event in events}:
            self.hangs.set()
            await asyncio.Event().wait()


@pytest.mark.parametrize("is_killed", [True, False])
async def test_another_process_takes_over_in_order(
    settings: Settings,
    ledger: Connection,
    stop: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
    is_killed: bool,
) -> None:
    """The second process gets later records before NATS redelivers those of the first one."""
    monkeypatch.setattr("tocsin.client._durable._UNPIN_S", 1.0)
    await publish(settings, ledger, 150)
    delivery = Delivery(ack_wait_s=4.0, drain_s=0.0)
    hanging, second = Hanging(*range(1, 151)), Batches()
    first = asyncio.create_task(in_batches(settings, stop, hanging, delivery=delivery))
    await hanging.hangs.wait()
    again = asyncio.Event()
    async with running(in_batches(settings, again, second, delivery=delivery), stop=again):
        await publish(settings, ledger, 10)
        if is_killed:
            await die(first, monkeypatch)
        else:
            first.cancel()
            await asyncio.wait([first])
        await until_handled(ledger, range(1, 161))
    assert [seq for call in second.calls for seq in call] == list(range(1, 161))


async def test_a_record_that_kills_its_process_each_time_becomes_a_dead_letter_alone(
    settings: Settings, ledger: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.client._durable._UNPIN_S", 1.0)
    await publish(settings, ledger, 10)
    delivery = Delivery(attempts=2, ack_wait_s=1.0, drain_s=0.0)
    handle = Hanging(6)
    for _ in range(3):
        handle.hangs.clear()
        task = asyncio.create_task(in_batches(settings, asyncio.Event(), handle, delivery=delivery))
        async with asyncio.timeout(60):
            await handle.hangs.wait()
        await die(task, monkeypatch)
    stop = asyncio.Event()
    async with running(in_batches(settings, stop, handle, delivery=delivery), stop=stop):
        await until_handled(ledger, [1, 2, 3, 4, 5, 7, 8, 9, 10])
        await until_acknowledged(settings)
    (letter,) = await dead_letters(settings)
    assert letter.headers["Tocsin-Seq"] == "6"
    assert "2 attempts began, and the process ended" in letter.headers["Tocsin-Reason"]
    assert handle.calls.count([6]) == 2


async def test_two_processes_handle_each_record_once_and_in_order(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    handles = [Batches(), Batches()]
    await publish(settings, ledger, 1)
    delivery = Delivery(ack_wait_s=2.0, batch=7)
    consumers = [in_batches(settings, stop, handle, delivery=delivery) for handle in handles]
    async with running(*consumers, stop=stop):
        for _ in range(5):
            last = await publish(settings, ledger, 20)
        await until_handled(ledger, range(1, last + 1))
    assert await in_order_of_commit(ledger) == list(range(1, last + 1))


async def test_a_change_between_single_records_and_batches_repeats_nothing(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    """Also while both run, as during a deployment."""
    last = 0
    for concurrency in (4, None, 1, None, 4):
        again = asyncio.Event()
        last = await publish(settings, ledger, 20)
        consumer = (
            in_batches(settings, again, Batches())
            if concurrency is None
            else billing(settings, again, delivery=Delivery(concurrency=concurrency, ack_wait_s=2.0))
        )
        async with running(consumer, stop=again):
            await until_handled(ledger, range(1, last + 1))
    both = [
        in_batches(settings, stop, Batches(), delivery=Delivery(ack_wait_s=1.0)),
        billing(settings, stop, delivery=Delivery(concurrency=4, ack_wait_s=1.0)),
    ]
    async with running(*both, stop=stop):
        last = await publish(settings, ledger, 100)
        await until_handled(ledger, range(1, last + 1))


async def test_a_rebuilt_stream_is_continued(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 20)
    async with running(in_batches(settings, stop, Batches()), stop=stop):
        await until_handled(ledger, range(1, 21))
        await delete_stream(settings)
        await bring_up(settings)
        last = await publish(settings, ledger, 20)
        await until_handled(ledger, range(1, last + 1))


@hypothesis_settings(max_examples=5)
@given(seed=st.integers(0, 2**32), batch=st.sampled_from([2, 5, 100]), processes=st.integers(1, 2))
async def test_random_losses_and_failures_leave_each_record_with_one_effect(
    settings: Settings,
    ledger: Connection,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    batch: int,
    processes: int,
) -> None:
    monkeypatch.setattr("tocsin.client._consumer_loop._CHECK_MARK_S", 0.0)
    chance = random.Random(seed)
    await ledger.execute("truncate effect, tocsin_inbox, tocsin_inbox_ahead")
    consumer = f"billing-{seed}-{batch}-{processes}"
    first = await publish(settings, ledger, 1)
    stop = asyncio.Event()
    noted = Batches()

    async def sometimes(events: list[Event], connection: Connection) -> None:
        await noted(events, connection)
        if chance.random() < 0.2:
            raise ValueError("by chance")

    delivery = Delivery(batch=batch, back_off_s=0.01, longest_back_off_s=0.02, attempts=1000, ack_wait_s=1.0)
    options = {"delivery": delivery, "consumer": consumer, "start": first}
    consumers = [in_batches(settings, stop, sometimes, **options) for _ in range(processes)]
    async with running(*consumers, stop=stop):
        last = await publish_and_fail_over(settings, ledger, chance, consumer, first, at_once=12)
        await until_handled(ledger, range(first, last + 1), within=40)
        await until_acknowledged(settings, consumer)
    assert await effects(ledger) == list(range(first, last + 1))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keep": KvMark()}, "has no transaction for a batch"),
        ({"delivery": Delivery(concurrency=2)}, "concurrency=2 is not possible with batches"),
    ],
)
async def test_an_invalid_argument_is_rejected(
    settings: Settings, stop: asyncio.Event, changes: dict[str, Any], message: str
) -> None:
    async def handle(*_: Any) -> None:
        raise AssertionError

    with pytest.raises(InvalidInput, match=message):
        await in_batches(settings, stop, handle, **changes)

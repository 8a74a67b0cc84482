"""A stop finishes and acknowledges the records in progress, and returns the others in time."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import nats
import pytest
from nats.aio.msg import Msg

from tests.cancellation import Answers
from tests.client.service import billing, effects, note, publish, running, until_acknowledged, until_handled
from tests.wait import eventually
from tocsin.client import Delivery, Event
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.pull import Puller
from tocsin.core.settings import Settings


class Gate:
    """A handler that waits at a gate and counts the calls that wait or were cancelled there."""

    def __init__(self) -> None:
        self.inside = 0
        self.cancelled = 0
        self.opened = asyncio.Event()

    async def __call__(self, event: Event, connection: Connection) -> None:
        self.inside += 1
        await note(event, connection)
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def wait_for(self, count: int) -> None:
        async def are_inside() -> bool:
            return self.inside == count

        await eventually(are_inside, f"{count} handlers are at work")


async def pending(settings: Settings) -> tuple[int, int]:
    """The numbers of unacknowledged and of undelivered records."""
    bus = await connect_bus(settings, "test")
    try:
        info = await bus.jetstream(timeout=10).consumer_info(settings.stream, "billing")
        return info.num_ack_pending or 0, info.num_pending or 0
    finally:
        await bus.close()


@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_a_stop_lets_running_handlers_finish(
    settings: Settings, ledger: Connection, stop: asyncio.Event, how: str
) -> None:
    await publish(settings, ledger, 10)
    gate = Gate()
    task = asyncio.create_task(billing(settings, stop, handle=gate, delivery=Delivery(concurrency=3)))
    await gate.wait_for(3)
    stop.set() if how == "stop" else task.cancel()
    await asyncio.wait([task], timeout=0.05)
    assert not task.done()
    gate.opened.set()
    async with asyncio.timeout(10):
        await asyncio.wait([task])
    assert task.cancelled() is (how == "cancel")
    assert await effects(ledger) == [1, 2, 3]
    assert (gate.inside, gate.cancelled) == (3, 0)

    async def is_acknowledged() -> bool:
        unacknowledged, never_delivered = await pending(settings)
        assert never_delivered == 7, "the others were never taken"
        return unacknowledged == 0

    await eventually(is_acknowledged, "nothing waits for its time-out", within=15)


@pytest.mark.parametrize("how", ["time", "second cancellation"])
async def test_a_handler_that_does_not_finish_is_cancelled_and_its_record_returned(
    settings: Settings, ledger: Connection, stop: asyncio.Event, how: str
) -> None:
    await publish(settings, ledger, 3)
    gate = Gate()
    drain_s = 0.05 if how == "time" else 60.0
    task = asyncio.create_task(
        billing(settings, stop, handle=gate, delivery=Delivery(concurrency=2, drain_s=drain_s))
    )
    await gate.wait_for(2)
    task.cancel()
    if how == "second cancellation":

        async def is_draining() -> bool:
            return task.cancelling() == 1

        await eventually(is_draining, "it drains")
        await asyncio.wait([task], timeout=0.2)
        task.cancel()
    async with asyncio.timeout(10):
        with suppress(asyncio.CancelledError):
            await task
    assert gate.cancelled == 2
    assert await effects(ledger) == []
    # Returned at once: the next process does not wait for the ack wait of thirty seconds.
    async with running(billing(settings, stop), stop=stop):
        await until_handled(ledger, [1, 2, 3], within=15)
        await until_acknowledged(settings)


async def test_pulled_records_are_returned_even_if_nats_ends_the_subscription_slowly(
    settings: Settings, ledger: Connection, stop: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish(settings, ledger, 1)
    monkeypatch.setattr("tocsin.core.service._CANCEL_AGAIN_S", 60.0)
    drain, next_batch = Puller.drain, Puller.next_batch
    has_arrived, may_drain = asyncio.Event(), asyncio.Event()

    async def drain_slowly(puller: Puller) -> list[Msg]:
        await may_drain.wait()
        return await drain(puller)

    async def arrive_and_wait(
        puller: Puller, timeout_s: float = 1.0, at_most: int | None = None
    ) -> list[Msg]:
        await puller._request_batch()
        await puller._arrival.wait()
        has_arrived.set()
        await asyncio.Event().wait()
        return await next_batch(puller, timeout_s, at_most)

    with monkeypatch.context() as slow:
        slow.setattr(Puller, "drain", drain_slowly)
        slow.setattr(Puller, "next_batch", arrive_and_wait)
        task = asyncio.create_task(billing(settings, stop))
        await has_arrived.wait()
        task.cancel()
        await asyncio.wait([task], timeout=1.5)
        assert not task.done()
        may_drain.set()
        await asyncio.wait([task])
    assert task.cancelled()
    async with running(billing(settings, stop), stop=stop):
        await until_handled(ledger, [1], within=20)  # sooner than the ack wait of thirty seconds


async def test_an_idle_consumer_stops_at_once(
    settings: Settings, ledger: Connection, stop: asyncio.Event
) -> None:
    await publish(settings, ledger, 1)
    task = asyncio.create_task(billing(settings, stop))
    await until_handled(ledger, [1])
    await until_acknowledged(settings)
    stop.set()
    async with asyncio.timeout(20):
        await task


async def test_repeated_stops_and_starts_lose_and_repeat_no_record(
    settings: Settings, ledger: Connection
) -> None:
    """Each stop reaches the loop at another point."""
    total = 120
    await publish(settings, ledger, total)
    for number in range(1, 11):
        stop = asyncio.Event()
        delivery = Delivery(concurrency=1 + number % 3)
        task = asyncio.create_task(billing(settings, stop, delivery=delivery))

        async def has_progressed(least: int = number * 7) -> bool:
            return len(await effects(ledger)) >= least

        await eventually(has_progressed, "some are handled")
        stop.set() if number % 2 else task.cancel()
        async with asyncio.timeout(10):
            await asyncio.wait([task])
    last = asyncio.Event()
    async with running(billing(settings, last), stop=last):
        await until_handled(ledger, range(1, total + 1), within=20)


@pytest.mark.parametrize("whose", ["ours", "the service's own"])
async def test_a_cancellation_that_arrives_together_with_an_answer_ends_the_consumer(
    settings: Settings, ledger: Connection, stop: asyncio.Event, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """At any answer during the start."""
    client = await nats.connect(settings.nats)
    changes = {} if whose == "ours" else {"nats": client}
    answers = Answers(monkeypatch)
    for last in (1, 2):  # the first start creates what later starts find
        await publish(settings, ledger, 1)
        stop.clear()
        async with running(billing(settings, stop, **changes), stop=stop) as (task,):
            answers.watch(task)
            await until_handled(ledger, range(1, last + 1))
            at_start = answers.count
    assert at_start >= 4
    for number in range(1, at_start + 1):
        task = asyncio.create_task(billing(settings, asyncio.Event(), **changes))
        answers.watch(task, cancel_at=number)
        async with asyncio.timeout(10):
            await asyncio.wait([task])
        assert task.cancelled(), f"at answer {number}"
    await client.close()

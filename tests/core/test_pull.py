"""A pull returns at once, survives a restart of NATS, and fails if its consumer is deleted."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, StorageType, StreamConfig

from tests.wait import eventually
from tocsin.core.bus import connect_bus
from tocsin.core.pull import ConsumerGone, Puller
from tocsin.core.settings import Settings
from tocsin.embedded import Nats, embedded_nats


@pytest.fixture
def own_nats(tmp_path: Path) -> Iterator[Nats]:
    with embedded_nats(tmp_path) as started:
        yield started


@pytest.fixture
async def bus(own_nats: Nats) -> AsyncIterator[Client]:
    connected = await connect_bus(Settings(nats=own_nats.url), "test")
    yield connected
    await connected.close()


async def open_puller(bus: Client, batch: int) -> Puller:
    js = bus.jetstream(timeout=10)
    await js.add_stream(StreamConfig(name="S", subjects=["s.>"], storage=StorageType.FILE))
    await js.add_consumer("S", ConsumerConfig(durable_name="c", ack_policy=AckPolicy.EXPLICIT, ack_wait=30))
    return await Puller.open(bus, "S", "c", batch)


async def send(bus: Client, *bodies: str) -> None:
    for body in bodies:
        await bus.jetstream(timeout=10).publish("s.x", body.encode())


async def pull(puller: Puller, count: int) -> list[str]:
    """The next messages, acknowledged, however many batches they take."""
    messages: list[Msg] = []

    async def are_there() -> bool:
        messages.extend(await puller.next_batch())
        return len(messages) >= count

    await eventually(are_there, f"{count} messages come", within=30)
    for message in messages:
        await message.ack()
    return [message.data.decode() for message in messages]


def hold_back(monkeypatch: pytest.MonkeyPatch, on_its_way: asyncio.Event | None = None) -> asyncio.Event:
    """Hold back the messages of the server until the event is set."""
    let_in = asyncio.Event()
    receive = Puller._receive

    async def receive_late(puller: Puller, message: Msg) -> None:
        if on_its_way is not None:
            on_its_way.set()
        await let_in.wait()
        await receive(puller, message)

    monkeypatch.setattr(Puller, "_receive", receive_late)
    return let_in


async def test_one_message_is_returned_without_waiting_for_a_full_batch(bus: Client) -> None:
    puller = await open_puller(bus, 100)
    await send(bus, "a")
    began = time.monotonic()
    (message,) = await puller.next_batch(timeout_s=60)
    assert (message.data, message.subject) == (b"a", "s.x")
    assert time.monotonic() - began < 30


async def test_messages_that_have_arrived_are_returned_together_and_in_order(bus: Client) -> None:
    puller = await open_puller(bus, 4)
    await send(bus, *"abcdefghij")
    assert await pull(puller, 10) == list("abcdefghij")


async def test_a_batch_is_never_larger_than_requested(bus: Client) -> None:
    puller = await open_puller(bus, 3)
    await send(bus, *"abcdefgh")
    sizes = []

    async def are_there() -> bool:
        sizes.append(len(await puller.next_batch()))
        return sum(sizes) == 8

    await eventually(are_there, "all messages come")
    assert max(sizes) <= 3
    # Answers to two requests may have arrived meanwhile.
    for _ in range(5):
        await puller._receive(Msg(_client=bus, subject="s.x", data=b"x"))
    assert [len(await puller.next_batch()) for _ in range(2)] == [3, 2]


async def test_no_message_in_time_is_an_empty_batch(bus: Client) -> None:
    puller = await open_puller(bus, 3)
    assert await puller.next_batch(timeout_s=0.05) == []
    await send(bus, "a")
    assert await pull(puller, 1) == ["a"]


async def test_one_request_serves_many_batches(bus: Client) -> None:
    puller = await open_puller(bus, 100)
    for letter in "abcdef":
        await send(bus, letter)
        assert await pull(puller, 1) == [letter]
    info = await bus.jetstream(timeout=10).consumer_info("S", "c")
    assert (puller._request, info.num_waiting) == (1, 1)


async def test_an_expired_request_is_followed_by_one_other(
    bus: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.core.pull._EXPIRES_S", 0.1)
    puller = await open_puller(bus, 5)

    async def has_asked_again() -> bool:
        return not await puller.next_batch() and puller._request >= 4

    await eventually(has_asked_again, "it asks again")
    await send(bus, "a")
    assert await pull(puller, 1) == ["a"]
    info = await bus.jetstream(timeout=10).consumer_info("S", "c")
    assert (info.num_waiting or 0) <= 1


async def test_the_end_of_an_older_request_does_not_end_the_newer(
    bus: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_in = hold_back(monkeypatch)
    monkeypatch.setattr("tocsin.core.pull._EXPIRES_S", 0.3)
    puller = await open_puller(bus, 5)
    await puller.next_batch(timeout_s=0.01)
    monkeypatch.setattr("tocsin.core.pull._EXPIRES_S", 60.0)
    puller._requested_s = -1e9  # as if it had been lost
    await puller.next_batch(timeout_s=0.01)
    assert puller._request == 2
    let_in.set()

    async def has_ended() -> bool:
        return bool(puller._arrived)

    await eventually(has_ended, "the older request ends")
    assert (puller._arrived[0].headers or {})["Status"] == "408"
    assert await puller.next_batch(timeout_s=0.01) == []
    await puller.next_batch(timeout_s=0.01)
    assert puller._request == 2


async def test_after_a_restart_of_nats_messages_are_requested_at_once(
    bus: Client, own_nats: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.core.pull._LOST_S", 3600.0)
    puller = await open_puller(bus, 100)
    await send(bus, "a")
    assert await pull(puller, 1) == ["a"]
    asked_s = puller._requested_s
    own_nats.kill()
    own_nats.start()

    async def is_back() -> bool:
        return bus.is_connected and bus.stats["reconnects"] > 0

    await eventually(is_back, "the client reconnects")
    await send(bus, "b")

    async def arrives() -> bool:
        # The first message may be redelivered: its acknowledgement may be lost with the server.
        return "b" in [message.data.decode() for message in await puller.next_batch()]

    await eventually(arrives, "the message comes")
    assert puller._requested_s > asked_s


@pytest.mark.parametrize("gone", ["consumer", "stream"])
async def test_a_deleted_consumer_is_an_error(bus: Client, gone: str) -> None:
    puller = await open_puller(bus, 10)
    assert await puller.next_batch(timeout_s=0.05) == []
    js = bus.jetstream(timeout=10)
    await (js.delete_consumer("S", "c") if gone == "consumer" else js.delete_stream("S"))

    async def is_gone() -> bool:
        try:
            await puller.next_batch()
        except ConsumerGone as error:
            return "'c' is gone" in str(error)
        return False

    await eventually(is_gone, "the consumer is gone")


async def test_a_cancellation_that_meets_a_message_is_not_lost(bus: Client) -> None:
    puller = await open_puller(bus, 10)
    waiting = asyncio.create_task(puller.next_batch(timeout_s=60))

    async def has_asked() -> bool:
        return bool((await bus.jetstream(timeout=10).consumer_info("S", "c")).num_waiting == 1)

    await eventually(has_asked, "it waits")
    message = Msg(_client=bus, subject="s.x", data=b"a")
    await puller._receive(message)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert await puller.next_batch() == [message]


async def test_a_consumer_that_never_existed_is_an_error(bus: Client) -> None:
    puller = await Puller.open(bus, "S", "c", 10)
    with pytest.raises(ConsumerGone, match="503"):
        await puller.next_batch(timeout_s=20)


def test_a_consumer_without_a_leader_is_described_in_one_line() -> None:
    """nats-py leaves the subject in the description of a cluster that has lost its majority."""
    puller = Puller(cast(Client, None), "$JS.API.CONSUMER.MSG.NEXT.tocsin-report.reports", "inbox", 1)
    puller._leaderless_until_s = 0.0
    headers = {"Status": "503", "Description": "\nNats-Subject: $JS.API.CONSUMER.MSG.NEXT.x.reports"}
    message = Msg(cast(Client, None), "inbox.0", data=b"", headers=headers)
    with pytest.raises(ConsumerGone) as gone:
        puller._is_message(message)
    assert str(gone.value) == (
        "the consumer 'reports' does not answer (503): it was removed, or too few servers of the cluster run"
    )


async def test_messages_in_transit_during_a_drain_are_returned(
    bus: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise no process would have them until the ack wait has passed."""
    on_its_way = asyncio.Event()
    let_in = hold_back(monkeypatch, on_its_way)
    puller = await open_puller(bus, 5)
    await puller.next_batch(timeout_s=0.01)
    await send(bus, "a", "b")
    await on_its_way.wait()
    draining = asyncio.create_task(puller.drain())
    await asyncio.wait([draining], timeout=0.05)
    let_in.set()
    assert [message.data for message in await draining] == [b"a", b"b"]


async def test_no_more_messages_are_requested_than_fit(bus: Client) -> None:
    puller = await open_puller(bus, 10)
    await send(bus, *"abcdef")
    assert [message.data for message in await puller.next_batch(at_most=2)] in ([b"a", b"b"], [b"a"])

    async def has_two() -> bool:
        return bool((await bus.jetstream(timeout=10).consumer_info("S", "c")).num_ack_pending == 2)

    await eventually(has_two, "the two that were asked for are delivered")


async def test_a_consumer_that_has_no_leader_at_first_is_asked_again(
    bus: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server answers as if the consumer were missing, which it is here until the first answer."""
    monkeypatch.setattr("tocsin.core.pull._LEADERLESS_S", 60.0)
    js = bus.jetstream(timeout=10)
    await js.add_stream(StreamConfig(name="S", subjects=["s.>"], storage=StorageType.FILE))
    puller = await Puller.open(bus, "S", "c", 5)
    pulling = asyncio.create_task(puller.next_batch(timeout_s=60))

    async def has_asked_again() -> bool:
        return puller._request > 1 or pulling.done()

    await eventually(has_asked_again, "the puller asks again")
    await js.add_consumer("S", ConsumerConfig(durable_name="c", ack_policy=AckPolicy.EXPLICIT, ack_wait=30))
    await send(bus, "a")
    assert [message.data for message in await pulling] == [b"a"]
    await js.delete_consumer("S", "c")
    with pytest.raises(ConsumerGone):
        await pull(puller, 1)


async def open_pinned(bus: Client, clients: int) -> list[Puller]:
    await open_puller(bus, 2)
    config = {
        "durable_name": "c",
        "ack_policy": "explicit",
        "ack_wait": 30_000_000_000,
        "priority_groups": ["batches"],
        "priority_policy": "pinned_client",
        "priority_timeout": 1_000_000_000,
    }
    body = json.dumps({"stream_name": "S", "config": config}).encode()
    await bus.request("$JS.API.CONSUMER.CREATE.S.c", body, timeout=10)
    return [await Puller.open(bus, "S", "c", 2, group="batches") for _ in range(clients)]


async def test_one_client_of_a_group_gets_the_messages_until_it_requests_nothing(bus: Client) -> None:
    first, second = await open_pinned(bus, 2)
    await send(bus, "a", "b")
    assert await pull(first, 2) == ["a", "b"]
    assert first.is_pinned
    await send(bus, "c", "d")
    # The first requests nothing: its pin expires.
    assert await pull(second, 2) == ["c", "d"]
    assert second.is_pinned
    assert await first.next_batch(0.0) == []

    async def is_rejected() -> bool:
        assert await first.next_batch(0.1) == []
        return not first.is_pinned

    await eventually(is_rejected, "the first client learns that it is no longer pinned")
    await send(bus, "e", "f")
    assert await pull(second, 2) == ["e", "f"]


async def test_a_request_that_the_consumer_rejects_is_an_error(bus: Client) -> None:
    """Another process has changed the consumer. Requests without end would be the alternative."""
    puller = await open_puller(bus, 2)
    await open_pinned(bus, 0)
    with pytest.raises(ConsumerGone, match="rejects the request: 400 Bad Request - Priority Group missing"):
        await pull(puller, 1)

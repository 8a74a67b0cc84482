"""A producer waits for acknowledgements, keeps order, limits its backlog and reports failures."""

from __future__ import annotations

import asyncio
import json
import math
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rules.lanes.data_stream import ensure_data_stream
from rules.lanes.external_events import ingest_stream_config
from schemas.wire.ingest_event import read_ingest_event
from tests.cdc.published_records import smaller
from tests.rules.lanes.lane_setup import jetstream
from tocsin.client import InvalidInput, Producer, emit, send
from tocsin.core.errors import Unreachable
from tocsin.core.settings import Settings
from tocsin.core.streams import ensure
from tocsin.embedded import Nats, embedded_nats

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


@pytest.fixture
def own_nats(tmp_path: Path) -> Iterator[Nats]:
    with embedded_nats(tmp_path) as started:
        yield started


async def make_streams(settings: Settings) -> None:
    async with jetstream(settings) as js:
        await ensure_data_stream(js, settings, 1)
        await ensure(js, ingest_stream_config(settings))


async def stored(settings: Settings, stream: str) -> list[tuple[str, Any]]:
    async with jetstream(settings) as js:
        last = (await js.stream_info(stream)).state.last_seq
        messages = [await js.get_msg(stream, seq) for seq in range(1, last + 1)]
    return [(str(message.subject), json.loads(message.data or b"")) for message in messages]


async def datapoints(settings: Settings) -> list[tuple[str, dict[str, Any]]]:
    """(owner's token, datapoint), in stream order."""
    return [
        (subject.split(".")[4], one)
        for subject, body in await stored(settings, settings.data_stream)
        for one in body["batch"]
    ]


async def test_all_data_is_stored_when_the_block_ends(settings: Settings) -> None:
    await make_streams(settings)
    async with Producer(settings) as producer:
        await producer.send("plant 7", "dsp.temperature", 66.5, ts=T0, labels={"zone": "north"})
        await producer.send("plant 7", "door", "open")
        await producer.send("x", "on", True)
    sent = await datapoints(settings)
    assert ("x", {"key": "on", "value": True}) in sent
    assert [one for owner, one in sent if owner == "plant%207"] == [
        {
            "key": "dsp.temperature",
            "value": 66.5,
            "ts": "2026-03-02T08:00:00Z",
            "labels": {"zone": "north"},
        },
        {"key": "door", "value": "open"},
    ]


async def test_datapoints_of_an_owner_keep_their_order_and_share_messages(settings: Settings) -> None:
    await make_streams(settings)
    async with Producer(settings) as producer:
        for number in range(3_000):
            await producer.send(f"plant-{number % 3}", "n", number)
        await producer.flush()
        sent = await datapoints(settings)
        assert len(sent) == 3_000
    for owner in range(3):
        mine = [one["value"] for token, one in sent if token == f"plant-{owner}"]
        assert mine == list(range(owner, 3_000, 3))
    assert len(await stored(settings, settings.data_stream)) < 300


async def test_a_producer_waits_for_pending_acknowledgements(settings: Settings) -> None:
    await make_streams(settings)
    async with Producer(settings, max_waiting=5) as producer:
        highest = 0
        for number in range(60):
            await producer.send("plant", "n", number)
            highest = max(highest, producer._count)
    assert highest <= 5
    assert [one["value"] for _, one in await datapoints(settings)] == list(range(60))


async def test_large_datapoints_are_split_over_messages(settings: Settings) -> None:
    await make_streams(settings)
    async with Producer(settings) as producer:
        for number in range(400):
            await producer.send("plant", "t", f"{number}" + "é" * 2_000)
    assert len(await datapoints(settings)) == 400
    assert len(await stored(settings, settings.data_stream)) > 1


@pytest.mark.parametrize(
    ("owner", "key", "value", "more", "message"),
    [
        ("x" * 129, "a", 1, {}, "the owner"),
        ("x", "a b", 1, {}, "is not a key"),
        ("x", "", 1, {}, "no key"),
        ("x", "a", math.nan, {}, "send a finite number"),
        ("x", "a", None, {}, "the value is null"),
        ("x", "a", 2**64, {}, "beyond 64 bits"),
        ("x", "a", 1, {"ts": datetime(2026, 3, 2)}, "has no timezone: give an aware datetime"),
        ("x", "a", 1, {"labels": {"a": 5}}, "the label"),
    ],
)
async def test_a_datapoint_that_no_worker_would_accept_is_rejected_at_once(
    settings: Settings, owner: str, key: str, value: Any, more: dict[str, Any], message: str
) -> None:
    async with Producer(settings) as producer:
        with pytest.raises(InvalidInput, match=message):
            await producer.send(owner, key, value, **more)


async def test_a_missing_stream_is_reported_with_the_remedy(settings: Settings) -> None:
    producer = Producer(settings, timeout_s=0.0)
    await producer.__aenter__()
    await producer.send("plant", "a", 1)
    with pytest.raises(Unreachable, match=r"no stream takes .*: start `tocsin run worker`"):
        await producer.flush()
    await make_streams(settings)
    await producer.flush()
    await producer.__aexit__(None, None, None)
    assert [one["value"] for _, one in await datapoints(settings)] == [1], "it was kept, and sent once"


async def test_an_outage_of_nats_is_waited_out_and_nothing_is_sent_twice(
    settings: Settings, own_nats: Nats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.client.producer._ACK_S", 0.5)
    there = smaller(settings, nats=own_nats.url)
    await make_streams(there)
    async with Producer(there) as producer:
        await producer.send("plant", "n", 0)
        await producer.flush()
        own_nats.kill()
        sending = asyncio.create_task(_send_many(producer))
        own_nats.start()
        await sending
    assert [one["value"] for _, one in await datapoints(there)] == list(range(51))


async def _send_many(producer: Producer) -> None:
    for number in range(1, 51):
        await producer.send("plant", "n", number)
    await producer.flush()


async def test_an_event_is_sent_with_all_its_fields(settings: Settings) -> None:
    await make_streams(settings)
    correlation = uuid.uuid4()
    async with Producer(settings) as producer:
        id = await producer.emit(
            "order-shipped",
            owner="plant 7",
            payload={"n": 1},
            key="order-17",
            ts=T0,
            severity="high",
            correlation_id=correlation,
        )
        other = await producer.emit("order-shipped")
    ((subject, first), (_, second)) = await stored(settings, settings.ingest_stream)
    assert subject == f"{settings.subjects}.ingest.event"
    event = read_ingest_event(json.dumps(first).encode())
    assert (event.event_id, event.owner, event.payload, event.ts) == (id, "plant 7", {"n": 1}, T0)
    assert (event.severity, event.correlation_id) == ("high", correlation)
    assert read_ingest_event(json.dumps(second).encode()).event_id == other != id


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "a b"}, "type is 'a b': use letters"),
        ({"type": "a", "payload": {"x": object()}}, "the payload is not JSON"),
        ({"type": "a", "payload": {"x": math.inf}}, "the payload is not JSON"),
        ({"type": "a", "payload": {"x": "\0"}}, r"U\+0000"),
        ({"type": "a", "ts": datetime(2026, 3, 2)}, "has no timezone"),
        ({"type": "a", "severity": "hot"}, "unknown severity"),
        ({"type": "a", "payload": {"x": "x" * 300_000}}, "send at most"),
    ],
)
async def test_an_event_that_no_worker_would_accept_is_rejected_at_once(
    settings: Settings, fields: dict[str, Any], message: str
) -> None:
    async with Producer(settings) as producer:
        with pytest.raises(InvalidInput, match=message):
            await producer.emit(**fields)


async def test_one_call_sends_one_datapoint_or_event(settings: Settings) -> None:
    await make_streams(settings)
    await send("plant", "a", 1, settings=settings)
    id = await emit("order-shipped", key="k", settings=settings)
    assert await emit("order-shipped", key="k", settings=settings) == id
    assert len(await datapoints(settings)) == 1
    sent = [body["id"] for _, body in await stored(settings, settings.ingest_stream)]
    assert sent == ["k", "k"], "a worker appends one of them"


async def test_a_stranger_cannot_take_the_message_id_of_an_event(settings: Settings) -> None:
    """JetStream drops a message whose `Nats-Msg-Id` it has seen, whatever its content."""
    async with jetstream(settings) as js, Producer(settings) as producer:
        await ensure(js, ingest_stream_config(settings))
        subject = f"{settings.subjects}.ingest.event"
        await js.publish(subject, b"{}", headers={"Nats-Msg-Id": "order-17/paid"})
        await producer.emit("order-paid", owner="shop", key="order-17/paid")
        assert (await js.stream_info(settings.ingest_stream)).state.messages == 2

"""The rate at which JetStream accepts messages of one process: one by one, and as a chain."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import StorageType, StreamConfig

_BODY = b"x" * 420
_CHUNK = 500
_IN_FLIGHT = 8
_EXPECTED = "Nats-Expected-Last-Sequence"


async def one_by_one(bus: Client, count: int) -> float:
    """Messages per second if each acknowledgement is awaited."""
    js = bus.jetstream()
    await _stream(bus, "one")
    began = time.perf_counter()
    for number in range(count):
        await js.publish("one.x", _BODY, headers={_EXPECTED: str(number)})
    return count / (time.perf_counter() - began)


async def raw_chain(bus: Client, count: int) -> float:
    """Messages per second if every 500th is acknowledged and at most 4,000 are in flight.

    The publisher does the same, but also reads and encodes records.
    """
    await _stream(bus, "raw")
    acknowledged: deque[asyncio.Future[int]] = deque()
    waiting: dict[str, asyncio.Future[int]] = {}
    inbox = bus.new_inbox()

    async def acknowledge(message: Msg) -> None:
        waiting.pop(message.subject).set_result(int(json.loads(message.data)["seq"]))

    await bus.subscribe(f"{inbox}.*", cb=acknowledge)
    began = time.perf_counter()
    for number in range(1, count + 1):
        reply = ""
        if number % _CHUNK == 0 or number == count:
            reply = f"{inbox}.{number}"
            waiting[reply] = asyncio.get_running_loop().create_future()
            acknowledged.append(waiting[reply])
        await bus.publish("raw.x", _BODY, reply=reply, headers={_EXPECTED: str(number - 1)})
        if len(acknowledged) > _IN_FLIGHT:
            await acknowledged.popleft()
    for future in acknowledged:
        last = await future
    taken_s = time.perf_counter() - began
    assert last == count
    return count / taken_s


async def _stream(bus: Client, name: str) -> None:
    await bus.jetstream().add_stream(
        StreamConfig(name=name, subjects=[f"{name}.>"], storage=StorageType.FILE)
    )

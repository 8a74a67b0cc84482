"""Reads the record stream with plain nats-py, without code of the product."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import nats
from nats.errors import TimeoutError as NatsTimeout
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from tocsin.core.settings import Settings


@dataclass(frozen=True)
class StoredMessage:
    seq: int
    subject: str
    data: bytes
    headers: dict[str, str]


async def read_stream(
    settings: Settings, count: int, *, after: int = 0, within: float = 30.0
) -> list[StoredMessage]:
    """The next `count` messages of the record stream; fails if they do not come."""
    bus = await nats.connect(settings.nats.split(","))
    try:
        js = bus.jetstream()
        async with asyncio.timeout(within):
            subscription = None
            while subscription is None:
                try:
                    subscription = await js.pull_subscribe(
                        ">",
                        stream=settings.stream,
                        config=ConsumerConfig(
                            ack_policy=AckPolicy.NONE,
                            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                            opt_start_seq=after + 1,
                        ),
                    )
                except NotFoundError:
                    await asyncio.sleep(0.02)
            messages: list[StoredMessage] = []
            while len(messages) < count:
                try:
                    batch = await subscription.fetch(min(500, count - len(messages)), timeout=1)
                except NatsTimeout:
                    continue
                messages += [
                    StoredMessage(m.metadata.sequence.stream, m.subject, m.data, dict(m.headers or {}))
                    for m in batch
                ]
            return messages
    finally:
        await bus.close()

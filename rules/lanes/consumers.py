"""Durable consumers that all workers share: any worker may process any message.

Guarantee: all workers of a namespace share one consumer per purpose, so one worker at a time has a
message, for the ack wait. A message that is not acknowledged is delivered again.
"""

from __future__ import annotations

import asyncio

from nats.aio.client import Client
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from tocsin.core.pull import Puller
from tocsin.core.settings import Settings
from tocsin.core.streams import wait_until_stream_exists


async def open_consumer(
    bus: Client,
    settings: Settings,
    name: str,
    subject: str,
    batch: int,
    stream: str | None = None,
    arrival: asyncio.Event | None = None,
) -> Puller:
    """`stream` is the record stream unless another one is named."""
    stream = stream or settings.stream
    js = bus.jetstream(timeout=5)
    config = ConsumerConfig(
        durable_name=name,
        description=f"tocsin workers: {name}",
        filter_subject=subject,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=settings.worker_ack_wait_s,
        deliver_policy=DeliverPolicy.ALL,
        max_deliver=-1,
        max_ack_pending=10_000,
    )
    await wait_until_stream_exists(js, stream)
    await js.add_consumer(stream, config)
    return await Puller.open(bus, stream, name, batch, arrival=arrival)

"""The workers' durable consumers: messages that any worker may take.

Guarantee: all workers of a namespace share one consumer per purpose, so each message is with one worker at
a time; the ack wait is its lease. A message that no worker acknowledges comes back.
"""

from __future__ import annotations

from nats.aio.client import Client
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from tocsin.core.pull import Puller
from tocsin.core.settings import Settings
from tocsin.core.streams import wait_until_stream_exists


async def open_consumer(
    bus: Client, settings: Settings, name: str, subject: str, batch: int, stream: str | None = None
) -> Puller:
    """On the record stream, if no other is named."""
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
    return await Puller.open(bus, stream, name, batch)

"""The workers' durable consumers on the record stream.

Guarantee: all workers of a namespace share one consumer per purpose, so each message is with one worker at
a time; the ack wait is its lease. A message that no worker acknowledges comes back.
"""

from __future__ import annotations

import asyncio
import time

from nats.aio.client import Client
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from tocsin.core.errors import Unreachable
from tocsin.core.pull import Puller
from tocsin.core.settings import Settings

_PATIENCE_S = 10.0


async def open_consumer(bus: Client, settings: Settings, name: str, subject: str, batch: int) -> Puller:
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
    await _when_stream_exists(js, settings, config)
    return await Puller.open(bus, settings.stream, name, batch)


async def _when_stream_exists(js: JetStreamContext, settings: Settings, config: ConsumerConfig) -> None:
    """On a new installation the publisher makes the stream a moment after the workers start."""
    patient_until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            await js.add_consumer(settings.stream, config)
            return
        except NotFoundError:
            if time.monotonic() > patient_until:
                raise Unreachable(
                    f"the stream {settings.stream!r} does not exist yet: `tocsin run cdc` makes it"
                ) from None
        await asyncio.sleep(0.1)

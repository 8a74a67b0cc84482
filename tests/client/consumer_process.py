"""A service in its own process that kills itself. Each handled event is a row in its own table.

`python -m tests.client.consumer_process CONCURRENCY CHANCE SEED`, with the settings in the
environment. A concurrency of 0 means batches. With the given chance it dies in the handler, after
the effect and before the commit, and with the same chance after the commit and before the
acknowledgement.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys

from nats.aio.msg import Msg

from tests.client.service import note
from tocsin.client import Delivery, Event, Events, Inbox, consume, consume_batches
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

_acknowledge = Msg.ack


class MortalService:
    def __init__(self, chance: float, seed: int) -> None:
        self._chance = chance
        self._random = random.Random(seed)

    def _die_by_chance(self) -> None:
        if self._random.random() < self._chance:
            os.kill(os.getpid(), signal.SIGKILL)

    async def handle(self, event: Event, connection: Connection) -> None:
        await note(event, connection)
        self._die_by_chance()

    async def handle_batch(self, events: list[Event], connection: Connection) -> None:
        for event in events:
            await self.handle(event, connection)

    async def acknowledge(self, message: Msg) -> None:
        self._die_by_chance()
        await _acknowledge(message)


async def main(settings: Settings, concurrency: int, service: MortalService) -> None:
    setattr(Msg, "ack", lambda message: service.acknowledge(message))  # noqa: B010
    if concurrency == 0:
        await consume_batches(
            Events(),
            service.handle_batch,
            consumer="billing",
            keep=Inbox(settings.postgres),
            start="beginning",
            delivery=Delivery(batch=20, ack_wait_s=1.0, attempts=100, back_off_s=0.01),
        )
        return
    await consume(
        Events(),
        service.handle,
        consumer="billing",
        keep=Inbox(settings.postgres),
        start="beginning",
        delivery=Delivery(concurrency=concurrency, ack_wait_s=1.0, attempts=100, back_off_s=0.01),
    )


if __name__ == "__main__":
    asyncio.run(main(Settings(), int(sys.argv[1]), MortalService(float(sys.argv[2]), int(sys.argv[3]))))

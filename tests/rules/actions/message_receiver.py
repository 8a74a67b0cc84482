"""A receiver of published messages: a plain subscriber of `received.<namespace>.>`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats
from nats.aio.msg import Msg

from tests.wait import eventually
from tocsin.core.settings import Settings

KEY = "Tocsin-Idempotency-Key"


class Receiver:
    def __init__(self) -> None:
        self.messages: list[Msg] = []

    async def receive(self, message: Msg) -> None:
        self.messages.append(message)

    async def wait_for(self, count: int, within: float = 60.0) -> None:
        async def are_there() -> bool:
            return len(self.messages) >= count

        await eventually(are_there, f"{count} deliveries", within)

    @property
    def keys(self) -> list[str]:
        return [(message.headers or {})[KEY] for message in self.messages]


@asynccontextmanager
async def receiver(settings: Settings) -> AsyncIterator[Receiver]:
    bus = await nats.connect(settings.nats)
    one = Receiver()
    await bus.subscribe(f"received.{settings.namespace}.>", cb=one.receive)
    await bus.flush()
    try:
        yield one
    finally:
        await bus.close()

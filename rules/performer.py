"""The performer: takes steps from the stream and does several at once.

Guarantee: a message is acknowledged after its outcome is committed. While a step runs, the server is told that it is
being worked on, so that a slow step is not given to a second worker. At most `worker_concurrency` steps run at once,
and one that is slow holds up no other.

On failure: one error ends them all, and the service starts again. What was not acknowledged comes back: at once after
a clean end, after the ack wait when the process died.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from rules import perform
from rules.consumers import open_consumer
from rules.delivery.egress import Egress
from rules.steps.task import World
from tocsin.core.bus import connect_bus
from tocsin.core.db import pool
from tocsin.core.pull import Puller
from tocsin.core.service import end_tasks
from tocsin.core.settings import Settings

# Sessions of Postgres: a step needs one only to read and to commit.
_SESSIONS = 8


class Performer:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._egress = Egress.of(settings)
        self._held: dict[asyncio.Task[None], Msg] = {}

    async def run(self) -> None:
        settings = self._settings
        bus = await connect_bus(settings, "worker perform")
        try:
            async with pool(
                settings, "worker perform", min(_SESSIONS, settings.worker_concurrency)
            ) as sessions:
                subject = f"{settings.subjects}.action.>"
                batch = min(settings.worker_batch, settings.worker_concurrency)
                puller = await open_consumer(bus, settings, "actions", subject, batch)
                await self._work(World(settings, bus, sessions.connection, self._egress), puller)
        finally:
            with suppress(NatsError, OSError):  # the server may be gone
                await bus.close()

    async def _work(self, world: World, puller: Puller) -> None:
        free = asyncio.Semaphore(self._settings.worker_concurrency)
        keeping = asyncio.create_task(self._keep(), name="keep")
        try:
            while True:
                for message in await puller.next_batch():
                    await free.acquire()
                    task = asyncio.create_task(_one(world, message), name="step")
                    task.add_done_callback(lambda _: free.release())
                    self._held[task] = message
                self._raise_failure(keeping)
        finally:
            await self._give_back(keeping)

    def _raise_failure(self, keeping: asyncio.Task[None]) -> None:
        for task in [task for task in self._held if task.done()]:
            task.result()
            del self._held[task]
        if keeping.done():
            keeping.result()

    async def _keep(self) -> None:
        """What is being worked on is not given to anybody else."""
        while True:
            await asyncio.sleep(self._settings.worker_ack_wait_s / 3)
            for task, message in list(self._held.items()):
                if not task.done():
                    await message.in_progress()

    async def _give_back(self, keeping: asyncio.Task[None]) -> None:
        """Steps that are not done are for others, at once."""
        undone = [message for task, message in self._held.items() if not task.done()]
        await end_tasks([keeping, *self._held])
        self._held.clear()
        with suppress(NatsError, OSError):
            for message in undone:
                await message.nak()


async def _one(world: World, message: Msg) -> None:
    await perform.perform(world, message.data)
    await message.ack()

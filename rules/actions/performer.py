"""The performer: takes steps from the stream and does several at once.

Guarantee: a message is acknowledged after its outcome is committed. While a step runs, the server is told that it is
being worked on, so that a slow step is not given to a second worker. At most `worker_concurrency` steps run at once,
and one that is slow holds up no other.

On failure: one error ends them all, and the service starts again. What was not acknowledged comes back: at once, the
step that failed a moment later, and after the ack wait when the process died.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from rules.actions import perform
from rules.actions.steps.task import World
from rules.delivery.egress import Egress
from rules.lanes.consumers import open_consumer
from tocsin.core.bus import open_bus
from tocsin.core.db import pool
from tocsin.core.pull import Puller
from tocsin.core.service import beat, end_tasks
from tocsin.core.settings import Settings

# Sessions of Postgres: a step needs one only to read and to commit.
_SESSIONS = 8
_FLUSH_S = 1
# When a step that failed comes back. Its outcome is not known, so this is no retry of its own: Postgres was away.
_AGAIN_S = 1
# How long we are silent while there is no room for another step.
_FULL_S = 1


class Performer:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._egress = Egress.of(settings)
        self._held: dict[asyncio.Task[None], Msg] = {}

    async def run(self) -> None:
        settings = self._settings
        sessions_count = min(_SESSIONS, settings.worker_concurrency)
        async with (
            open_bus(settings, "worker perform") as bus,
            pool(settings, "worker perform", sessions_count) as sessions,
        ):
            subject = f"{settings.subjects}.action.>"
            batch = min(settings.worker_batch, settings.worker_concurrency)
            puller = await open_consumer(bus, settings, "actions", subject, batch)
            await self._work(World(settings, bus, sessions.connection, self._egress), puller)

    async def _work(self, world: World, puller: Puller) -> None:
        keeping = asyncio.create_task(self._keep(), name="keep")
        try:
            while True:
                beat("perform")
                self._raise_failure(keeping)
                # What is taken is begun at once: nothing waits here while its ack wait runs out.
                room = self._settings.worker_concurrency - len(self._held)
                if room == 0:
                    held = [keeping, *self._held]
                    await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED, timeout=_FULL_S)
                    continue
                for message in await puller.next_batch(at_most=room):
                    self._held[asyncio.create_task(_one(world, message), name="step")] = message
        finally:
            await self._give_back(world.bus, puller, keeping)

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

    async def _give_back(self, bus: Client, puller: Puller, keeping: asyncio.Task[None]) -> None:
        """Steps that are not done are for others."""
        undone = [message for task, message in self._held.items() if not task.done()]
        failed = [message for task, message in self._held.items() if task.done() and task.exception()]
        await end_tasks([keeping, *self._held])
        self._held.clear()
        with suppress(NatsError, OSError, TimeoutError):
            # First the request is withdrawn, or what is given back would come back to us.
            undone += await puller.drain()
            for message in undone:
                await message.nak()
            for message in failed:
                await message.nak(delay=_AGAIN_S)
            await bus.flush(timeout=_FLUSH_S)


async def _one(world: World, message: Msg) -> None:
    await perform.perform(world, message.data)
    await message.ack()

"""Due steps in the order in which a worker begins them: urgent ones first.

Guarantee: a step with the priority `high` begins before any other that is due, and one with `normal`
before `low`, except that one place in ten is offered to `normal` first, and one to `low`. So no
priority waits forever, however many steps of another are due. Steps of one priority begin in the order
of the log.

Each priority has a consumer of its own, which all workers share. A worker asks only for as many steps as
it can begin at once, so an urgent step is never behind others that a worker has taken already.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

from nats.aio.client import Client
from nats.aio.msg import Msg

from rules.lanes.consumers import open_consumer
from schemas.values.priority import PRIORITIES, Priority
from schemas.wire.subjects import due_steps_subject
from tocsin.core.pull import Puller
from tocsin.core.settings import Settings

CONSUMERS: dict[Priority, str] = {"high": "actions-high", "normal": "actions", "low": "actions-low"}
_CYCLE: tuple[Priority, ...] = (*("high",) * 8, "normal", "low")
"""The priority that each of ten successive places is offered to first."""
_WAIT_S = 1.0


def offered(begun: int, free: int) -> Counter[Priority]:
    """How many of the free places each priority is offered first. `begun`: places filled before."""
    return Counter(_CYCLE[(begun + place) % len(_CYCLE)] for place in range(free))


class DueSteps:
    def __init__(self, pullers: dict[Priority, Puller], arrival: asyncio.Event) -> None:
        self._pullers = pullers
        self._arrival = arrival
        self._begun = 0

    @classmethod
    async def open(cls, bus: Client, settings: Settings) -> DueSteps:
        arrival = asyncio.Event()
        batch = min(settings.worker_batch, settings.worker_concurrency)
        pullers: dict[Priority, Puller] = {}
        for priority, name in CONSUMERS.items():
            subject = due_steps_subject(settings.subjects, None if priority == "normal" else priority)
            pullers[priority] = await open_consumer(bus, settings, name, subject, batch, arrival=arrival)
        return cls(pullers, arrival)

    async def take(self, free: int) -> list[Msg]:
        """The steps for the free places; empty if none was due for a second."""
        messages = await self._ready(free)
        if not messages:
            for puller in self._pullers.values():
                await puller.listen()
            await self._wait()
            messages = await self._ready(free)
        self._begun += len(messages)
        return messages

    async def _wait(self) -> None:
        self._arrival.clear()
        if any(puller.has_arrivals for puller in self._pullers.values()):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_S):
                await self._arrival.wait()

    async def _ready(self, free: int) -> list[Msg]:
        messages: list[Msg] = []
        empty: set[Priority] = set()
        places = offered(self._begun, free)
        for priority in PRIORITIES:
            messages += await self._of(priority, places[priority], empty)
        # A place that its priority has no step for goes to the most urgent one.
        for priority in PRIORITIES:
            if priority not in empty:
                messages += await self._of(priority, free - len(messages), empty)
        return messages

    async def _of(self, priority: Priority, places: int, empty: set[Priority]) -> list[Msg]:
        if places == 0:
            return []
        messages = await self._pullers[priority].ready(places)
        if len(messages) < places:
            empty.add(priority)
        return messages

    def surplus(self) -> list[Msg]:
        """Steps that arrived for places that others took: at most one of each priority."""
        return [message for puller in self._pullers.values() for message in puller.take_arrived()]

    async def drain(self) -> list[Msg]:
        """Close, and return the messages that were delivered and not taken."""
        return [message for puller in self._pullers.values() for message in await puller.drain()]

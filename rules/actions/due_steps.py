"""Due steps in the order in which a worker begins them: urgent ones first.

Guarantee: a step with the priority `high` begins before any other that is due, and one with `normal`
before `low`, except that one place in ten is offered to `normal` first, and one to `low`. So no
priority waits forever, however many steps of another are due. Steps of one priority begin in the order
of the log.

Each priority has a consumer of its own, which all workers share. A worker asks for the steps that it can
begin at once, and for as many more as it has begun in the last second (`Ahead`): otherwise every short
step would wait for an answer of the server. What it has ahead it keeps by priority, so an urgent step
is never behind others that a worker has taken already, and returns if no place becomes free.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
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


class Ahead:
    """How many steps to ask for beyond the free places: those begun in the last second, up to a limit."""

    def __init__(self, limit: int) -> None:
        self._begun: deque[float] = deque(maxlen=limit)

    def begin(self, count: int, now_s: float) -> None:
        self._begun.extend([now_s] * count)

    def count(self, now_s: float) -> int:
        while self._begun and self._begun[0] < now_s - 1.0:
            self._begun.popleft()
        return len(self._begun)


class DueSteps:
    def __init__(self, pullers: dict[Priority, Puller], arrival: asyncio.Event, limit: int) -> None:
        self._pullers = pullers
        self._arrival = arrival
        self._begun = 0
        self._ahead = Ahead(limit)

    @classmethod
    async def open(cls, bus: Client, settings: Settings) -> DueSteps:
        arrival = asyncio.Event()
        batch = min(settings.worker_batch, settings.worker_concurrency)
        pullers: dict[Priority, Puller] = {}
        for priority, name in CONSUMERS.items():
            subject = due_steps_subject(settings.subjects, None if priority == "normal" else priority)
            pullers[priority] = await open_consumer(bus, settings, name, subject, batch, arrival=arrival)
        return cls(pullers, arrival, batch)

    async def take(self, free: int) -> list[Msg]:
        """The steps for the free places; empty if none was due for a second."""
        messages = await self._ready(free)
        if not messages:
            for puller in self._pullers.values():
                await puller.listen()
            await self._wait()
            messages = await self._ready(free)
        self._begun += len(messages)
        self._ahead.begin(len(messages), time.monotonic())
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
        puller = self._pullers[priority]
        messages = await puller.ready(places, ahead=self._ahead.count(time.monotonic()))
        if len(messages) < places:
            empty.add(priority)
            # An open request tells of the next step, so that the server is not asked for each place.
            await puller.listen()
        return messages

    def surplus(self) -> list[Msg]:
        """Steps that were taken ahead, or arrived for places that others took."""
        return [message for puller in self._pullers.values() for message in puller.take_arrived()]

    async def drain(self) -> list[Msg]:
        """Close, and return the messages that were delivered and not taken."""
        return [message for puller in self._pullers.values() for message in await puller.drain()]

"""The lanes of one worker: it joins, takes its fair share of the partitions, and drains them.

Guarantee: it drains what it holds and nothing else. A partition that it has too many is given back after the batch
under way; when it ends, all of them are, and the others are woken.

On failure of one partition (a server that is away) all are given back, and the service begins anew: another worker
that is well goes on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import psycopg
import structlog
from nats.aio.client import Client

from rules.lanes.batch_size import Pace, Paces
from rules.lanes.dead_letters import ensure_dead_letters
from rules.lanes.drain import Drain
from rules.lanes.lane import Lane
from rules.lanes.lease import Holdings
from rules.lanes.partition import Key, Lost
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection, open_session
from tocsin.core.service import beat, end_tasks
from tocsin.core.settings import Settings

_log = structlog.get_logger()
# Batches of a lane at once: while Postgres works on some, we plan others. With all of them, transactions would lie open
# for too long on a busy machine.
_AT_ONCE = 4


class Lanes:
    def __init__(self, settings: Settings, lanes: Sequence[Lane], paces: Paces | None = None) -> None:
        """`paces` are those of the lanes that these take the place of, after a failure."""
        self._settings = settings
        self._paces = Paces(Pace) if paces is None else paces
        self._lanes = {lane.name: lane for lane in lanes}
        self._drains: dict[Key, Drain] = {}
        self._turns = {lane.name: asyncio.Semaphore(_AT_ONCE) for lane in lanes}

    async def run(self) -> None:
        async with (
            open_session(self._settings, "worker lanes") as connection,
            open_bus(self._settings, "worker lanes") as bus,
        ):
            await self._work(connection, bus)

    async def _work(self, connection: Connection, bus: Client) -> None:
        js = bus.jetstream(timeout=5)
        await ensure_dead_letters(js, self._settings)
        for lane in self._lanes.values():
            await lane.open(connection, js)
        holdings = Holdings(connection, self._settings.lease_ttl_s)
        await holdings.join()
        try:
            while True:
                await self._beat(holdings, bus)
                beat("lanes")
                await holdings.rest()
        finally:
            try:
                await end_tasks([drain.task for drain in self._drains.values() if drain.task is not None])
            finally:
                self._drains.clear()
                with suppress(psycopg.OperationalError):  # the others find out when our time is up
                    await holdings.leave()

    async def _beat(self, holdings: Holdings, bus: Client) -> None:
        complete = {key: drain.complete for key, drain in self._drains.items() if drain.complete is not None}
        decision = await holdings.beat(complete)
        await self._end_lost(holdings)
        for key in decision.give:
            if key in self._drains:
                self._drains[key].leave()
        await holdings.give(self._ended())
        for key in decision.take:
            if key[0] in self._lanes and (partition := await holdings.take(key)) is not None:
                lane, turns = self._lanes[key[0]], self._turns[key[0]]
                drain = Drain(self._settings, bus, lane, partition, turns, self._paces[key])
                drain.task = asyncio.create_task(drain.run(), name=f"drain {key[0]} {key[1]}")
                self._drains[key] = drain
                _log.info("partition taken", lane=key[0], partition=key[1], holder=holdings.holder)

    async def _end_lost(self, holdings: Holdings) -> None:
        for key in [key for key in self._drains if key not in holdings.held]:
            drain = self._drains.pop(key)
            _log.warning("partition lost", lane=key[0], partition=key[1])
            if drain.task is not None:
                await end_tasks([drain.task])

    def _ended(self) -> list[Key]:
        """Drains that left as they were asked to, or found that they lost; any other end is raised."""
        ended = [key for key, drain in self._drains.items() if drain.task is not None and drain.task.done()]
        for key in ended:
            task = self._drains.pop(key).task
            assert task is not None
            with suppress(Lost):
                task.result()
        return ended

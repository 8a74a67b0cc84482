"""The lanes of one worker: it takes its fair share of the partitions and drains them.

Guarantee: it drains the partitions that it holds and no others. It releases a surplus partition
after the running batch. When it ends it releases all of them and wakes the other workers.

On failure: a partition waits out errors of Postgres alone, and the others continue. If a server is
unreachable, the worker releases all partitions, and the service starts again. A worker without the
failure continues in the meantime.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import psycopg
import structlog
from nats.aio.client import Client

from rules.lanes.batch_size import BatchSize, BatchSizes
from rules.lanes.canary import CanarySender
from rules.lanes.dead_letters import ensure_dead_letters
from rules.lanes.drain import Drain
from rules.lanes.lane import Lane
from rules.lanes.lease import Leases
from rules.lanes.partition import PartitionKey, PartitionLost
from rules.lanes.stream_pace import StreamPace
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection, open_service_session
from tocsin.core.service import beat, end_tasks
from tocsin.core.settings import Settings

_log = structlog.get_logger()
# Concurrent batches of a lane: while Postgres works on some, the worker plans others. Without a
# limit, transactions would stay open for too long on a busy machine.
_CONCURRENT_BATCHES = 4


class Lanes:
    def __init__(
        self,
        settings: Settings,
        lanes: Sequence[Lane],
        batch_sizes: BatchSizes | None = None,
        pace: StreamPace | None = None,
    ) -> None:
        """`batch_sizes` and `pace` are kept from the lanes that failed before."""
        self._settings = settings
        self._pace = StreamPace() if pace is None else pace
        self._batch_sizes = BatchSizes(BatchSize) if batch_sizes is None else batch_sizes
        self._lanes = {lane.name: lane for lane in lanes}
        self._drains: dict[PartitionKey, Drain] = {}
        self._suspects = asyncio.Lock()
        self._slots = {lane.name: asyncio.Semaphore(_CONCURRENT_BATCHES) for lane in lanes}

    async def run(self) -> None:
        async with (
            open_service_session(self._settings, "worker lanes") as connection,
            open_bus(self._settings, "worker lanes") as bus,
        ):
            await self._work(connection, bus)

    async def _work(self, connection: Connection, bus: Client) -> None:
        js = bus.jetstream(timeout=5)
        await ensure_dead_letters(js, self._settings)
        for lane in self._lanes.values():
            await lane.open(connection, js)
        leases = Leases(connection, self._settings.lease_ttl_s)
        await leases.listen()
        canaries = CanarySender(js, self._drains, self._pace)
        sending = asyncio.create_task(canaries.run(), name="canaries")
        try:
            while True:
                await self._rebalance(leases, bus, canaries)
                beat("lanes", waiting_for=self._waiting_for(bus))
                await leases.wait()
        finally:
            try:
                drains = [drain.task for drain in self._drains.values() if drain.task is not None]
                await end_tasks([sending, *drains])
            finally:
                self._drains.clear()
                with suppress(psycopg.OperationalError):  # otherwise the leases end by themselves
                    await leases.leave()

    def _waiting_for(self, bus: Client) -> str:
        """What the lanes wait for. A lost connection is reported long before a request times out."""
        if not bus.is_connected:
            return "nats is unreachable"
        problems = [drain.problem for drain in self._drains.values() if drain.problem is not None]
        return str(problems[0]) if problems else ""

    async def _rebalance(self, leases: Leases, bus: Client, canaries: CanarySender) -> None:
        watermarks = {
            key: drain.watermark for key, drain in self._drains.items() if drain.watermark is not None
        }
        assignment = await leases.renew(watermarks, canaries.errors)
        for key in leases.due & self._drains.keys():
            self._drains[key].evaluate_due()
        await self._end_lost(leases)
        for key in assignment.release:
            if key in self._drains:
                self._drains[key].leave()
        await leases.release(self._collect_ended())
        for key in assignment.take:
            if key[0] in self._lanes and (partition := await leases.take(key)) is not None:
                lane, slots = self._lanes[key[0]], self._slots[key[0]]
                size = self._batch_sizes[key]
                drain = Drain(self._settings, bus, lane, partition, slots, size, self._pace, self._suspects)
                drain.task = asyncio.create_task(drain.run(), name=f"drain {key[0]} {key[1]}")
                self._drains[key] = drain
                _log.info("partition taken", lane=key[0], partition=key[1], holder=leases.holder)

    async def _end_lost(self, leases: Leases) -> None:
        for key in [key for key in self._drains if key not in leases.held]:
            drain = self._drains.pop(key)
            _log.warning("partition lost", lane=key[0], partition=key[1])
            if drain.task is not None:
                await end_tasks([drain.task])

    def _collect_ended(self) -> list[PartitionKey]:
        """Drains that left on request or lost their partition; any other error is raised."""
        ended = [key for key, drain in self._drains.items() if drain.task is not None and drain.task.done()]
        for key in ended:
            task = self._drains.pop(key).task
            assert task is not None
            with suppress(PartitionLost):
                task.result()
        return ended

"""The loop over one partition: read, plan, commit, and report the watermark.

Guarantee: a batch is one transaction, and its first lock is the row of the partition. If the plan
is outdated, or the transaction loses a conflict, the same messages are planned again. A batch whose
error may come from a message is halved until one message is left. That message becomes a dead
letter, and the partition continues behind it.

On failure: `PartitionLost` if another worker holds the partition. An error that is not about a
message (an unreachable server) is raised, and nothing was written.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime

import structlog
from nats.aio.client import Client

from rules.lanes.batch_size import BatchSize
from rules.lanes.dead_letters import send_dead_letter
from rules.lanes.lane import Lane, LaneMessage
from rules.lanes.message_fault import is_message_fault
from rules.lanes.partition import Partition, PartitionKey
from rules.lanes.reader import Reader
from rules.metrics import LANE_BATCH, MESSAGES
from schemas.wire.dead_letter import dead_letter
from tocsin.core.db import Connection, open_service_session
from tocsin.core.errors import Conflict, TocsinError
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import LOCK_TIMEOUT, LOST_RACE

_log = structlog.get_logger()
_IDLE_S = 0.2
_TRIES = 20
# A batch should keep the worker busy for at most this part of the TTL.
_SLICES = 8
# Conflicts, and waits for the row of the partition, which an apply locks.
_RETRIED = (Conflict, *LOST_RACE, LOCK_TIMEOUT)


class Drain:
    def __init__(
        self,
        settings: Settings,
        bus: Client,
        lane: Lane,
        partition: Partition,
        slots: asyncio.Semaphore,
        batch_size: BatchSize,
    ) -> None:
        """`slots` limits the batches of the lane that are processed at once."""
        self.watermark: datetime | None = None
        """While idle: everything that arrived up to then has been read."""
        self._settings = settings
        self._bus = bus
        self._lane = lane
        self._partition = partition
        self._slots = slots
        self._batch_size = batch_size
        self._leaving = False
        self.task: asyncio.Task[None] | None = None

    @property
    def key(self) -> PartitionKey:
        return self._partition.key

    def leave(self) -> None:
        """End after the running batch."""
        self._leaving = True

    async def run(self) -> None:
        name = f"worker {self._lane.name} {self._partition.number}"
        async with open_service_session(self._settings, name) as connection:
            reader = Reader(self._bus, self._lane, self._partition, self._batch_size)
            try:
                while not self._leaving:
                    await self._run_once(connection, reader)
            finally:
                await reader.close()

    async def _run_once(self, connection: Connection, reader: Reader) -> None:
        if await reader.wait_for_message(connection, _IDLE_S):
            async with self._slots:  # messages that come during the wait for a slot join the batch
                messages = await reader.next_batch()
                if messages:
                    await self._process_timed(connection, messages)
        else:
            stored_at = await reader.find_idle_instant()
            position = self._partition.position.last_seq
            watermark = await self._lane.idle_watermark(connection, position, stored_at)
            self.watermark = watermark or self.watermark

    async def _process_timed(self, connection: Connection, messages: Sequence[LaneMessage]) -> None:
        # The time of this thread: on a crowded machine smaller batches would only make it worse.
        began_s = time.thread_time()
        try:
            await self._process(connection, messages)
        except Exception:
            self._batch_size.failed()
            raise
        self._batch_size.succeeded(time.thread_time() - began_s, self._settings.lease_ttl_s / _SLICES)

    async def _process(self, connection: Connection, messages: Sequence[LaneMessage]) -> None:
        try:
            await self._commit(connection, messages)
        except Exception as error:
            if not is_message_fault(error):
                raise
            if len(messages) > 1:
                half = len(messages) // 2
                await self._process(connection, messages[:half])
                await self._process(connection, messages[half:])
            else:
                await self._reject(connection, messages[0], error)

    async def _commit(self, connection: Connection, messages: Sequence[LaneMessage]) -> None:
        new = self._partition.drop_repeated(messages)
        watermark = self._lane.watermark_of(messages[-1])
        began_s = time.monotonic()
        for attempt in range(_TRIES):
            plan = await self._lane.plan(connection, self._partition.number, new)
            try:
                async with connection.transaction():
                    await plan.stage(connection)
                    position = await self._partition.move(connection, messages, watermark)
                    await plan.write(connection)
            except _RETRIED as conflict:
                _log.debug("batch retried", lane=self._lane.name, error=conflict)
                await asyncio.sleep(0.001 * 2 ** min(attempt, 8))
                continue
            self._partition.position = position
            plan.committed()
            MESSAGES.add(len(messages), self._lane.name)
            LANE_BATCH.observe(time.monotonic() - began_s, self._lane.name)
            return
        raise TocsinError(
            f"a batch of partition {self._partition.number} of the {self._lane.name} lane lost {_TRIES} conflicts: "
            "it is tried again"
        )

    async def _reject(self, connection: Connection, message: LaneMessage, error: Exception) -> None:
        _log.error("message rejected", lane=self._lane.name, seq=message.seq, error=error)
        reason = f"it cannot be processed: {type(error).__name__}: {error}"
        letter = dead_letter(reason, message.subject, message.at, message.data)
        identity = f"{self._lane.stream}/{message.seq}"
        js = self._bus.jetstream()
        await send_dead_letter(js, self._settings, self._lane.dead_letter_kind, letter, identity)
        async with connection.transaction():
            position = await self._partition.move(connection, [message], self._lane.watermark_of(message))
        self._partition.position = position

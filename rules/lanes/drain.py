"""Draining one partition: read, plan, commit, and say how far it is complete.

Guarantee: a batch is one transaction, and its first lock is the partition's row. When the plan was overtaken, or the
transaction lost to another one, the same messages are planned and tried again. An error that follows one message when
its batch is halved is that message's own: it becomes a dead letter, and the partition goes on behind it.

On failure: `Lost` when another worker holds the partition; anything that says nothing about the messages (a server that
is away) is raised, and nothing has happened.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import datetime

import structlog
from nats.aio.client import Client

from rules.lanes.batch_size import Pace
from rules.lanes.blame import is_message_fault
from rules.lanes.dead_letters import send_dead_letter
from rules.lanes.lane import Lane, Message
from rules.lanes.partition import Key, Partition, Position
from rules.lanes.reader import Reader
from rules.metrics import LANE_BATCH, MESSAGES
from schemas.wire.dead_letter import dead_letter
from tocsin.core.db import Connection, open_session
from tocsin.core.errors import Conflict, TocsinError
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import LOCK_TIMEOUT, LOST_RACE

_log = structlog.get_logger()
_IDLE_S = 0.2
_TRIES = 20
# A batch should keep us busy for at most this part of the TTL.
_SLICES = 8
# What loses a race, and what waits for somebody who holds the partition's row, as an apply does.
_AGAIN = (
    Conflict,
    *LOST_RACE,
    LOCK_TIMEOUT,
)


class Drain:
    def __init__(
        self,
        settings: Settings,
        bus: Client,
        lane: Lane,
        partition: Partition,
        turns: asyncio.Semaphore,
        pace: Pace,
    ) -> None:
        self.complete: datetime | None = None
        """While idle: everything that arrived up to then has been read."""
        self._settings = settings
        self._bus = bus
        self._lane = lane
        self._partition = partition
        self._turns = turns
        self._pace = pace
        self._leaving = False
        self.task: asyncio.Task[None] | None = None

    @property
    def key(self) -> Key:
        return self._partition.key

    def leave(self) -> None:
        """End after the batch that is under way."""
        self._leaving = True

    async def run(self) -> None:
        name = f"worker {self._lane.name} {self._partition.number}"
        async with open_session(self._settings, name) as connection:
            reader = Reader(self._bus, self._lane, self._partition, self._pace)
            try:
                while not self._leaving:
                    await self._turn(connection, reader)
            finally:
                await reader.close()

    async def _turn(self, connection: Connection, reader: Reader) -> None:
        if await reader.ready(connection, _IDLE_S):
            async with self._turns:  # what comes while we wait for our turn is taken along
                messages = await reader.next()
                if messages:
                    await self._settle_paced(connection, messages)
        else:
            stored_at = await reader.look()
            position = self._partition.position.last_seq
            self.complete = await self._lane.idle_watermark(connection, position, stored_at) or self.complete

    async def _settle_paced(self, connection: Connection, messages: Sequence[Message]) -> None:
        # The time of our own thread: on a crowded machine smaller batches would only make it worse.
        began_s = time.thread_time()
        try:
            await self._settle(connection, messages)
        except Exception:
            self._pace.failed()
            raise
        self._pace.settled(time.thread_time() - began_s, self._settings.lease_ttl_s / _SLICES)

    async def _settle(self, connection: Connection, messages: Sequence[Message]) -> None:
        try:
            await self._commit(connection, messages)
        except Exception as error:
            if not is_message_fault(error):
                raise
            if len(messages) > 1:
                half = len(messages) // 2
                await self._settle(connection, messages[:half])
                await self._settle(connection, messages[half:])
            else:
                await self._set_aside(connection, messages, error)

    async def _commit(self, connection: Connection, messages: Sequence[Message]) -> None:
        news = self._partition.news(messages)
        complete = self._lane.watermark_of(messages[-1])
        began_s = time.monotonic()
        for attempt in range(_TRIES):
            plan = await self._lane.plan(connection, self._partition.number, news)
            try:
                async with connection.transaction():
                    await plan.stage(connection)
                    after = await self._partition.move(connection, messages, complete)
                    await plan.write(connection)
            except _AGAIN as lost:
                _log.debug("batch again", lane=self._lane.name, error=lost)
                await asyncio.sleep(0.001 * 2 ** min(attempt, 8))
                continue
            self._moved(after)
            plan.committed()
            MESSAGES.add(len(messages), self._lane.name)
            LANE_BATCH.observe(time.monotonic() - began_s, self._lane.name)
            return
        raise TocsinError(
            f"partition {self._partition.number} of the {self._lane.name} lane was overtaken {_TRIES} times: "
            "it is tried again"
        )

    async def _set_aside(self, connection: Connection, messages: Sequence[Message], error: Exception) -> None:
        (message,) = messages
        _log.error("message set aside", lane=self._lane.name, seq=message.seq, error=error)
        reason = f"it cannot be worked on: {type(error).__name__}: {error}"
        letter = dead_letter(reason, message.subject, message.at, message.data)
        identity = f"{self._lane.stream}/{message.seq}"
        js = self._bus.jetstream()
        await send_dead_letter(js, self._settings, self._lane.dead_letters, letter, identity)
        async with connection.transaction():
            after = await self._partition.move(connection, messages, self._lane.watermark_of(message))
        self._moved(after)

    def _moved(self, after: Position) -> None:
        self._partition.position = after

"""The loop over one partition: read, plan, commit, and report the watermark.

Guarantee: a batch is one transaction, and its first lock is the row of the partition. If the plan
is outdated, or the transaction loses a conflict, the same messages are planned again. A batch whose
error may come from a message is halved until one message is left. That message becomes a dead
letter, and the partition continues behind it, unless messages of other owners fail in the same way
(`tocsin.core.breaker`).

If the worker before did not release the partition, it may have died over a message. The first batch is
then recorded as an attempt (`rules.lanes.attempts`). If a process has died over it, its messages are
processed one by one, each as an attempt, and one over which several processes died becomes a dead
letter. The attempts of a process do not overlap: `suspects` is shared by its partitions.

A batch of canaries that ended no arrival gap has no effects, unless a deadline of a heartbeat or the
end of a window lies before them (`evaluate_due`). It is not committed: its arrivals only
move the watermark, which the worker stores when it renews its leases. A worker that takes over reads
the canaries again, with the same result.

On failure: an error of Postgres that is not about a message (a missing right, column or partition,
a full disk, a lock, lost conflicts) is waited out by this partition alone. Nothing was written, and
`problem` has the reason. `PartitionLost` is raised if another worker holds the partition, and so is
an error of NATS or an unreachable server.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime

import psycopg
import structlog
from nats.aio.client import Client

from rules.lanes.attempts import MOST_DEATHS, attempt, begin_attempt, reason_of
from rules.lanes.batch_size import BatchSize
from rules.lanes.dead_letters import send_dead_letter
from rules.lanes.lane import Lane, LaneMessage, ended_gaps
from rules.lanes.message_fault import is_message_fault
from rules.lanes.partition import Partition, PartitionKey, PartitionWaits
from rules.lanes.reader import Reader
from rules.lanes.stream_pace import StreamPace
from rules.metrics import LANE_BATCH, MESSAGES, PARTITION_WAITS
from schemas.wire.dead_letter import dead_letter
from tocsin.core.breaker import Breaker
from tocsin.core.db import Connection, fetch_value, open_service_session
from tocsin.core.errors import Conflict, TocsinError
from tocsin.core.record_log import extend_log
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import LOCK_TIMEOUT, LOST_RACE, Fault, fault_of, summary

_log = structlog.get_logger()
_IDLE_S = 0.2
# If no canary came for so long, the consumer may be gone.
_NO_CANARY_S = 1.5
_TRIES = 20
# A batch should keep the worker busy for at most this part of the TTL.
_SLICES = 8
# Conflicts, and waits for the row of the partition, which an apply locks.
_RETRIED = (Conflict, *LOST_RACE, LOCK_TIMEOUT)
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
# Failures of different owners further apart than this have different causes.
_COMMON_CAUSE_S = 60.0
# How long one message that can be processed proves that others fail because of themselves.
_PROVEN_S = 1.0
# Other owners whose messages are tried before a partition waits.
_MOST_TRIED = 100


class Drain:
    def __init__(
        self,
        settings: Settings,
        bus: Client,
        lane: Lane,
        partition: Partition,
        slots: asyncio.Semaphore,
        batch_size: BatchSize,
        pace: StreamPace | None = None,
        suspects: asyncio.Lock | None = None,
    ) -> None:
        """`slots` limits the batches of the lane that are processed at once.

        `pace` is that of the stream, as all partitions of this worker see it.
        """
        self.watermark: datetime | None = None
        """While idle: everything that arrived up to then has been read."""
        self.problem: PartitionWaits | None = None
        """The error that the partition waits out."""
        self._settings = settings
        self._bus = bus
        self._lane = lane
        self._partition = partition
        self._slots = slots
        self._batch_size = batch_size
        self._breaker = Breaker(_COMMON_CAUSE_S)
        self._proven_until_s = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self._leaving = asyncio.Event()
        self._has_due_states = False
        self._suspects = asyncio.Lock() if suspects is None else suspects
        self._is_suspect = partition.was_lost
        self._last_read_s = time.monotonic()
        self._pace = StreamPace() if pace is None else pace
        self.canary_subject = lane.canary_subject(partition.number)
        self.task: asyncio.Task[None] | None = None

    @property
    def key(self) -> PartitionKey:
        return self._partition.key

    @property
    def quiet_s(self) -> float:
        """Seconds since the last message came."""
        return time.monotonic() - self._last_read_s

    def leave(self) -> None:
        """End after the running batch."""
        self._leaving.set()

    def evaluate_due(self) -> None:
        """Process the next canaries like a message: states change although nothing else arrives."""
        self._has_due_states = True

    async def run(self) -> None:
        try:
            while not self._leaving.is_set():
                try:
                    await self._read()
                except (psycopg.Error, PartitionWaits) as error:
                    await self._wait_out(error)
        finally:
            self._recovered()

    async def _read(self) -> None:
        name = f"worker {self._lane.name} {self._partition.number}"
        async with open_service_session(self._settings, name) as connection:
            reader = Reader(self._bus, self._lane, self._partition, self._batch_size)
            try:
                while not self._leaving.is_set():
                    await self._run_once(connection, reader)
            except psycopg.Error as error:
                if fault_of(error) is Fault.NO_PARTITION:
                    await extend_log(connection)
                raise
            finally:
                await reader.close()

    async def _wait_out(self, error: Exception) -> None:
        lane, number = self.key
        reason = error.message if isinstance(error, PartitionWaits) else summary(error)
        _log.warning("partition waits", lane=lane, partition=number, error=reason, pause_s=self._pause_s)
        self.problem = PartitionWaits(
            f"partition {number} of the {lane} lane waits, and nothing of it is lost ({reason})",
            remedy=error.remedy if isinstance(error, PartitionWaits) else "restore what the error names",
        )
        PARTITION_WAITS.set(1, lane, str(number))
        with suppress(TimeoutError):
            async with asyncio.timeout(self._pause_s):
                await self._leaving.wait()
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)

    def _recovered(self) -> None:
        lane, number = self.key
        self.problem, self._pause_s = None, _FIRST_PAUSE_S
        PARTITION_WAITS.set(0, lane, str(number))

    async def _run_once(self, connection: Connection, reader: Reader) -> None:
        idle_s = _IDLE_S if self.canary_subject is None else _NO_CANARY_S
        if await reader.wait_for_message(connection, idle_s):
            async with self._slots:  # messages that come during the wait for a slot join the batch
                is_slow = self._pace.is_slow(self.key, time.monotonic())
                messages = await reader.next_batch(connection, is_stream_slow=is_slow)
                self._last_read_s = time.monotonic()
                if any(message.is_canary for message in messages):
                    self._pace.canary_read(self._last_read_s)
                if messages and (self._has_due_states or any(message.has_effects for message in messages)):
                    self._has_due_states = False
                    await self._process_timed(connection, messages)
                elif messages:
                    self.watermark = self._partition.read_until(messages[-1].at)
                if messages:
                    self._recovered()
        else:
            if await reader.check_consumer():
                self._recovered()
            position = self._partition.position.last_seq
            watermark = await self._lane.idle_watermark(connection, position)
            self.watermark = watermark or self.watermark

    async def _process_timed(self, connection: Connection, messages: Sequence[LaneMessage]) -> None:
        # The time of this thread: on a crowded machine smaller batches would only make it worse.
        began_s = time.thread_time()
        try:
            if self._is_suspect:
                await self._process_suspects(connection, messages)
            else:
                await self._process(connection, messages)
        except Exception:
            self._batch_size.failed()
            raise
        self._batch_size.succeeded(time.thread_time() - began_s, self._settings.lease_ttl_s / _SLICES)

    async def _process_suspects(self, connection: Connection, messages: Sequence[LaneMessage]) -> None:
        """Process the first batch after a worker that may have died over one of its messages."""
        lane, number = self.key
        consumer = f"{lane}/{number}"
        async with self._suspects:
            if await begin_attempt(connection, consumer, messages[0].seq) == 0:
                async with attempt(connection, consumer, messages[0].seq):
                    await self._process(connection, messages)
            else:
                for message in messages:
                    await self._process_alone(connection, consumer, message)
        self._is_suspect = False

    async def _process_alone(self, connection: Connection, consumer: str, message: LaneMessage) -> None:
        async with attempt(connection, consumer, message.seq) as deaths:
            if deaths >= MOST_DEATHS:
                await self._reject(connection, message, TocsinError(reason_of(deaths)))
            else:
                await self._process(connection, [message])

    async def _process(
        self, connection: Connection, messages: Sequence[LaneMessage], behind: Sequence[LaneMessage] = ()
    ) -> None:
        """`behind` are the messages of the batch that follow."""
        try:
            await self._commit(connection, messages)
        except Exception as error:
            is_waiting = isinstance(error, PartitionWaits)
            if not (is_waiting or is_message_fault(error)) or (is_waiting and len(messages) == 1):
                raise
            if len(messages) > 1:
                half = len(messages) // 2
                await self._process(connection, messages[:half], [*messages[half:], *behind])
                await self._process(connection, messages[half:], behind)
            elif await self._is_to_blame(connection, messages[0], behind, error):
                await self._try_again_or_reject(connection, messages[0])
            else:
                raise PartitionWaits(
                    f"messages of different owners fail in the same way ({summary(error)})",
                    remedy="remove the common cause",
                ) from error

    async def _try_again_or_reject(self, connection: Connection, message: LaneMessage) -> None:
        """The cause may have ended just before a message of another owner was tried."""
        try:
            await self._commit(connection, [message])
        except Exception as error:
            if not is_message_fault(error):
                raise
            await self._reject(connection, message, error)

    async def _is_to_blame(
        self, connection: Connection, message: LaneMessage, behind: Sequence[LaneMessage], error: Exception
    ) -> bool:
        """Whether the cause lies in the message.

        Messages of other owners behind it are tried, without a commit, because the order forbids to
        process them first. One that writes something proves that the cause is not a common one.
        """
        now_s = time.monotonic()
        if now_s < self._proven_until_s:
            return True
        is_to_blame = self._breaker.failed(error, self._lane.source_of(message), now_s)
        for other in self._of_other_sources(message, behind):
            try:
                if await self._can_write(connection, other):
                    self._breaker.succeeded()
                    self._proven_until_s = now_s + _PROVEN_S
                    return True
            except Exception as other_error:
                if not is_message_fault(other_error):
                    raise
                is_to_blame = self._breaker.failed(other_error, self._lane.source_of(other), now_s)
        return is_to_blame

    def _of_other_sources(self, message: LaneMessage, behind: Sequence[LaneMessage]) -> Iterator[LaneMessage]:
        sources = {self._lane.source_of(message)}
        for other in behind:
            if (source := self._lane.source_of(other)) not in sources:
                sources.add(source)
                yield other
            if len(sources) > _MOST_TRIED:
                return

    async def _can_write(self, connection: Connection, message: LaneMessage) -> bool:
        """Whether the message can be processed and writes anything. Nothing is committed."""
        with suppress(*_RETRIED):
            plan = await self._lane.plan(connection, self._partition.number, [message])
            async with connection.transaction(force_rollback=True):
                await plan.stage(connection)
                await plan.write(connection)
                return bool(await fetch_value(connection, "rules.lanes/has_written"))
        return False

    async def _commit(self, connection: Connection, messages: Sequence[LaneMessage]) -> None:
        new = self._partition.drop_repeated(messages)
        watermark = self._lane.watermark_of(messages[-1])
        began_s = time.monotonic()
        for tried in range(_TRIES):
            plan = await self._lane.plan(connection, self._partition.number, new, ended_gaps(messages))
            try:
                async with connection.transaction():
                    await plan.stage(connection)
                    position = await self._partition.move(connection, messages, watermark)
                    await plan.write(connection)
            except _RETRIED as conflict:
                _log.debug("batch retried", lane=self._lane.name, error=conflict)
                await asyncio.sleep(0.001 * 2 ** min(tried, 8))
                continue
            self._partition.position = position
            plan.committed()
            MESSAGES.add(sum(message.has_effects for message in messages), self._lane.name)
            LANE_BATCH.observe(time.monotonic() - began_s, self._lane.name)
            return
        raise PartitionWaits(f"a batch lost {_TRIES} conflicts", remedy="none: it is tried again")

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

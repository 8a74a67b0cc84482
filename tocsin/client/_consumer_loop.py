"""The loop behind `consume`: pulls records, calls the handler and acknowledges.

Guarantees and reasons are in `tocsin.client.consume`. The order is: take a record, store that it
was handled, then acknowledge it. A stop returns every record that is not finished.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar
from uuid import UUID

import psycopg
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from psycopg.errors import InFailedSqlTransaction

from tocsin.client._dead_letters import send_dead_letter
from tocsin.client._durable import DurableConsumer
from tocsin.client._mark_store import (
    ConsumerContext,
    Mark,
    OpenMarkStore,
    StoreUnreachable,
    Unusable,
    Work,
)
from tocsin.client._start_position import Start
from tocsin.client._streams import RecordBus
from tocsin.client.delivery import Undeliverable
from tocsin.client.select import Select, Unreadable
from tocsin.core.errors import TocsinError
from tocsin.core.pull import ConsumerGone, Puller
from tocsin.core.service import end_tasks
from tocsin.core.sql_errors import Fault, fault_of, is_row_fault, summary

_log = logging.getLogger("tocsin.client")
_OUTAGE = (NatsError, OSError, TimeoutError, StoreUnreachable)
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
# How far the stored mark may lag, and how long a loss of commits may stay unnoticed. Each handled
# record behind the mark costs a row.
_CHECK_MARK_S = 5.0
_CHECK_MARK_RECORDS = 1000
# A rolling upgrade, or a grant that is made after the deployment, is over by then.
_STUCK_S = 60.0
R = TypeVar("R")
T = TypeVar("T")


class ConsumerLoop(Generic[R]):
    def __init__(
        self,
        bus: RecordBus,
        context: ConsumerContext,
        select: Select[R],
        handle: Callable[..., Awaitable[None]],
        durable: DurableConsumer,
        store: OpenMarkStore,
    ) -> None:
        self._bus = bus
        self._consumer = context.consumer
        self._delivery = context.delivery
        self._select = select
        self._handle = handle
        self._durable = durable
        self._store = store
        self._in_progress: dict[asyncio.Task[None], list[Msg]] = {}
        self._finished_one = asyncio.Event()
        self._failure: TocsinError | None = None
        self._failed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._to_return: list[Msg] = []
        self._puller: Puller | None = None
        self._handled_since_check = 0
        self._mark_checked_s = time.monotonic()
        self._start: Start = "new"

    async def prepare(self, start: Start) -> None:
        """Create or check the durable consumer.

        Raises what makes consuming impossible from the start.
        """
        self._start = start
        await self._durable.ensure(self._store, start, is_first=True)

    async def run(self, stop: asyncio.Event | None) -> None:
        pulling = asyncio.create_task(self._pull_forever())
        extending = asyncio.create_task(self._extend_ack_waits())
        ends = [asyncio.create_task(event.wait()) for event in (self._failed, stop) if event is not None]
        try:
            await asyncio.wait({pulling, *ends}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            try:
                await self._drain(pulling)
            finally:
                await end_tasks([pulling, extending, *ends])
        if self._failure is not None:
            raise self._failure
        if not pulling.cancelled():
            pulling.result()

    async def _pull_forever(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            began_s = time.monotonic()
            try:
                await self._pull()
            except ConsumerGone as gone:
                _log.warning("consumer %s: %s; creating it again", self._consumer, gone)
            except _OUTAGE as error:
                _log.warning("consumer %s waits for a server: %s", self._consumer, str(error) or repr(error))
            await self._return_pulled()
            if time.monotonic() - began_s > _LONGEST_PAUSE_S:
                pause_s = _FIRST_PAUSE_S
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    async def _pull(self) -> None:
        await self._durable.ensure(self._store, self._start, is_first=False)
        self._puller = await Puller.open(
            self._bus.client, self._bus.stream, self._consumer, self._delivery.concurrency
        )
        while True:
            self._finished_one.clear()
            capacity = self._delivery.concurrency - len(self._in_progress)
            if capacity < 1:
                await self._finished_one.wait()
                continue
            # No await between the batch and its tasks: a stop there would lose the batch.
            for message in await self._puller.next_batch(at_most=capacity):
                self._durable.order.note(message)
                self._take(message)
            await self._check_mark()

    def _take(self, message: Msg) -> None:
        if self._failure is not None:
            self._to_return.append(message)
            return
        self._begin(self._deliver(message), [message])

    def _begin(self, work: Coroutine[Any, Any, None], messages: list[Msg]) -> None:
        task = asyncio.create_task(work)
        self._in_progress[task] = messages
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._handled_since_check += len(self._in_progress.pop(task))
        self._finished_one.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("consumer %s: %r", self._consumer, error)

    async def _deliver(self, message: Msg) -> None:
        try:
            await self._process(message)
        except (Unusable, Undeliverable) as error:
            self._failure = self._failure or error
            self._failed.set()
            # Returned after the last pull: this process would receive it again otherwise.
            self._to_return.append(message)
        except asyncio.CancelledError:
            await ignoring_outages(message.nak())
            raise

    async def _process(self, message: Msg) -> None:
        attempt = message.metadata.num_delivered
        try:
            record = self._select.read(message.subject, message.data)
        except Unreadable as error:
            await self._dead_letter(message, str(error))
            return
        if attempt > self._delivery.attempts and self._delivery.when_dead == "skip":
            await self._dead_letter(
                message, f"{attempt - 1} attempts began, and the process ended before each was finished"
            )
            return
        try:
            await self._handle_once(
                _mark_of(message, record), lambda connection: self._call(record, connection)
            )
        except Unusable:
            raise
        except Exception as error:
            await self._fail(message, f"{type(error).__name__}: {error}")
        else:
            await ignoring_outages(message.ack())

    async def _call(self, record: R | list[R], connection: Any) -> None:
        answer = self._handle(record) if connection is None else self._handle(record, connection)
        if not inspect.isawaitable(answer):
            raise Unusable(f"handle returned {answer!r}: it must be an async function")
        task = asyncio.current_task()
        try:
            async with asyncio.timeout(self._delivery.timeout_s) as limit:
                await answer
        except TimeoutError:
            if limit.expired():
                raise TimeoutError(f"the handler took longer than {self._delivery.timeout_s:g} s") from None
            raise
        except asyncio.CancelledError:
            if task is not None and task.cancelling() == 0:
                raise RuntimeError("the handler was cancelled from inside") from None
            raise

    async def _handle_once(self, mark: Mark, work: Work) -> bool:
        return await self._wait_for_store(mark.seq, lambda: self._store.once(mark, work))

    async def _wait_for_store(self, seq: int, once: Callable[[], Awaitable[T]]) -> T:
        """Retries while the store is unreachable, or Postgres fails for a reason of its own.

        A lost connection, a missing right, table or column: the record is not to blame, and
        returning it would count as an attempt. A wrong statement of the handler looks the same, so
        after a while the log has an error instead of a warning.
        """
        began_s = time.monotonic()
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await once()
            except StoreUnreachable as away:
                _log.warning("consumer %s, record %s waits for the store: %s", self._consumer, seq, away)
            except psycopg.Error as error:
                # The second is what a handler gets that goes on after an error it caught.
                if is_row_fault(error) or isinstance(error, InFailedSqlTransaction):
                    raise
                self._log_wait(seq, error, time.monotonic() - began_s)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _log_wait(self, seq: int, error: psycopg.Error, waited_s: float) -> None:
        if waited_s < _STUCK_S or fault_of(error) is not Fault.SETUP:
            _log.warning(
                "consumer %s, record %s waits, because it is not to blame: %s",
                *(self._consumer, seq, summary(error)),
            )
            return
        _log.error(
            "consumer %s is stuck at record %s for %.0f s: %s: fix the statement of the handler and start again, or "
            "restore the table, column or right that it names",
            *(self._consumer, seq, waited_s, summary(error)),
        )

    async def _fail(self, message: Msg, reason: str) -> None:
        attempt = message.metadata.num_delivered
        if attempt < self._delivery.attempts:
            self._log_failure(message, attempt, reason)
            await ignoring_outages(message.nak(delay=self._delivery.pause_s(attempt)))
        elif self._delivery.when_dead == "skip":
            await self._dead_letter(message, reason)
        else:
            raise self._undeliverable(message, attempt, reason)

    def _log_failure(self, message: Msg, attempt: int, reason: str) -> None:
        _log.warning(
            "consumer %s, record %s: attempt %s of %s failed, the next in %g s: %s",
            *(self._consumer, message.metadata.sequence.stream, attempt, self._delivery.attempts),
            *(self._delivery.pause_s(attempt), reason),
        )

    def _undeliverable(self, message: Msg, attempt: int, reason: str) -> Undeliverable:
        return Undeliverable(
            f"the consumer {self._consumer!r} stops at record {message.metadata.sequence.stream} "
            f"({message.subject}), which failed {attempt} times ({reason})",
            remedy="fix the handler and start again, or use when_dead='skip'",
        )

    async def _dead_letter(self, message: Msg, reason: str) -> None:
        try:
            await self._store_dead_letter(message, message.metadata.num_delivered, reason)
        except Unusable:
            raise
        except Exception as error:
            self._log_lost_letter(message, error)
            await ignoring_outages(message.nak(delay=max(1.0, self._delivery.longest_back_off_s)))
            return
        await ignoring_outages(message.ack())

    async def _store_dead_letter(self, message: Msg, attempts: int, reason: str) -> None:
        async def send(_: Any) -> None:
            await send_dead_letter(
                self._bus.client, self._bus.namespace, self._consumer, message, attempts, reason
            )

        if await self._handle_once(_mark_of(message, None), send):
            _log.error(
                "consumer %s, record %s became a dead letter: %s",
                *(self._consumer, message.metadata.sequence.stream, reason),
            )

    def _log_lost_letter(self, message: Msg, error: Exception) -> None:
        _log.error(
            "consumer %s, record %s: storing the dead letter failed: %r",
            *(self._consumer, message.metadata.sequence.stream, error),
        )

    async def _extend_ack_waits(self) -> None:
        """Keep NATS from giving the records in progress to another process."""
        while True:
            await asyncio.sleep(self._delivery.ack_wait_s / 3)
            for message in self._held():
                await ignoring_outages(message.in_progress())

    def _held(self) -> list[Msg]:
        """The records that this process has from NATS and has not answered."""
        return list(itertools.chain(*self._in_progress.values()))

    async def _check_mark(self) -> None:
        """Move the mark, from time to time. Also while nothing is handled: commits may be lost then."""
        is_due = (
            time.monotonic() - self._mark_checked_s > _CHECK_MARK_S
            or self._handled_since_check >= _CHECK_MARK_RECORDS
        )
        if not is_due:
            return
        self._mark_checked_s, self._handled_since_check = time.monotonic(), 0
        with suppress(*_OUTAGE):
            missing = await self._durable.advance_mark(self._store)
            if missing is not None:
                raise ConsumerGone(f"record {missing} is acknowledged and not handled")

    async def _return_pulled(self) -> None:
        if self._puller is not None:
            for message in await self._puller.drain():
                await ignoring_outages(message.nak())
            self._puller = None

    async def _drain(self, pulling: asyncio.Task[None]) -> None:
        """Stop pulling, let running handlers finish, and cancel those that take too long."""
        self._stopping.set()
        try:
            try:
                await end_tasks([pulling])
            finally:
                # Not in the pulling task, which may be cancelled a second time: a record that is
                # not returned is redelivered only after its ack wait.
                await self._return_pulled()
            if self._in_progress:
                await asyncio.wait(self._in_progress, timeout=self._delivery.drain_s)
        finally:
            try:
                await end_tasks(self._in_progress)
            finally:
                for message in self._to_return:
                    await ignoring_outages(message.nak())
        with suppress(*_OUTAGE):
            await self._durable.advance_mark(self._store)


def _mark_of(message: Msg, record: object) -> Mark:
    id = getattr(record, "id", None)
    return Mark(message.metadata.sequence.stream, id if isinstance(id, UUID) else None)


async def ignoring_outages(answer: Awaitable[None]) -> None:
    """Send an answer to NATS. If it is lost, the record is redelivered and found to be handled."""
    with suppress(NatsError, OSError):
        await answer

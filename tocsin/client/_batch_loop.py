"""The loop behind `consume_batches`: hands records to the handler in batches, in order.

Guarantee: a batch begins only when every selected record before it is handled, in whichever
process. The inbox has what is handled, so this holds also when NATS redelivers the records of a
process that died: those behind them wait.

Why one process at a time gets records: NATS would otherwise deal them out in turns, and no process
would have two neighbours. NATS pins the consumer to one process and moves the pin when that process
requests nothing for a while.

Why a record that is delivered again is handled alone: it may have killed a process. The inbox
counts the attempts that began with it alone. The count of NATS says nothing here: it rises for every
record of a batch.

On failure: a batch that fails is rolled back and halved, until the failing record is alone. It is
tried again after a pause, in this process, while the records behind it wait.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from nats.aio.msg import Msg

from tocsin.client._consumer_loop import ConsumerLoop, R, ignoring_outages
from tocsin.client._durable import GROUP, DurableConsumer
from tocsin.client._mark_advance import DeliveryOrder, find_position
from tocsin.client._mark_store import ConsumerContext, Unusable
from tocsin.client._streams import RecordBus
from tocsin.client.delivery import Undeliverable
from tocsin.client.inbox import OpenInbox
from tocsin.client.select import Select, Unreadable
from tocsin.core.db import Connection
from tocsin.core.pull import Puller

_WAIT_S = 1.0
# Of one request; the largest message that the server accepts must fit in.
_LEAST_BYTES = 8 * 1024 * 1024
# While records wait for one that another process has.
_WAIT_FOR_OTHERS_S = 0.2


class _Stopping(Exception):
    """A stop arrived during the pause before the next attempt."""


@dataclass(frozen=True)
class OrderPosition:
    """Everything selected up to `seq` is handled."""

    seq: int
    upcoming: int = 0
    """The selected record behind it, if the stream was asked."""

    def is_followed_by(self, seq: int, order: DeliveryOrder) -> bool:
        return seq <= max(self.seq + 1, self.upcoming) or order.follows(self.seq, seq)


def in_order(
    waiting: dict[int, Msg], position: OrderPosition, order: DeliveryOrder
) -> tuple[list[Msg], OrderPosition]:
    """The waiting messages that directly follow the position, and the position behind them.

    A message that was delivered before is alone.
    """
    batch: list[Msg] = []
    for seq in sorted(waiting):
        message = waiting[seq]
        if not position.is_followed_by(seq, order) or (batch and _is_repeated(message)):
            break
        batch.append(message)
        position = OrderPosition(seq) if seq > position.seq else position
        if _is_repeated(message):
            break
    return batch, position


def _is_repeated(message: Msg) -> bool:
    return int(message.metadata.num_delivered) > 1


class BatchLoop(ConsumerLoop[R]):
    def __init__(
        self,
        bus: RecordBus,
        context: ConsumerContext,
        select: Select[R],
        handle: Any,
        durable: DurableConsumer,
        inbox: OpenInbox,
    ) -> None:
        super().__init__(bus, context, select, handle, durable, inbox)
        self._inbox = inbox
        self._batch = context.delivery.batch
        self._waiting: dict[int, Msg] = {}
        self._position: OrderPosition | None = None
        self._is_out_of_turn = False

    async def _pull(self) -> None:
        await self._durable.ensure(self._store, self._start, is_first=False)
        self._puller = await Puller.open(
            self._bus.client,
            *(self._bus.stream, self._consumer, self._batch),
            max_bytes=max(_LEAST_BYTES, 2 * self._bus.client.max_payload),
            group=GROUP,
        )
        self._position = None
        while True:
            self._finished_one.clear()
            if self._in_progress or self._failure is not None:
                await self._finished_one.wait()
                continue
            await self._collect(self._puller)
            batch, position = await self._next_in_order()
            self._is_out_of_turn = not batch
            # No await between the two: a stop there would lose the batch.
            if batch:
                self._take_batch(batch, position)
            await self._check_mark()

    async def _collect(self, puller: Puller) -> None:
        size = max(1, self._batch - len(self._waiting))
        # Records that are next in order are handled at once.
        wait_s = _WAIT_FOR_OTHERS_S if self._is_out_of_turn else 0.0
        wait_s = wait_s if self._waiting else _WAIT_S
        for message in await puller.next_batch(wait_s, at_most=size):
            self._durable.order.note(message)
            self._waiting[message.metadata.sequence.stream] = message

    async def _next_in_order(self) -> tuple[list[Msg], OrderPosition]:
        if self._position is not None:
            batch, position = in_order(self._waiting, self._position, self._durable.order)
            if batch or not self._waiting:
                return batch, position
        until = max(self._waiting, default=0)
        seq, upcoming = await find_position(self._durable.selected(), until, self._store)
        self._position = OrderPosition(seq, upcoming)
        return in_order(self._waiting, self._position, self._durable.order)

    def _take_batch(self, batch: list[Msg], position: OrderPosition) -> None:
        for message in batch:
            del self._waiting[message.metadata.sequence.stream]
        self._position = position
        self._begin(self._deliver_batch(batch), batch)

    def _held(self) -> list[Msg]:
        arrived = self._puller.arrived() if self._puller is not None else []
        return [*super()._held(), *self._waiting.values(), *arrived]

    async def _return_pulled(self) -> None:
        waiting, self._waiting = self._waiting, {}
        is_pinned = self._puller is not None and self._puller.is_pinned
        await super()._return_pulled()
        for message in waiting.values():
            await ignoring_outages(message.nak())
        if is_pinned:
            await ignoring_outages(self._durable.unpin())

    async def _deliver_batch(self, batch: list[Msg]) -> None:
        """Handle the messages in order. `batch` shrinks as they are acknowledged."""
        try:
            await self._handle_messages(batch)
        except (Unusable, Undeliverable, _Stopping) as error:
            if not isinstance(error, _Stopping):
                self._failure = self._failure or error
                self._failed.set()
            self._to_return += batch
        except asyncio.CancelledError:
            for message in batch:
                await ignoring_outages(message.nak())
            raise

    async def _handle_messages(self, batch: list[Msg]) -> None:
        readable: list[tuple[Msg, R]] = []
        for message in list(batch):
            try:
                readable.append((message, self._select.read(message.subject, message.data)))
            except Unreadable as error:
                await self._handle_run(readable, batch)
                readable = []
                await self._end_as_dead_letter(message, 1, str(error), batch)
        await self._handle_run(readable, batch)

    async def _handle_run(self, run: list[tuple[Msg, R]], batch: list[Msg]) -> None:
        if len(run) == 1:
            await self._handle_alone(*run[0], batch)
        elif run:
            try:
                await self._handle_together(run)
            except Unusable:
                raise
            except Exception:
                middle = len(run) // 2
                await self._handle_run(run[:middle], batch)
                await self._handle_run(run[middle:], batch)
            else:
                await self._acknowledge(len(run), batch)

    async def _handle_together(self, run: list[tuple[Msg, R]]) -> None:
        seqs = [message.metadata.sequence.stream for message, _ in run]

        async def work(connection: Connection, claimed: set[int]) -> None:
            records = [record for seq, (_, record) in zip(seqs, run, strict=True) if seq in claimed]
            await self._call(records, connection)

        await self._wait_for_store(seqs[0], lambda: self._inbox.once_all(seqs, work))

    async def _handle_alone(self, message: Msg, record: R, batch: list[Msg]) -> None:
        attempt = await self._begin_attempt(message) if _is_repeated(message) else 1
        reason = f"{attempt - 1} attempts began, and the process ended before each was finished"
        while attempt <= self._delivery.attempts or self._delivery.when_dead == "stop":
            try:
                await self._handle_together([(message, record)])
            except Unusable:
                raise
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
            else:
                await self._acknowledge(1, batch)
                return
            if attempt >= self._delivery.attempts:
                break
            self._log_failure(message, attempt, reason)
            await self._pause(self._delivery.pause_s(attempt))
            attempt = max(attempt + 1, await self._begin_attempt(message))
        if self._delivery.when_dead == "stop":
            raise self._undeliverable(message, attempt, reason)
        await self._end_as_dead_letter(message, min(attempt, self._delivery.attempts), reason, batch)

    async def _begin_attempt(self, message: Msg) -> int:
        seq = message.metadata.sequence.stream
        return await self._wait_for_store(seq, lambda: self._inbox.begin_attempt(seq))

    async def _end_as_dead_letter(self, message: Msg, attempts: int, reason: str, batch: list[Msg]) -> None:
        while True:
            try:
                await self._store_dead_letter(message, attempts, reason)
                break
            except Unusable:
                raise
            except Exception as error:
                self._log_lost_letter(message, error)
            await self._pause(max(1.0, self._delivery.back_off_s))
        await self._acknowledge(1, batch)

    async def _acknowledge(self, count: int, batch: list[Msg]) -> None:
        self._handled_since_check += count
        for message in batch[:count]:
            await ignoring_outages(message.ack())
        del batch[:count]

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
            raise _Stopping

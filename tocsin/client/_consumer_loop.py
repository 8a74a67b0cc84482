"""The loop behind `consume`: pulls while there is room, works, answers NATS, and ends without losing anything.

Guarantee and reasons: see `tocsin.client.consume`. Here is the order of things: a record is taken, its
handling is kept, and only then is it acknowledged.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar
from uuid import UUID

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from tocsin.client._inbox_protocol import KeepAway, Kept, Mark, Place, Unusable, Work
from tocsin.client._start_position import Start
from tocsin.client.dead_letters import bury
from tocsin.client.durable import Durable
from tocsin.client.select import Select, Unreadable
from tocsin.client.streams import Bus
from tocsin.core.errors import TocsinError
from tocsin.core.pull import ConsumerGone, Puller
from tocsin.core.service import end_tasks

_log = logging.getLogger("tocsin.client")
_OUTAGE = (NatsError, OSError, TimeoutError, KeepAway)
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
# How far the kept mark may lie behind: each costs a row until then.
_SETTLE_S = 5.0
_SETTLE_RECORDS = 1000
R = TypeVar("R")


class Undeliverable(TocsinError):
    """A record failed as often as it may, and nothing is to overtake it."""


class Consumption(Generic[R]):
    def __init__(
        self,
        bus: Bus,
        place: Place,
        select: Select[R],
        handle: Callable[..., Awaitable[None]],
        durable: Durable,
        kept: Kept,
    ) -> None:
        self._bus = bus
        self._consumer = place.consumer
        self._delivery = place.delivery
        self._select = select
        self._handle = handle
        self._durable = durable
        self._kept = kept
        self._in_hand: dict[asyncio.Task[None], Msg] = {}
        self._moved = asyncio.Event()
        self._failure: TocsinError | None = None
        self._failed = asyncio.Event()
        self._returned: list[Msg] = []
        self._puller: Puller | None = None
        self._unsettled = 0
        self._settled_s = time.monotonic()
        self._start: Start = "new"

    async def prepare(self, start: Start) -> None:
        """Whatever is wrong from the beginning is raised here."""
        self._start = start
        await self._durable.ensure(self._kept, start, is_first=True)

    async def run(self, stop: asyncio.Event | None) -> None:
        pulling = asyncio.create_task(self._pull_for_ever())
        beating = asyncio.create_task(self._beat())
        ends = [asyncio.create_task(event.wait()) for event in (self._failed, stop) if event is not None]
        try:
            await asyncio.wait({pulling, *ends}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            try:
                await self._drain(pulling)
            finally:
                await end_tasks([pulling, beating, *ends])
        if self._failure is not None:
            raise self._failure
        if not pulling.cancelled():
            pulling.result()

    async def _pull_for_ever(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            began_s = time.monotonic()
            try:
                await self._pull()
            except ConsumerGone as gone:
                _log.warning("consumer %s: %s; it is made again", self._consumer, gone)
            except _OUTAGE as error:
                _log.warning("consumer %s waits: %s", self._consumer, str(error) or repr(error))
            await self._give_back()
            if time.monotonic() - began_s > _LONGEST_PAUSE_S:
                pause_s = _FIRST_PAUSE_S
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    async def _pull(self) -> None:
        await self._durable.ensure(self._kept, self._start, is_first=False)
        self._puller = await Puller.open(
            self._bus.client, self._bus.stream, self._consumer, self._delivery.concurrency
        )
        while True:
            self._moved.clear()
            room = self._delivery.concurrency - len(self._in_hand)
            if room < 1:
                await self._moved.wait()
                continue
            # Nothing may be awaited between the batch and the tasks: a stop in between would forget it.
            for message in await self._puller.next_batch(at_most=room):
                self._take(message)
            await self._settle()

    def _take(self, message: Msg) -> None:
        if self._failure is not None:
            self._returned.append(message)
            return
        task = asyncio.create_task(self._deliver(message))
        self._in_hand[task] = message
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._in_hand[task]
        self._unsettled += 1
        self._moved.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("consumer %s: %r", self._consumer, error)

    async def _deliver(self, message: Msg) -> None:
        try:
            await self._settle_record(message)
        except (Unusable, Undeliverable) as error:
            self._failure = self._failure or error
            self._failed.set()
            # Given back once we have stopped asking, or it would come right back to us.
            self._returned.append(message)
        except asyncio.CancelledError:
            await _quietly(message.nak())
            raise

    async def _settle_record(self, message: Msg) -> None:
        attempt = message.metadata.num_delivered
        try:
            record = self._select.read(message.subject, message.data)
        except Unreadable as error:
            await self._bury(message, str(error))
            return
        if attempt > self._delivery.attempts and self._delivery.when_dead == "skip":
            await self._bury(
                message, f"it was begun {attempt - 1} times, and the process ended each time before an answer"
            )
            return
        try:
            await self._once(_place_of(message, record), lambda connection: self._call(record, connection))
        except Unusable:
            raise
        except Exception as error:
            await self._fail(message, f"{type(error).__name__}: {error}")
        else:
            await _quietly(message.ack())

    async def _call(self, record: R, connection: Any) -> None:
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

    async def _once(self, place: Mark, work: Work) -> bool:
        """Outages of what is kept are waited out with the record in hand: giving it back would count as an attempt."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await self._kept.once(place, work)
            except KeepAway as away:
                _log.warning("consumer %s, record %s waits: %s", self._consumer, place.seq, away)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    async def _fail(self, message: Msg, reason: str) -> None:
        attempt, seq = message.metadata.num_delivered, message.metadata.sequence.stream
        if attempt < self._delivery.attempts:
            pause_s = self._delivery.pause_s(attempt)
            _log.warning(
                "consumer %s, record %s: attempt %s of %s failed, the next in %g s: %s",
                *(self._consumer, seq, attempt, self._delivery.attempts, pause_s, reason),
            )
            await _quietly(message.nak(delay=pause_s))
        elif self._delivery.when_dead == "skip":
            await self._bury(message, reason)
        else:
            raise Undeliverable(
                f"the consumer {self._consumer!r} stops at record {seq} ({message.subject}), which failed "
                f"{attempt} times: {reason}; mend the handler and start again, or use when_dead='skip'"
            )

    async def _bury(self, message: Msg, reason: str) -> None:
        namespace, seq = self._bus.namespace, message.metadata.sequence.stream

        async def send(_: Any) -> None:
            await bury(self._bus.client, namespace, self._consumer, message, reason)

        try:
            is_new = await self._once(_place_of(message, None), send)
        except Unusable:
            raise
        except Exception as error:
            _log.error("consumer %s, record %s: no dead letter: %r", self._consumer, seq, error)
            await _quietly(message.nak(delay=max(1.0, self._delivery.longest_back_off_s)))
            return
        if is_new:
            _log.error("consumer %s, record %s is a dead letter: %s", self._consumer, seq, reason)
        await _quietly(message.ack())

    async def _beat(self) -> None:
        """A record in hand is ours as long as we say so."""
        while True:
            await asyncio.sleep(self._delivery.ack_wait_s / 3)
            for message in list(self._in_hand.values()):
                await _quietly(message.in_progress())

    async def _settle(self) -> None:
        """Move the kept mark up to where NATS has everything acknowledged."""
        is_due = time.monotonic() - self._settled_s > _SETTLE_S or self._unsettled >= _SETTLE_RECORDS
        if self._unsettled and is_due:
            self._settled_s, self._unsettled = time.monotonic(), 0
            with suppress(*_OUTAGE):
                await self._kept.raise_to(await self._durable.floor())

    async def _give_back(self) -> None:
        if self._puller is not None:
            for message in await self._puller.drain():
                await _quietly(message.nak())
            self._puller = None

    async def _drain(self, pulling: asyncio.Task[None]) -> None:
        """Ask for no more, let the handlers at work finish, and cancel those that take too long."""
        try:
            try:
                await end_tasks([pulling])
            finally:
                # Not by the task that pulls: it may be cancelled a second time, and a record that is not given back
                # comes again only after its ack wait.
                await self._give_back()
            if self._in_hand:
                await asyncio.wait(self._in_hand, timeout=self._delivery.drain_s)
        finally:
            try:
                await end_tasks(self._in_hand)
            finally:
                for message in self._returned:
                    await _quietly(message.nak())
        with suppress(*_OUTAGE):
            await self._kept.raise_to(await self._durable.floor())


def _place_of(message: Msg, record: object) -> Mark:
    found = getattr(record, "id", None)
    return Mark(message.metadata.sequence.stream, found if isinstance(found, UUID) else None)


async def _quietly(answer: Awaitable[None]) -> None:
    """An answer that does not arrive is like none: the record comes again, and is found to be handled."""
    with suppress(NatsError, OSError):
        await answer

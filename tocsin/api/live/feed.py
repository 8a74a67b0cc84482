"""The feed of one process: reads the stream once, and wakes the connections that a record concerns.

Guarantee: see the package. The window of the newest records has no hole: what the stream no longer
has when the reader returns from an outage is read from the tables first.

Why the position at the start comes from the tables: the API can then serve its connections while
NATS is away. The stream repeats no record that the tables had at that moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing, contextmanager

from psycopg_pool import AsyncConnectionPool

from tocsin.api.live.backlog import PAGE, Backlog
from tocsin.api.live.recent_records import RecentRecords
from tocsin.api.live.record import read_record
from tocsin.api.live.selection import Selection
from tocsin.api.live.subscription import Subscription
from tocsin.client._follow import follow
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection
from tocsin.core.errors import Unreachable
from tocsin.core.service import beat
from tocsin.core.settings import Settings

MAX_RECORDS = 10_000
MAX_BYTES = 16 * 1024 * 1024
# Records that arrive within this time wake a connection once.
_COALESCE_S = 0.01
_START_S = 5.0
_BEAT_S = 5.0


class LiveFeed:
    def __init__(
        self,
        settings: Settings,
        pool: AsyncConnectionPool[Connection],
        max_records: int = MAX_RECORDS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._settings = settings
        self._backlog = Backlog(settings, pool)
        self._limits = (max_records, max_bytes)
        self._window = RecentRecords(0, *self._limits)
        self._is_started = asyncio.Event()
        self._subscriptions: dict[Selection, set[Subscription]] = {}
        self._told = 0
        """The seq up to which connections were told about records."""
        self._untold_bytes = 0
        self._flush: asyncio.TimerHandle | None = None

    @property
    def last(self) -> int:
        return self._window.last

    async def run(self) -> None:
        """Read the stream until cancelled. Called again after a failure, it continues."""
        if not self._is_started.is_set():
            _, head = await self._backlog.bounds()
            self._window = RecentRecords(head, *self._limits)
            self._told = head
            self._is_started.set()
        async with open_bus(self._settings, "api live") as bus:
            beating = asyncio.create_task(_beat_forever())
            try:
                async with aclosing(follow(bus, self._settings.stream, self._window.last)) as messages:
                    async for message in messages:
                        await self._take(message.metadata.sequence.stream, message.subject, message.data)
            finally:
                beating.cancel()

    async def _take(self, seq: int, subject: str, body: bytes) -> None:
        if seq <= self._window.last:
            return
        if seq - self._window.last - 1 > self._limits[0]:
            self._window.restart(seq - 1)
        while self._window.last < seq - 1:
            await self._fill(seq - 1)
        self._window.append(seq, read_record(seq, subject, body))
        self._untold_bytes += len(body)
        self._tell_soon()

    async def _fill(self, until: int) -> None:
        """Read what the stream has lost to retention; what the tables lost too is left out."""
        after = self._window.last
        records = {record.seq: record for record in await self._backlog.read(after, until)}
        for seq in range(after + 1, min(after + PAGE, until) + 1):
            self._window.append(seq, records.get(seq))
        self._tell()

    def _tell_soon(self) -> None:
        """Tell the connections together what arrives together, before it leaves the window."""
        max_records, max_bytes = self._limits
        if self._window.last - self._told >= max_records // 2 or self._untold_bytes >= max_bytes // 2:
            self._tell()
        elif self._flush is None:
            self._flush = asyncio.get_running_loop().call_later(_COALESCE_S, self._tell)

    def _tell(self) -> None:
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        self._untold_bytes = 0
        told, self._told = self._told, self._window.last
        if told < self._window.first - 1:
            # More came at once than the window holds: the connections find that out themselves.
            for subscription in self.subscriptions:
                subscription.wake()
            return
        _, records = self._window.after(told)
        for selection, subscriptions in self._subscriptions.items():
            if any(selection.selects(record) for record in records):
                for subscription in subscriptions:
                    subscription.wake()
            else:
                for subscription in subscriptions:
                    subscription.pass_over(told, self._told)

    @contextmanager
    def subscribe(
        self, selection: Selection, after: int | None, subject: object = None
    ) -> Iterator[Subscription]:
        """A subscription from the record after `after`; None: only new records.

        `subject` is what `end` is asked about: the credentials that the connection was opened with.
        """
        subscription = Subscription(self._view, self._backlog, selection, after, subject)
        group = self._subscriptions.setdefault(selection, set())
        group.add(subscription)
        try:
            yield subscription
        finally:
            group.discard(subscription)
            if not group and self._subscriptions.get(selection) is group:
                del self._subscriptions[selection]

    def _view(self) -> RecentRecords:
        return self._window

    async def wait_until_started(self) -> None:
        try:
            async with asyncio.timeout(_START_S):
                await self._is_started.wait()
        except TimeoutError:
            raise Unreachable(
                "the live feed has not started: it cannot reach postgres", remedy="try again"
            ) from None

    @property
    def subscriptions(self) -> Iterable[Subscription]:
        return [each for group in self._subscriptions.values() for each in group]

    def end(self, reason: str, is_ended: Callable[[object], bool] = lambda _: True) -> None:
        """End the subscriptions whose subject `is_ended` selects; all of them, for a drain."""
        for subscription in self.subscriptions:
            if is_ended(subscription.subject):
                subscription.end(reason)


async def _beat_forever() -> None:
    while True:
        beat("live", rest_s=_BEAT_S)
        await asyncio.sleep(_BEAT_S)

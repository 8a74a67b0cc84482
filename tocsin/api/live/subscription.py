"""One connection to the feed: a position in the log, and nothing else in memory.

Guarantee: `next` returns the selected records after the position, each once, in order, and moves the
position behind them; it returns `Resync` once where it leaves records out, and `FeedEnded` when the
connection must close.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from tocsin.api.live.backlog import PAGE, Backlog
from tocsin.api.live.recent_records import RecentRecords
from tocsin.api.live.record import LiveRecord
from tocsin.api.live.selection import Selection

# How many records a connection may read from the tables before it is live. More are a resync: the
# caller reads them in pages, at its own pace.
MAX_BACKLOG = 10_000
# Records that are compared before other connections get their turn.
_CHUNK = 500


@dataclass(frozen=True)
class LiveBatch:
    position: int
    """All selected records up to this seq have been returned."""
    records: list[LiveRecord] = field(default_factory=list)


@dataclass(frozen=True)
class Resync:
    """Records after `after` were left out. The feed continues after `last`."""

    after: int
    last: int
    reason: str


@dataclass(frozen=True)
class FeedEnded:
    reason: str


class Subscription:
    def __init__(
        self,
        window: Callable[[], RecentRecords],
        backlog: Backlog,
        selection: Selection,
        after: int | None,
        subject: object = None,
    ) -> None:
        self._window = window
        self._backlog = backlog
        self._selection = selection
        self.position = window().last if after is None else after
        self.subject = subject
        self._is_new = after is not None
        self._is_live = after is None
        self._left = MAX_BACKLOG
        self._skips = True
        self._news = asyncio.Event()
        self._end: str | None = None

    async def next(self, timeout_s: float) -> LiveBatch | Resync | FeedEnded:
        """The next records. An empty batch when none came in time."""
        if self._end is None and not self._is_live:
            batch = await self._catch_up()
            if batch is not None:
                return batch
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while True:
                    self._news.clear()
                    if self._end is not None:
                        return FeedEnded(self._end)
                    answer = self._take()
                    if answer is not None:
                        return answer
                    if self.position < self._window().last:
                        await asyncio.sleep(0)
                    else:
                        await self._news.wait()
        return LiveBatch(self.position)

    def never_skip(self, pages: int) -> None:
        """Read any backlog from the tables, and return after so many pages without a selected record."""
        self._left = pages * PAGE
        self._skips = False

    def wake(self) -> None:
        self._news.set()

    def pass_over(self, told: int, last: int) -> None:
        """None of the records up to `last` is selected: a connection that has read the others
        moves on, and is not slow because nothing concerns it."""
        if self._is_live and told <= self.position < last:
            self.position = last

    def end(self, reason: str) -> None:
        self._end = reason
        self._news.set()

    def _take(self) -> LiveBatch | Resync | None:
        window = self._window()
        if self.position < window.first - 1:
            return self._resync("the connection read too slowly")
        self.position, arrived = window.after(self.position, _CHUNK)
        records = [record for record in arrived if self._selection.selects(record)]
        return LiveBatch(self.position, records) if records else None

    async def _catch_up(self) -> LiveBatch | Resync | None:
        """The next page of the backlog; None once the window has what follows."""
        if self._is_new:
            self._is_new = False
            problem = await self._problem_of_start()
            if problem is not None:
                self._is_live = True
                return self._resync(problem)
        while self.position < self._window().first - 1:
            if self._left <= 0:
                if not self._skips:
                    return LiveBatch(self.position)
                self._is_live = True
                return self._resync(f"more than {MAX_BACKLOG} records were missed")
            after, until = self.position, self._window().first - 1
            records = await self._backlog.read(after, until)
            self.position = min(after + PAGE, until)
            self._left -= self.position - after
            selected = [record for record in records if self._selection.selects(record)]
            if selected:
                return LiveBatch(self.position, selected)
        self._is_live = True
        return None

    async def _problem_of_start(self) -> str | None:
        if self._window().first - 1 <= self.position <= self._window().last:
            return None
        horizon, head = await self._backlog.bounds()
        if self.position + 1 < horizon:
            return f"the records before {horizon} were removed by retention"
        if self.position > max(head, self._window().last):
            return f"the log has no record {self.position}"
        return None

    def _resync(self, reason: str) -> Resync:
        after, self.position = self.position, self._window().last
        return Resync(after, self.position, reason)

"""One term of leadership: an epoch in Postgres, and batches of fires that prove it.

Guarantees: a batch is one transaction, in the phases timers, schedules, append; it commits only while our epoch
is the newest (I2); a row that fails alone is set aside and the scan goes on. Two round trips per batch: BEGIN with
the lock, and everything else with COMMIT.

The scan's mark is the last (fire_at, ref) it has consumed, so that it never walks over the corpses of consumed
rows. Because an arm may commit late or a row may be locked, the last two seconds are scanned again every
200 ms, and `clock.service` looks for anything older on a second connection.

On failure: the transaction is gone, the rows are still due. `Deposed` means that another clock leads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg
import structlog

from clock.ticks import TickPlan, TickRow, plan
from tocsin.core.db import Connection, statement
from tocsin.core.errors import Deposed

_log = structlog.get_logger()
BEGINNING = datetime(1, 1, 2, tzinfo=UTC)
_TRAIL = timedelta(seconds=2)
_TRAIL_EVERY = timedelta(milliseconds=200)
# Classes of SQLSTATE that speak of the server or of a race: never the fault of one row.
_NOT_THE_ROWS_FAULT = ("08", "25", "40", "53", "55", "57", "58", "XX")
_DEPOSED = "TS001"
KIND = "schedule-tick"

Hook = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Batch:
    """What one transaction did."""

    timers: int
    fires: int
    last_seq: int | None
    more: bool


class Term:
    def __init__(
        self,
        connection: Connection,
        epoch: int,
        *,
        batch: int = 1000,
        max_failures: int = 5,
        hook: Hook | None = None,
    ) -> None:
        self.epoch = epoch
        self._connection = connection
        self._batch = batch
        self._limit = batch
        self._max_failures = max_failures
        self._hook = hook
        self._mark = (BEGINNING, "")
        self._trailed_at = BEGINNING
        self._draining = False

    @property
    def mark_at(self) -> datetime:
        return self._mark[0]

    def lower_mark(self, fire_at: datetime) -> None:
        """Something older than the mark is due: an arm that committed late, or a clock that went back."""
        if fire_at <= self._mark[0]:
            self._mark = (fire_at, "")

    def trail(self, now: datetime) -> None:
        """Look at the last two seconds again, every 200 ms; a clock that went back lowers the mark as well.

        Not while a backlog drains: that would walk over the corpses of the burst being drained.
        """
        self.lower_mark(now)
        if self._draining and now >= self._trailed_at:
            return
        if now - self._trailed_at >= _TRAIL_EVERY or now < self._trailed_at:
            self._trailed_at = now
            self.lower_mark(now - _TRAIL)

    async def run_once(self, now: datetime) -> Batch:
        """Fire what is due at `now`, at most one batch."""
        self.trail(now)
        try:
            batch = await self._fire(now)
        except psycopg.Error as error:
            batch = await self._after_error(error, now)
        return batch

    async def _fire(self, now: datetime) -> Batch:
        limit = self._limit
        async with self._connection.pipeline(), self._connection.transaction():
            cursor = await self._connection.execute(
                statement("clock/lock_due_ticks"),
                {"mark": self._mark[0], "mark_ref": self._mark[1], "now": now, "limit": limit},
            )
            rows = [TickRow(*row) for row in await cursor.fetchall()]
            planned = plan(rows, now)
            await self._at("locked")
            last_seq = await self._write(planned, now)
        self._limit = min(self._batch, limit * 2)
        for ref, error in planned.failed:
            await self._set_aside(ref, error, now)
        self._draining = self._advance(rows, planned.considered, limit, now)
        return Batch(planned.settled, planned.fires, last_seq, self._draining)

    async def _write(self, planned: TickPlan, now: datetime) -> int | None:
        execute = self._connection.execute
        if not planned.settled:
            return None
        if planned.rearm["ctids"]:
            await execute(statement("clock/rearm_ticks"), planned.rearm)
        if planned.remove:
            await execute(statement("clock/remove_ticks"), {"ctids": planned.remove})
            await execute(statement("clock/end_schedules"), {**planned.end, "now": now})
        appended = await execute(
            statement("clock/append_tick_events"), {**planned.events, "epoch": self.epoch}
        )
        if self._hook is None:
            return None
        row = await appended.fetchone()
        await self._at("appended")
        return int(row[0]) if row else None

    def _advance(self, rows: list[TickRow], considered: int, limit: int, now: datetime) -> bool:
        """Move the mark behind what was considered; true if more may be due."""
        if considered < len(rows) or len(rows) == limit:
            last = rows[considered - 1]
            self._mark = (last.fire_at, last.ref)
            return True
        self._mark = (now, "")
        return False

    async def _after_error(self, error: psycopg.Error, now: datetime) -> Batch:
        if error.sqlstate == _DEPOSED:
            raise Deposed(str(error).splitlines()[0]) from None
        if error.sqlstate is None or error.sqlstate[:2] in _NOT_THE_ROWS_FAULT:
            raise error
        if self._limit > 1:
            self._limit = max(1, self._limit // 2)
            return Batch(0, 0, None, True)
        row = await self._first_due(now)
        if row is not None:
            await self._set_aside(row, f"{type(error).__name__}: {error}", now)
        return Batch(0, 0, None, True)

    async def _first_due(self, now: datetime) -> str | None:
        async with self._connection.transaction():
            cursor = await self._connection.execute(
                statement("clock/lock_due_ticks"),
                {"mark": self._mark[0], "mark_ref": self._mark[1], "now": now, "limit": 1},
            )
            row = await cursor.fetchone()
        return None if row is None else TickRow(*row).ref

    async def _set_aside(self, ref: str, error: str, now: datetime) -> None:
        _log.error("timer failed", kind=KIND, timer=ref, error=error)
        await self._connection.execute(
            statement("clock/fail_timer"),
            {"kind": KIND, "ref": ref, "key": "", "error": error, "now": now, "max_failures": self._max_failures},
        )

    async def _at(self, point: str) -> None:
        if self._hook is not None:
            await self._hook(point)


async def begin_term(
    connection: Connection,
    holder: str,
    *,
    batch: int = 1000,
    max_failures: int = 5,
    hook: Hook | None = None,
) -> Term:
    """Raise the epoch; `Deposed` if another candidate was quicker."""
    await connection.execute(statement("clock/set_session"))
    row = await (await connection.execute(statement("clock/read_epoch"))).fetchone()
    epoch = row[0] if row else 0
    taken = await (
        await connection.execute(statement("clock/take_over"), {"epoch": epoch, "holder": holder})
    ).fetchone()
    if taken is None or taken[0] is None:
        raise Deposed(f"epoch {epoch} was superseded while {holder} took over")
    return Term(connection, int(taken[0]), batch=batch, max_failures=max_failures, hook=hook)

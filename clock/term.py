"""One term of leadership: an epoch in Postgres, and batches of fires that prove it.

Guarantees: a batch is one transaction, in the phases timers, schedules, append; whatever it writes commits only
while our epoch is the newest (I2); a row that fails alone is set aside and the scan goes on. Two round trips per
batch: BEGIN with the lock, and everything else with COMMIT.

The scan's mark is the last (fire_at, ref) it has consumed, so that it never walks over the corpses of consumed
rows. Because an arm may commit late or a row may be locked, the last two seconds are scanned again every
200 ms, and `look_back` finds anything older on a second connection.

On failure: the transaction is gone, the rows are still due. `Deposed` means that another clock leads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import structlog

from clock.ticks import TickPlan, TickRow, plan
from tocsin.core.db import Connection, statement
from tocsin.core.errors import Deposed

_log = structlog.get_logger()
BEGINNING = datetime(1, 1, 2, tzinfo=UTC)
_TRAIL = timedelta(seconds=2)
_TRAIL_EVERY = timedelta(milliseconds=200)
# Classes of SQLSTATE that speak of the server, the schema, our rights or a race: never the fault of one row.
_NOT_THE_ROWS_FAULT = ("08", "0A", "25", "26", "28", "3D", "3F", "40", "42", "53", "55", "57", "58", "XX")
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
        # The oldest instant that `lower_mark` was told while a batch was under way.
        self._lowered: datetime | None = None
        # The first row of the batch under way, to be blamed if it fails alone.
        self._first: tuple[str, int] | None = None

    @property
    def mark_at(self) -> datetime:
        return self._mark[0]

    def lower_mark(self, fire_at: datetime) -> None:
        """Something older than the mark is due: an arm that committed late, or a clock that went back."""
        self._lowered = fire_at if self._lowered is None else min(fire_at, self._lowered)
        if fire_at <= self._mark[0]:
            self._mark = (fire_at, "")

    def _lower_again(self) -> None:
        """What was found while a statement was under way counts, wherever that has moved the mark."""
        if self._lowered is not None:
            self.lower_mark(self._lowered)

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

    async def look(self) -> tuple[datetime, datetime | None]:
        """The database's time, and when the next timer is due. The mark follows: nothing is due before either."""
        self._lowered = None
        row = await (
            await self._connection.execute(statement("clock/look"), {"kind": KIND, "mark": self.mark_at})
        ).fetchone()
        assert row is not None
        now, next_at = row
        passed = now if next_at is None else min(now, next_at)
        if passed > self._mark[0]:
            self._mark = (passed, "")
        self._lower_again()
        return now, next_at

    async def look_back(self, watch: Connection) -> None:
        """The backstop: find what is due before the mark, on another connection, and lower the mark to it."""
        row = await (
            await watch.execute(statement("clock/oldest_due"), {"kind": KIND, "mark": self.mark_at})
        ).fetchone()
        if row is not None and row[0] is not None:
            self.lower_mark(row[0])

    async def _fire(self, now: datetime) -> Batch:
        limit = self._limit
        self._first = self._lowered = None
        async with self._connection.pipeline(), self._connection.transaction():
            cursor = await self._connection.execute(
                statement("clock/lock_due_ticks"), self._bounds(now, limit), binary=True
            )
            rows = [TickRow(*row) for row in await cursor.fetchall()]
            self._first = (rows[0].ref, rows[0].generation) if rows else None
            planned = plan(rows, now)
            await self._at("locked")
            last_seq = await self._write(planned, now)
        self._limit = min(self._batch, limit * 2)
        for row, error in planned.failed:
            _log.error("timer failed", kind=KIND, timer=row.ref, schedule=row.name, error=error)
        self._draining = self._advance(rows, planned, limit, now)
        return Batch(planned.settled, planned.fires, last_seq, self._draining)

    async def _write(self, planned: TickPlan, now: datetime) -> int | None:
        """Everything the plan says, in the phases timers, schedules, append."""
        execute = self._connection.execute
        if not planned.settled and not planned.failed:
            return None
        for row, error in planned.failed:
            await execute(statement("clock/fail_timer"), self._failure(row.ref, row.generation, error, now))
        if planned.rearm[0]:
            await execute(statement("clock/rearm_ticks"), planned.rearm_columns())
        if planned.end[0]:
            ending = planned.end_columns()
            await execute(statement("clock/remove_ticks"), ending)
            await execute(statement("clock/end_schedules"), {**ending, "now": now})
        appended = await execute(
            statement("clock/append_tick_events"), {**planned.event_columns(), "epoch": self.epoch}
        )
        if self._hook is None:
            return None
        row_of_seq = await appended.fetchone()
        await self._at("appended")
        return int(row_of_seq[0]) if row_of_seq else None

    def _advance(self, rows: list[TickRow], planned: TickPlan, limit: int, now: datetime) -> bool:
        """Move the mark behind what was considered; true if more may be due."""
        considered = planned.considered
        more = considered < len(rows) or len(rows) == limit
        self._mark = (rows[considered - 1].fire_at, rows[considered - 1].ref) if more else (now, "")
        self._lower_again()
        rearmed_at = planned.first_rearmed_at
        if rearmed_at is not None and rearmed_at <= now:
            # A tick within its grace moved to an occurrence that is due as well.
            self.lower_mark(rearmed_at)
            return True
        return more

    async def _after_error(self, error: psycopg.Error, now: datetime) -> Batch:
        again = Batch(0, 0, None, True)
        _raise_if_deposed(error)
        if _lacks_partition(error):
            await self._connection.execute(statement("clock/extend_log"))
            return again
        if not _may_be_the_rows_fault(error):
            raise error
        if self._limit > 1:
            self._limit = max(1, self._limit // 2)
            return again
        first = self._first or await self._first_due(now)
        if first is None:
            raise error
        await self._set_aside(first, f"{type(error).__name__}: {error}", now)
        return again

    async def _first_due(self, now: datetime) -> tuple[str, int] | None:
        """Which row it is that cannot even be read."""
        cursor = await self._connection.execute(statement("clock/first_due_tick"), self._bounds(now, 1))
        row: tuple[str, int] | None = await cursor.fetchone()
        return row

    async def _set_aside(self, first: tuple[str, int], error: str, now: datetime) -> None:
        ref, generation = first
        _log.error("timer failed", kind=KIND, timer=ref, error=error)
        try:
            async with self._connection.transaction():
                await self._connection.execute(
                    statement("clock/fail_timer"), self._failure(ref, generation, error, now)
                )
                await self._connection.execute(statement("clock/prove_epoch"), {"epoch": self.epoch})
        except psycopg.Error as refused:
            _raise_if_deposed(refused)
            raise

    def _bounds(self, now: datetime, limit: int) -> dict[str, Any]:
        return {"mark": self._mark[0], "mark_ref": self._mark[1], "now": now, "limit": limit}

    def _failure(self, ref: str, generation: int, error: str, now: datetime) -> dict[str, Any]:
        return {
            "kind": KIND,
            "ref": ref,
            "key": "",
            "generation": generation,
            "error": error.replace("\0", ""),
            "now": now,
            "max_failures": self._max_failures,
        }

    async def _at(self, point: str) -> None:
        if self._hook is not None:
            await self._hook(point)


def _raise_if_deposed(error: psycopg.Error) -> None:
    if error.sqlstate == _DEPOSED:
        raise Deposed(str(error).splitlines()[0]) from None


def _lacks_partition(error: psycopg.Error) -> bool:
    """Postgres says with the code of a CHECK, but without the name of one, that no partition takes the row."""
    return isinstance(error, psycopg.errors.CheckViolation) and error.diag.constraint_name is None


def _may_be_the_rows_fault(error: psycopg.Error) -> bool:
    if error.sqlstate is None:
        # Ours, not the server's: a value that Python cannot hold, or a broken connection.
        return isinstance(error, psycopg.DataError)
    return error.sqlstate[:2] not in _NOT_THE_ROWS_FAULT


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

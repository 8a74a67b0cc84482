"""One term of leadership: an epoch in Postgres, and batches of fires that prove it.

Guarantees: a batch is one transaction of one kind, in the phases timers, entities, append. It
commits only while our epoch is the newest (I2). Kinds take turns, one batch each, so that none
starves another. A row that fails alone is failed alone, and the scan continues. It is not parked
while other rows of its kind fail in the same way (`tocsin.core.breaker`). A batch takes two round
trips: BEGIN with the lock, and everything else with COMMIT; on Postgres 15 and
16, one for each statement. A clock that freezes inside a batch keeps its locks for at most five
TTLs.

Each kind has its own scan (`scan`) with its mark, its batch size and its rescans. `poll` finds the
next wake-up of all kinds in one statement. `backstop_scan` finds anything before the marks, on a
second connection.

On failure: the transaction is rolled back and the rows are still due. `Deposed` means that another
clock leads.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg
import structlog

from clock.kinds import AnyTimerKind, Timer
from clock.metrics import FIRES, count_batch
from clock.registry import KINDS
from clock.scan import Scan
from clock.time_source import steady_s
from tocsin.core.breaker import Breaker
from tocsin.core.db import Connection, fetch_one, fetch_value, statement
from tocsin.core.errors import Deposed
from tocsin.core.record_log import extend_log
from tocsin.core.sql_errors import DEPOSED, LOST_RACE, Fault, fault_of, is_row_fault, summary

_log = structlog.get_logger()

_TRANSACTION_TIMEOUT_SINCE = 170000

Hook = Callable[[str], Awaitable[None]]
"""Called inside the transaction of a batch at the points `locked` and `appended`, so that tests can
stop or kill a clock there. At `appended` the append has been sent, and COMMIT has not."""
Breakers = defaultdict[str, Breaker]
"""By timer kind."""


@dataclass(slots=True)
class Round:
    """The counts of one round, which is at most one batch of each kind."""

    timers: int = 0
    """Timers that were consumed or moved."""
    fires: int = 0
    held: int = 0
    more: bool = False
    """Whether more rows may be due."""


class _TimerKey(NamedTuple):
    """The key and generation of a timer."""

    ref: str
    key: str
    generation: int


class _PlanError(Exception):
    """A plan failed as a whole; the cause is the error."""


class Term:
    """The loop of a leading clock, for one epoch. `run_once` is one round."""

    def __init__(
        self,
        connection: Connection,
        epoch: int,
        *,
        kinds: Sequence[AnyTimerKind] = KINDS,
        batch: int = 1000,
        max_failures: int = 5,
        hook: Hook | None = None,
        breakers: Breakers | None = None,
    ) -> None:
        """`breakers` are kept from the terms before."""
        self.epoch = epoch
        self._problems: dict[str, str] = {}
        self._breakers = Breakers(Breaker) if breakers is None else breakers
        self.scans = {kind.kind: Scan(batch) for kind in kinds}
        self._kinds = tuple(kinds)
        self._connection = connection
        self._max_failures = max_failures
        self._hook = hook
        # The first row of the current batch: the one that failed, if the batch is one row.
        self._first: _TimerKey | None = None
        self._began_s = steady_s()

    @property
    def problem(self) -> str:
        """Why timers of a kind fail that are not parked for it; empty if none do."""
        return next(iter(self._problems.values()), "")

    def rescan_recent(self, now: datetime) -> None:
        for scan in self.scans.values():
            scan.rescan_recent(now)

    async def run_once(self, now: datetime) -> Round:
        """Fire what is due at `now`, at most one batch of each kind."""
        self._began_s = steady_s()
        self.rescan_recent(now)
        done = Round()
        for kind in self._kinds:
            scan = self.scans[kind.kind]
            if scan.may_be_due(now):
                await self._take_turn(kind, scan, now, done)
        done.more = any(scan.draining for scan in self.scans.values())
        return done

    async def poll(self) -> tuple[datetime, datetime | None]:
        """Read the database's time and when the next timer of any kind is due. The marks follow."""
        marks = [scan.mark for scan in self.scans.values()]
        for scan in self.scans.values():
            scan.begin()
        row = await fetch_one(
            self._connection,
            "clock/poll_next",
            {
                "kinds": list(self.scans),
                "marks": [mark.fire_at for mark in marks],
                "refs": [mark.ref for mark in marks],
                "keys": [mark.key for mark in marks],
            },
        )
        assert row is not None
        now, due_times = row
        for scan, next_at in zip(self.scans.values(), due_times, strict=True):
            scan.polled(now, next_at)
        return now, min((next_at for next_at in due_times if next_at is not None), default=None)

    async def backstop_scan(self, backstop: Connection) -> None:
        """Find rows that are due before the marks, and lower the marks to them.

        `backstop` is another connection than the one that fires.
        """
        for kind, scan in self.scans.items():
            oldest = await fetch_value(
                backstop, "clock/oldest_due", {"kind": kind, "mark": scan.backstop_before}
            )
            if oldest is not None:
                scan.lower(oldest)

    async def _take_turn(self, kind: AnyTimerKind, scan: Scan, now: datetime, done: Round) -> None:
        try:
            await self._fire(kind, scan, now, done)
        except _PlanError as error:
            await self._isolate(kind, scan, error.__cause__ or error, now)
        except psycopg.Error as error:
            await self._after_error(kind, scan, error, now)

    async def _fire(self, kind: AnyTimerKind, scan: Scan, now: datetime, done: Round) -> None:
        self._first = None
        scan.begin()
        began_s = steady_s()
        async with self._pipeline(), self._connection.transaction():
            rows = await kind.lock(self._connection, scan.bounds(now))
            lock_time = timedelta(seconds=steady_s() - began_s)
            taken = [row for row in rows if not row.held]
            self._first = _timer_key(taken[0]) if taken else None
            try:
                plan = await kind.plan(self._connection, taken, now)
            except psycopg.Error:
                raise
            except Exception as error:
                raise _PlanError from error
            if taken:
                await self._hook_at("locked")
            for row, reason in plan.failed:
                await self._fail(kind, _timer_key(row), reason, now)
            if plan.processed or plan.failed:
                await kind.write(self._connection, plan, now, self.epoch)
                await self._hook_at("appended")
        for row, reason in plan.failed:
            _log.error(
                "timer failed", kind=kind.kind, timer=row.ref, key=row.key, name=row.name, error=reason
            )
        if taken:
            ended_s = steady_s()
            count_batch(kind.kind, plan, now + timedelta(seconds=ended_s - self._began_s), ended_s - began_s)
        if plan.processed:
            self._breakers[kind.kind].succeeded()
            self._problems.pop(kind.kind, None)
        scan.advance(rows, len(taken), plan, now, lock_time)
        done.timers += plan.processed
        done.fires += plan.fires
        done.held += len(rows) - len(taken)

    def _pipeline(self) -> AbstractAsyncContextManager[object]:
        """Send a batch without waiting for each answer, where Postgres can end one that freezes."""
        if self._connection.info.server_version >= _TRANSACTION_TIMEOUT_SINCE:
            return self._connection.pipeline()
        return nullcontext()

    async def _after_error(self, kind: AnyTimerKind, scan: Scan, error: psycopg.Error, now: datetime) -> None:
        """Handle a failed batch. Returns if it may be tried again, otherwise raises."""
        raise_if_deposed(error)
        if isinstance(error, LOST_RACE):
            _log.warning("batch lost to another transaction", kind=kind.kind, error=error)
            scan.retry()
        elif fault_of(error) is Fault.NO_PARTITION:
            await extend_log(self._connection)
            scan.retry()
        elif is_row_fault(error):
            await self._isolate(kind, scan, error, now)
        else:
            raise error

    async def _isolate(self, kind: AnyTimerKind, scan: Scan, error: BaseException, now: datetime) -> None:
        """Halve the batch until one row is left, and fail that row."""
        if scan.halve():
            return
        first = self._first or await self._first_due(kind, scan, now)
        if first is None:
            raise error
        breaker = self._breakers[kind.kind]
        may_park = breaker.failed(error, f"{first.ref}/{first.key}", steady_s())
        if not may_park:
            self._problems[kind.kind] = f"timers of kind {kind.kind} fail in the same way ({summary(error)})"
        await self._fail_alone(kind, first, f"{type(error).__name__}: {error}", now, may_park)
        scan.retry()

    async def _first_due(self, kind: AnyTimerKind, scan: Scan, now: datetime) -> _TimerKey | None:
        """The first due row, for a row that cannot even be read."""
        row = await fetch_one(self._connection, "clock/first_due", {**scan.bounds(now), "kind": kind.kind})
        return None if row is None else _TimerKey(*row)

    async def _fail_alone(
        self, kind: AnyTimerKind, timer: _TimerKey, error: str, now: datetime, may_park: bool = True
    ) -> None:
        _log.error("timer failed", kind=kind.kind, timer=timer.ref, key=timer.key, error=error)
        try:
            async with self._connection.transaction():
                await self._fail(kind, timer, error, now, may_park)
                await self._connection.execute(statement("clock/prove_epoch"), {"epoch": self.epoch})
            FIRES.add(1, kind.kind, "failed")
        except psycopg.Error as write_error:
            raise_if_deposed(write_error)
            raise

    async def _fail(
        self, kind: AnyTimerKind, timer: _TimerKey, error: str, now: datetime, may_park: bool = True
    ) -> None:
        parameters: dict[str, Any] = {
            **timer._asdict(),
            "kind": kind.kind,
            "error": error.replace("\0", ""),
            "now": now,
            "max_failures": self._max_failures if may_park else None,
        }
        await self._connection.execute(statement("clock/fail_timer"), parameters)

    async def _hook_at(self, point: str) -> None:
        if self._hook is not None:
            await self._hook(point)


def _timer_key(row: Timer) -> _TimerKey:
    return _TimerKey(row.ref, row.key, row.generation)


def raise_if_deposed(error: psycopg.Error) -> None:
    """Raise `Deposed` if Postgres rejected the epoch."""
    if error.sqlstate == DEPOSED:
        raise Deposed(str(error).splitlines()[0]) from None


async def begin_term(
    connection: Connection,
    holder: str,
    *,
    kinds: Sequence[AnyTimerKind] = KINDS,
    batch: int = 1000,
    max_failures: int = 5,
    hook: Hook | None = None,
    breakers: Breakers | None = None,
) -> Term:
    """Raise the epoch and begin a term; `Deposed` if another candidate was faster."""
    await connection.execute(statement("clock/set_session"))
    await connection.execute(statement("clock/limit_transactions"))
    epoch = await fetch_value(connection, "clock/read_epoch")
    new_epoch = await fetch_value(connection, "clock/take_over", {"epoch": epoch, "holder": holder})
    if new_epoch is None:
        raise Deposed(f"epoch {epoch} was superseded while {holder} took over")
    return Term(
        connection,
        int(new_epoch),
        kinds=kinds,
        batch=batch,
        max_failures=max_failures,
        hook=hook,
        breakers=breakers,
    )

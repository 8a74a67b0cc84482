"""One term of leadership: an epoch in Postgres, and batches of fires that prove it.

Guarantees: a batch is one transaction of one kind, in the phases timers, entities, append; whatever it writes commits
only while our epoch is the newest (I2); kinds take turns, a batch each, so that none starves another; a row that fails
alone is set aside and the scan goes on. Two round trips per batch: BEGIN with the lock, everything else with COMMIT.

Each kind has a scan of its own (`scan`): its mark, its share, its trailing looks. `look` finds the next wake-up of all
kinds in one statement, and `look_back` anything older than the marks, on a second connection.

On failure: the transaction is gone, the rows are still due. `Deposed` means that another clock leads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg
import structlog

from clock.kinds import AnyKind, Timer
from clock.metrics import FIRES, count_batch
from clock.registry import KINDS
from clock.scan import Scan
from clock.time_source import steady_s
from tocsin.core.db import Connection, fetch_one, fetch_value, statement
from tocsin.core.errors import Deposed
from tocsin.core.sql_errors import DEPOSED, LOST_RACE, Fault, fault_of, lacks_partition

_log = structlog.get_logger()

Hook = Callable[[str], Awaitable[None]]


@dataclass(slots=True)
class Batch:
    """What one round did."""

    timers: int = 0
    fires: int = 0
    held: int = 0
    more: bool = False
    """Something else may be due."""


class _Name(NamedTuple):
    """A timer to be blamed."""

    ref: str
    key: str
    generation: int


class _PlanError(Exception):
    """A plan that failed as a whole; the cause is the error."""


class Term:
    def __init__(
        self,
        connection: Connection,
        epoch: int,
        *,
        kinds: Sequence[AnyKind] = KINDS,
        batch: int = 1000,
        max_failures: int = 5,
        hook: Hook | None = None,
    ) -> None:
        self.epoch = epoch
        self.scans = {kind.kind: Scan(batch) for kind in kinds}
        self._kinds = tuple(kinds)
        self._connection = connection
        self._max_failures = max_failures
        self._hook = hook
        # The first row of the batch under way, to be blamed if it fails alone.
        self._first: _Name | None = None
        self._began_s = steady_s()

    def trail(self, now: datetime) -> None:
        for scan in self.scans.values():
            scan.trail(now)

    async def run_once(self, now: datetime) -> Batch:
        """One round: fire what is due at `now`, at most one batch of each kind."""
        self._began_s = steady_s()
        self.trail(now)
        done = Batch()
        for kind in self._kinds:
            scan = self.scans[kind.kind]
            if scan.may_be_due(now):
                await self._turn(kind, scan, now, done)
        done.more = any(scan.draining for scan in self.scans.values())
        return done

    async def look(self) -> tuple[datetime, datetime | None]:
        """The database's time, and when the next timer of any kind is due. The marks follow."""
        marks = [scan.mark for scan in self.scans.values()]
        for scan in self.scans.values():
            scan.begin()
        row = await fetch_one(
            self._connection,
            "clock/look",
            {
                "kinds": list(self.scans),
                "marks": [mark.fire_at for mark in marks],
                "refs": [mark.ref for mark in marks],
                "keys": [mark.key for mark in marks],
            },
        )
        assert row is not None
        now, found = row
        for scan, next_at in zip(self.scans.values(), found, strict=True):
            scan.looked(now, next_at)
        return now, min((next_at for next_at in found if next_at is not None), default=None)

    async def look_back(self, watch: Connection) -> None:
        """The backstop: find what is due before the marks, on another connection, and lower them to it."""
        for kind, scan in self.scans.items():
            oldest = await fetch_value(watch, "clock/oldest_due", {"kind": kind, "mark": scan.watched_from})
            if oldest is not None:
                scan.lower(oldest)

    async def _turn(self, kind: AnyKind, scan: Scan, now: datetime, done: Batch) -> None:
        try:
            await self._fire(kind, scan, now, done)
        except _PlanError as error:
            await self._blame(kind, scan, error.__cause__ or error, now)
        except psycopg.Error as error:
            await self._after_error(kind, scan, error, now)

    async def _fire(self, kind: AnyKind, scan: Scan, now: datetime, done: Batch) -> None:
        self._first = None
        scan.begin()
        began_s = steady_s()
        async with self._connection.pipeline() as pipeline, self._connection.transaction():
            rows = await kind.lock(self._connection, scan.bounds(now))
            taken = [row for row in rows if not row.held]
            self._first = _name(taken[0]) if taken else None
            try:
                plan = await kind.settle(self._connection, taken, now)
            except psycopg.Error:
                raise
            except Exception as error:
                raise _PlanError from error
            if taken:
                await self._at("locked")
            for row, reason in plan.failed:
                await self._fail(kind, _name(row), reason, now)
            if plan.settled or plan.failed:
                await kind.write(self._connection, plan, now, self.epoch)
                if self._hook is not None:
                    await pipeline.sync()
                    await self._hook("appended")
        for row, reason in plan.failed:
            _log.error(
                "timer failed", kind=kind.kind, timer=row.ref, key=row.key, name=row.name, error=reason
            )
        if taken:
            ended_s = steady_s()
            count_batch(kind.kind, plan, now + timedelta(seconds=ended_s - self._began_s), ended_s - began_s)
        scan.advance(rows, len(taken), plan, now)
        done.timers += plan.settled
        done.fires += plan.fires
        done.held += len(rows) - len(taken)

    async def _after_error(self, kind: AnyKind, scan: Scan, error: psycopg.Error, now: datetime) -> None:
        """Returns if the batch may be tried again."""
        raise_if_deposed(error)
        if isinstance(error, LOST_RACE):
            _log.warning("a batch lost to another transaction", kind=kind.kind, error=error)
            scan.retry()
        elif lacks_partition(error):
            await self._connection.execute(statement("clock/extend_log"))
            scan.retry()
        elif fault_of(error) in (Fault.ROW, Fault.UNREADABLE):
            await self._blame(kind, scan, error, now)
        else:
            raise error

    async def _blame(self, kind: AnyKind, scan: Scan, error: BaseException, now: datetime) -> None:
        """Halve the batch until the error has one row to follow, and set that aside."""
        if scan.halve():
            return
        first = self._first or await self._first_due(kind, scan, now)
        if first is None:
            raise error
        await self._set_aside(kind, first, f"{type(error).__name__}: {error}", now)
        scan.retry()

    async def _first_due(self, kind: AnyKind, scan: Scan, now: datetime) -> _Name | None:
        """Which row it is that cannot even be read."""
        row = await fetch_one(self._connection, "clock/first_due", {**scan.bounds(now), "kind": kind.kind})
        return None if row is None else _Name(*row)

    async def _set_aside(self, kind: AnyKind, first: _Name, error: str, now: datetime) -> None:
        _log.error("timer failed", kind=kind.kind, timer=first.ref, key=first.key, error=error)
        try:
            async with self._connection.transaction():
                await self._fail(kind, first, error, now)
                await self._connection.execute(statement("clock/prove_epoch"), {"epoch": self.epoch})
            FIRES.add(1, kind.kind, "failed")
        except psycopg.Error as refused:
            raise_if_deposed(refused)
            raise

    async def _fail(self, kind: AnyKind, name: _Name, error: str, now: datetime) -> None:
        parameters: dict[str, Any] = {
            **name._asdict(),
            "kind": kind.kind,
            "error": error.replace("\0", ""),
            "now": now,
            "max_failures": self._max_failures,
        }
        await self._connection.execute(statement("clock/fail_timer"), parameters)

    async def _at(self, point: str) -> None:
        if self._hook is not None:
            await self._hook(point)


def _name(row: Timer) -> _Name:
    return _Name(row.ref, row.key, row.generation)


def raise_if_deposed(error: psycopg.Error) -> None:
    if error.sqlstate == DEPOSED:
        raise Deposed(str(error).splitlines()[0]) from None


async def begin_term(
    connection: Connection,
    holder: str,
    *,
    kinds: Sequence[AnyKind] = KINDS,
    batch: int = 1000,
    max_failures: int = 5,
    hook: Hook | None = None,
) -> Term:
    """Raise the epoch; `Deposed` if another candidate was quicker."""
    await connection.execute(statement("clock/set_session"))
    epoch = await fetch_value(connection, "clock/read_epoch")
    taken = await fetch_value(connection, "clock/take_over", {"epoch": epoch, "holder": holder})
    if taken is None:
        raise Deposed(f"epoch {epoch} was superseded while {holder} took over")
    return Term(connection, int(taken), kinds=kinds, batch=batch, max_failures=max_failures, hook=hook)

"""The clock as a service: competes for the lease, takes over and fires due timers.

Guarantee: it fires only while it holds its lease, and Postgres rejects its commits if it is wrong
about that. It sleeps until the next known `fire_at` of any kind, at most one poll interval (`tick_ms`),
so a timer armed for the very near future is seen in time. Every round begins with a poll, so that
also holds while a backlog drains.

A second connection does the housekeeping: the backstop scan, new partitions of the log, and the
events about held timers. A third one prunes (`clock.retention`), and a fourth one follows new tz
data after a takeover (`clock.tz_data`).

On failure: `Service` starts it again. After a lost lease or a superseded epoch it competes again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import structlog

from clock.audit_chain import chain_audit
from clock.held_timers import record_pipeline_state
from clock.kept_plans import KeptPlans
from clock.kinds import AnyTimerKind
from clock.lease import Lease, hold_lease
from clock.metrics import EPOCH, FIRES, JUMPS, OFFSET
from clock.registry import KINDS
from clock.retention.loop import prune_hourly
from clock.term import Breakers, Hook, Term, begin_term
from clock.time_source import DatabaseTime, steady_s, wall_now
from clock.tz_data import follow_tz_data
from migrations.runner import refuse_unmigrated
from tocsin.core.breaker import Breaker
from tocsin.core.db import Connection, open_service_session
from tocsin.core.errors import Deposed
from tocsin.core.record_log import extend_log
from tocsin.core.service import beat, end_tasks
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import LOCK_TIMEOUT

_log = structlog.get_logger()
_BACKSTOP_S = 1.0
_EXTEND_S = 10.0


class Clock:
    """The service. `hook` is for tests (see `clock.term`), `on_leading` gets each new epoch."""

    def __init__(
        self, settings: Settings, *, kinds: Sequence[AnyTimerKind] = KINDS, hook: Hook | None = None
    ) -> None:
        self._settings = settings
        self._kinds = kinds
        self._hook = hook
        self._breakers = Breakers(Breaker)
        self._poll_interval = timedelta(milliseconds=settings.tick_ms)
        self.on_leading: Callable[[int], None] | None = None

    async def run(self) -> None:
        for kind in self._kinds:
            FIRES.add(0, kind.kind, "fired")
        async with hold_lease(self._settings, "clock") as lease:
            while True:
                await lease.wait_until_held()
                try:
                    await self._lead(lease)
                except Deposed as deposed:
                    _log.warning("clock deposed", error=deposed)
                    lease.resign()

    async def _lead(self, lease: Lease) -> None:
        async with (
            open_service_session(self._settings, "clock") as connection,
            open_service_session(self._settings, "clock backstop") as backstop,
        ):
            await refuse_unmigrated(connection)
            term = await begin_term(
                connection,
                lease.holder,
                kinds=self._kinds,
                batch=self._settings.fire_batch,
                max_failures=self._settings.max_failures,
                hook=self._hook,
                breakers=self._breakers,
            )
            _log.info("clock leads", epoch=term.epoch, holder=lease.holder)
            EPOCH.set(term.epoch)
            if self.on_leading is not None:
                self.on_leading(term.epoch)
            housekeeping = asyncio.create_task(self._housekeep(backstop, term))
            beside = [
                asyncio.create_task(prune_hourly(self._settings)),
                asyncio.create_task(chain_audit(self._settings)),
                asyncio.create_task(follow_tz_data(self._settings, term.epoch)),
            ]
            try:
                await self._fire_while(lease, connection, term, housekeeping)
            finally:
                OFFSET.forget()
                await end_tasks([housekeeping, *beside])

    async def _fire_while(
        self, lease: Lease, connection: Connection, term: Term, housekeeping: asyncio.Task[None]
    ) -> None:
        time = DatabaseTime()
        OFFSET.follow(lambda: (time.now() - wall_now()).total_seconds() if time.known else math.nan)
        plans = KeptPlans(connection, steady_s())
        while lease.keep():
            beat(lease.role, waiting_for=term.problem)
            await plans.refresh(steady_s())
            if housekeeping.done():
                # Without the backstop a late commit would wait for the next takeover, so a new term
                # begins.
                housekeeping.result()
            next_at = await self._poll(term, time)
            rest = self._poll_interval if next_at is None else min(self._poll_interval, next_at - time.now())
            if rest > timedelta(0):
                await asyncio.sleep(rest.total_seconds())
            now = time.now()
            if next_at is not None and next_at <= now:
                await term.run_once(now)

    async def _poll(self, term: Term, time: DatabaseTime) -> datetime | None:
        """Read the database's time and the next fire.

        If the database's time went back, the scans move their marks back too.
        """
        asked_s = steady_s()
        if time.known:
            term.rescan_recent(time.now())
        database_now, next_at = await term.poll()
        if time.observe(database_now, asked_s, steady_s()):
            JUMPS.add(1)
        return next_at

    async def _housekeep(self, backstop: Connection, term: Term) -> None:
        """Run the backstop scan, extend the log and record held timers.

        Uses a connection that does not fire.
        """
        extended_s = 0.0
        while True:
            if steady_s() - extended_s > _EXTEND_S:
                extended_s = steady_s()
                await self._extend_log(backstop)
            began_s = steady_s()
            await term.backstop_scan(backstop)
            await record_pipeline_state(backstop, term.epoch)
            # At most five percent of the time, however long the scan takes.
            await asyncio.sleep(max(_BACKSTOP_S, 20 * (steady_s() - began_s)))

    async def _extend_log(self, backstop: Connection) -> None:
        try:
            await extend_log(backstop)
        except LOCK_TIMEOUT as error:
            # A reader or a backup locks the log. The partitions have space for hundreds of
            # thousands of records.
            _log.warning("extending the log failed, trying again", error=error)

"""The clock as a service: campaign, take over, fire what is due, sleep until the next.

Guarantee: it fires only while its lease holds, and Postgres refuses it if it is wrong about that. It sleeps until
the next known `fire_at`, at most one tick, so that a timer armed for the very near future is seen in
time. On failure: `Service` starts it again; a lost lease or a superseded epoch sends it back to campaign.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

import psycopg
import structlog

from clock.lease import Lease, campaigning
from clock.term import KIND, Hook, Term, begin_term
from clock.time_source import DatabaseTime, steady_s
from migrations.runner import refuse_unmigrated
from tocsin.core.db import Connection, connect, statement
from tocsin.core.errors import Deposed
from tocsin.core.settings import Settings

_log = structlog.get_logger()
_BACKSTOP_S = 1.0
_EXTEND_S = 10.0


class Clock:
    def __init__(self, settings: Settings, *, hook: Hook | None = None) -> None:
        self._settings = settings
        self._hook = hook
        self._tick = timedelta(milliseconds=settings.tick_ms)
        self.on_leading: Callable[[int], None] | None = None

    async def run(self) -> None:
        async with campaigning(self._settings, "clock") as lease:
            while True:
                await lease.wait_until_held()
                try:
                    await self._lead(lease)
                except Deposed as deposed:
                    _log.warning("clock deposed", error=deposed)
                    lease.resign()

    async def _lead(self, lease: Lease) -> None:
        connection = await connect(self._settings, "clock")
        watch = await connect(self._settings, "clock backstop")
        try:
            await refuse_unmigrated(connection)
            term = await begin_term(
                connection,
                lease.holder,
                batch=self._settings.fire_batch,
                max_failures=self._settings.max_failures,
                hook=self._hook,
            )
            _log.info("clock leads", epoch=term.epoch, holder=lease.holder)
            if self.on_leading is not None:
                self.on_leading(term.epoch)
            housekeeping = asyncio.create_task(self._keep_house(watch, term))
            try:
                await self._fire_while(lease, connection, term)
            finally:
                housekeeping.cancel()
                with suppress(asyncio.CancelledError, psycopg.Error):
                    await housekeeping
        finally:
            await connection.close()
            await watch.close()

    async def _fire_while(self, lease: Lease, connection: Connection, term: Term) -> None:
        time = DatabaseTime()
        while lease.held:
            next_at = await self._look(connection, term, time)
            now = time.now()
            if next_at is not None and next_at > now:
                rest = min(self._tick, next_at - now)
                await asyncio.sleep(rest.total_seconds())
                now = time.now()
                if next_at > now:
                    continue
            elif next_at is None:
                await asyncio.sleep(self._tick.total_seconds())
                continue
            while lease.held and (await term.run_once(now)).more:
                now = time.now()

    async def _look(self, connection: Connection, term: Term, time: DatabaseTime) -> datetime | None:
        """Read the database's time and the next fire; a clock that went back lowers the mark."""
        asked_s = steady_s()
        mark = term.mark_at
        if time.known:
            term.trail(time.now())
            mark = term.mark_at
        row = await (
            await connection.execute(statement("clock/look"), {"kind": KIND, "mark": mark})
        ).fetchone()
        assert row is not None
        time.observe(row[0], asked_s, steady_s())
        next_at: datetime | None = row[1]
        return next_at

    async def _keep_house(self, watch: Connection, term: Term) -> None:
        """The backstop scan, and the log's partitions, away from the connection that fires."""
        extended_s = 0.0
        while True:
            if steady_s() - extended_s > _EXTEND_S:
                extended_s = steady_s()
                await watch.execute(statement("clock/extend_log"))
            began_s = steady_s()
            row = await (
                await watch.execute(statement("clock/oldest_due"), {"kind": KIND, "mark": term.mark_at})
            ).fetchone()
            if row and row[0] is not None:
                term.lower_mark(row[0])
            # A few percent duty, however long the scan takes.
            await asyncio.sleep(max(_BACKSTOP_S, 20 * (steady_s() - began_s)))

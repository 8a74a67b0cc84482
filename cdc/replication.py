"""Holds records back until a synchronous standby has them.

Guarantee: with `synchronous_standby_names`, `confirm` returns only when a synchronous standby has
everything that the session has read before. A failover to that standby loses nothing that was
published.

Why it is needed: a commit that waits for its standby becomes visible when its session ends, whether
the standby has it or not: Postgres cancels the wait and not the commit. A takeover of the clock and
an ordinary SIGTERM end sessions that way.

Why by a commit: WAL is flushed in order, so a standby that has a commit made after the read has
everything that was read. The commit is a message in the WAL, without a table, and is made only if
synchronous replication is configured (measured without it: one look at the setting in two seconds).

On failure: `Unreachable`, also if an operator cancels the wait. Postgres then reports the commit as
done, with a warning.
"""

from __future__ import annotations

import asyncio
import time

from psycopg.errors import Diagnostic

from tocsin.core.db import Connection, fetch_value, statement
from tocsin.core.errors import Unreachable
from tocsin.core.service import beat, end_tasks

_CHECK_S = 2.0
_BEAT_S = 1.0
_WAITING = "postgres waits for a synchronous standby: start it, or change synchronous_standby_names"


class Replication:
    def __init__(self) -> None:
        self._is_synchronous = False
        self._checked_s = 0.0

    async def confirm(self, connection: Connection) -> None:
        """Wait until a synchronous standby has what `connection` has read. The loop `cdc` reports it."""
        if time.monotonic() - self._checked_s > _CHECK_S:
            self._is_synchronous = bool(await fetch_value(connection, "cdc/read_replication"))
            self._checked_s = time.monotonic()
        if not self._is_synchronous:
            return
        commit = asyncio.create_task(_commit(connection))
        try:
            while not (await asyncio.wait({commit}, timeout=_BEAT_S))[0]:
                beat("cdc", _WAITING)
            commit.result()
        finally:
            await end_tasks([commit])


async def _commit(connection: Connection) -> None:
    warnings: list[str] = []

    def note(diagnostic: Diagnostic) -> None:
        warnings.append(str(diagnostic.message_primary))

    connection.add_notice_handler(note)
    try:
        await connection.execute(statement("cdc/await_standby"))
    finally:
        connection.remove_notice_handler(note)
    if warnings:
        raise Unreachable(f"no synchronous standby has confirmed what was read ({warnings[0]})")

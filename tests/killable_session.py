"""A session that is killed on purpose: its backend is terminated before a statement, a COPY or the COMMIT."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.wait import eventually
from tocsin.core.db import Connection


class KillableSession:
    """A connection that is killed before its nth statement; COMMIT counts as one."""

    def __init__(self, connection: Connection, watch: Connection, statements: int) -> None:
        self._connection, self._watch, self._left = connection, watch, statements

    @property
    def is_dead(self) -> bool:
        return self._left < 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def execute(self, *arguments: Any, **options: Any) -> Any:
        await self.count()
        return await self._connection.execute(*arguments, **options)

    def cursor(self, **options: Any) -> Any:
        return _KillableCursor(self, self._connection.cursor(**options))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        async with self._connection.transaction() as begun:
            yield begun
            await self.count()

    async def count(self) -> None:
        self._left -= 1
        if self._left == -1:
            await self._watch.execute("select pg_terminate_backend(%s)", (self._connection.info.backend_pid,))
            await eventually(self._is_gone, "the backend is gone")

    async def _is_gone(self) -> bool:
        """Polled here, because pg_terminate_backend itself polls only every tenth of a second."""
        pid = self._connection.info.backend_pid
        cursor = await self._watch.execute("select from pg_stat_activity where pid = %s", (pid,))
        return cursor.rowcount == 0


class _KillableCursor:
    def __init__(self, session: KillableSession, cursor: Any) -> None:
        self._session, self._cursor = session, cursor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    async def __aenter__(self) -> _KillableCursor:
        await self._cursor.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._cursor.__aexit__(*raised)

    async def execute(self, *arguments: Any, **options: Any) -> Any:
        await self._session.count()
        return await self._cursor.execute(*arguments, **options)

    @asynccontextmanager
    async def copy(self, *arguments: Any) -> AsyncIterator[Any]:
        async with self._cursor.copy(*arguments) as copy:
            await self._session.count()
            yield copy

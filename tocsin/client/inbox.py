"""The inbox: two small tables in the service's own Postgres, written in the transaction of the handler's own
work.

Guarantee: effective exactly once. The claim of a record and what the handler writes commit together or not at
all, and a key is claimed once: a record that is delivered again, at the same time or a year later, is skipped.
A process may die at any line.

Why a row per record beyond the mark: records side by side finish in any order. The mark follows behind, and the
rows that it speaks for are removed in the same transaction. A claim that meets this moment reads the mark in a
statement of its own afterwards, and then sees it.

On failure: what fails before the handler is `KeepAway`; a deadlock is tried again; anything else is the
record's failure. A handler that swallowed an error of Postgres has an aborted transaction, which would commit
as nothing: that is a failure too. A frozen process keeps its record until its session ends: ours end after the
handler's time-out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool, PoolClosed

from tocsin.client._inbox_protocol import KeepAway, Mark, Place, Unusable, Work
from tocsin.core.db import CancellablePool, Connection, retrying, shown_address, shown_reason, statement
from tocsin.core.errors import InvalidInput, Unreachable

_PATIENCE_S = 5.0
_GRACE_S = 5.0


def inbox_sql() -> str:
    """The tables as SQL for the service's own migrations. Running it again changes nothing."""
    made = (statement("tocsin.client/create_inbox"), statement("tocsin.client/create_inbox_ahead"))
    return "".join(f"{one.decode()};\n" for one in made)


async def make_inbox(connection: Connection) -> None:
    """The same for a service without migrations; in the caller's transaction, where there is one."""
    await connection.execute(inbox_sql().encode())


class _AlreadyHandled(Exception):
    """Undoes a claim. Not psycopg's own Rollback, which gets through when its connection is gone."""


class Inbox:
    """`postgres`: a connection string, or the service's own pool (psycopg_pool), open."""

    in_order_only = False

    def __init__(self, postgres: str | AsyncConnectionPool[Any]) -> None:
        if not isinstance(postgres, str | AsyncConnectionPool) or not postgres:
            raise InvalidInput(
                f"Inbox({postgres!r})",
                remedy="give a connection string or an open psycopg_pool.AsyncConnectionPool",
            )
        self._postgres = postgres

    @asynccontextmanager
    async def opened(self, place: Place) -> AsyncIterator[OpenInbox]:
        if isinstance(self._postgres, AsyncConnectionPool):
            yield await _checked(OpenInbox(self._postgres, place))
            return
        async with _own_pool(self._postgres, place) as pool:
            yield await _checked(OpenInbox(pool, place))


class OpenInbox:
    def __init__(self, pool: AsyncConnectionPool[Any], place: Place) -> None:
        self._pool = pool
        self._place = {"stream": place.namespace, "consumer": place.consumer}

    async def mark(self) -> Mark | None:
        row = await self._row(statement("tocsin.client/read_inbox"), {})
        return None if row is None else Mark(*row)

    async def begin(self, mark: Mark) -> Mark:
        await self._row(statement("tocsin.client/begin_inbox"), {"seq": mark.seq, "id": mark.id})
        return await self.mark() or mark

    async def are_handled(self, seqs: list[int]) -> bool:
        row = await self._row(statement("tocsin.client/count_unhandled"), {"seqs": seqs})
        return row is not None and row[0] == 0

    async def once(self, record: Mark, work: Work) -> bool:
        return await retrying(lambda: self._once(record.seq, work))

    async def raise_to(self, mark: Mark) -> None:
        with_mark = {**self._place, "seq": mark.seq, "id": mark.id}
        async with self._looking() as connection:
            await _one(connection, statement("tocsin.client/raise_inbox"), with_mark)
            await _one(connection, statement("tocsin.client/tidy_inbox"), self._place)

    async def check(self) -> None:
        """Refuses what would make a promise of ours untrue."""
        try:
            async with self._looking() as connection:
                row = await _one(connection, statement("tocsin.client/read_isolation"), {})
                await _one(
                    connection, statement("tocsin.client/count_unhandled"), {**self._place, "seqs": []}
                )
        except psycopg.errors.UndefinedTable:
            raise Unusable(
                "the inbox has no tables: run the SQL of tocsin.client.inbox_sql() in your migrations, or "
                "`await make_inbox(connection)` once"
            ) from None
        except psycopg.errors.InsufficientPrivilege as error:
            raise Unusable(
                f"the inbox cannot be used ({error.diag.message_primary}): grant select, insert, update and "
                "delete on tocsin_inbox and tocsin_inbox_ahead"
            ) from None
        if row is None or row[0] != "read committed":
            raise Unusable(
                f"the inbox needs transactions that are read committed, and these are {row and row[0]}: a "
                "snapshot from the beginning would not see what another process did meanwhile"
            )

    async def _once(self, seq: int, work: Work) -> bool:
        is_begun = False
        try:
            async with self._pool.connection(_PATIENCE_S) as connection, connection.transaction():
                if not await self._claim(connection, seq):
                    raise _AlreadyHandled
                is_begun = True
                await work(connection)
                if connection.info.transaction_status != TransactionStatus.INTRANS:
                    raise InvalidInput(
                        "the handler's transaction was aborted by an error that it caught",
                        remedy="let the error "
                        "through, or use `async with connection.transaction()` around what may fail",
                    )
        except _AlreadyHandled:
            return False
        except PoolClosed as error:
            raise Unusable(f"the inbox's pool is not open: {error}") from None
        except psycopg.OperationalError as error:
            if is_begun:
                raise
            raise KeepAway(f"the inbox does not answer: {error}") from None
        return True

    async def _claim(self, connection: Connection, seq: int) -> bool:
        try:
            if (
                await _one(connection, statement("tocsin.client/claim_record"), {**self._place, "seq": seq})
                is None
            ):
                return False
            mark = await _one(connection, statement("tocsin.client/read_inbox"), self._place)
        except psycopg.ProgrammingError as error:
            raise Unusable(f"the inbox cannot be written: {error}") from None
        if mark is None:
            raise Unusable(
                f"the inbox has no row of the consumer {self._place['consumer']!r} any more: start it again"
            )
        return bool(mark[0] < seq)

    async def _row(self, query: bytes, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
        async with self._looking() as connection:
            return await _one(connection, query, {**self._place, **parameters})

    @asynccontextmanager
    async def _looking(self) -> AsyncIterator[Connection]:
        """A short transaction of our own."""
        try:
            async with self._pool.connection(_PATIENCE_S) as connection, connection.transaction():
                yield connection
        except PoolClosed as error:
            raise Unusable(f"the inbox's pool is not open: {error}") from None
        except psycopg.OperationalError as error:
            raise KeepAway(f"the inbox does not answer: {error}") from None


async def _one(connection: Connection, query: bytes, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
    """One row, whatever row factory the service uses; None where there is none."""
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(query, parameters)
        return await cursor.fetchone() if cursor.description else None


async def _checked(inbox: OpenInbox) -> OpenInbox:
    await inbox.check()
    return inbox


@asynccontextmanager
async def _own_pool(conninfo: str, place: Place) -> AsyncIterator[AsyncConnectionPool[Any]]:
    """As many sessions as handlers, and one to look with."""
    bound_ms = int((place.delivery.timeout_s + _GRACE_S) * 1000)

    async def bound(connection: Connection) -> None:
        await connection.execute(statement("tocsin.client/bound_session"), {"ms": str(bound_ms)})
        await connection.commit()

    try:
        # Alone first, so that a wrong address is one sentence and not a time-out of the pool.
        await (await psycopg.AsyncConnection.connect(conninfo, connect_timeout=int(_PATIENCE_S))).close()
    except psycopg.OperationalError as error:
        raise Unreachable(
            f"cannot reach the inbox's postgres at {shown_address(conninfo)}{shown_reason(conninfo, error)}",
            remedy="start it, or give Inbox another connection string",
        ) from None
    except (psycopg.ProgrammingError, UnicodeError):
        raise InvalidInput(
            f"Inbox({shown_address(conninfo)!r}) is not a connection string",
            remedy="write postgresql://user@host:5432/database",
        ) from None
    async with CancellablePool(
        conninfo,
        min_size=1,
        max_size=place.delivery.concurrency + 1,
        kwargs={"application_name": f"tocsin consume {place.consumer}"},
        configure=bound,
        open=False,
        name=f"tocsin inbox {place.consumer}",
    ) as pool:
        yield pool

"""The inbox: two tables in the service's own Postgres, written in the handler's transaction.

Guarantee: effectively exactly once. The claim of a record and what the handler writes commit
together or not at all, and a record is claimed once. A record that is delivered again, at the same
time or a year later, is skipped. A process may die at any line.

Why a row per record after the mark: records in parallel finish in any order. The mark follows, over
rows that are there and no others, and these are deleted in the same transaction. A claim that runs
at this moment reads the mark in a statement of its own afterwards, and then sees it. A database
that lost commits (a failover to an asynchronous standby, a restore) therefore never has a mark
behind a record whose effects it lost.

On failure: an error of the inbox is `StoreUnreachable`; a deadlock is retried; any other error is
one of the handler. A handler that caught an error of Postgres has an aborted
transaction, which would commit nothing: that is a failed attempt too. A frozen process keeps its
record until its session ends: sessions of ours end after the time limit of the handler.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool, PoolClosed

from tocsin.client._mark_store import ConsumerContext, Mark, StoreUnreachable, Unusable, Work
from tocsin.core.db import CancellablePool, Connection, retrying, shown_address, shown_reason, statement
from tocsin.core.errors import InvalidInput, Unreachable
from tocsin.core.sql_errors import LOST_RACE, Fault, fault_of, summary

_TIMEOUT_S = 5.0
_GRACE_S = 5.0
# Receives the connection of its transaction and the records that were not handled before.
BatchWork = Callable[[Connection, set[int]], Awaitable[None]]


def inbox_sql() -> str:
    """SQL that creates the tables, for the service's own migrations.

    Running it again changes nothing.
    """
    statements = (statement("tocsin.client/create_inbox"), statement("tocsin.client/create_inbox_ahead"))
    return "".join(f"{sql.decode()};\n" for sql in statements)


async def make_inbox(connection: Connection) -> None:
    """Create the tables, for a service without migrations.

    Runs in the caller's transaction if there is one.
    """
    await connection.execute(inbox_sql().encode())


class _AlreadyHandled(Exception):
    """Undoes a claim. `Rollback` of psycopg raises no error if its connection is lost."""


class Inbox:
    """Store in Postgres.

    `postgres` is a connection string or an open pool of the service (psycopg_pool).
    """

    in_order_only = False

    def __init__(self, postgres: str | AsyncConnectionPool[Any]) -> None:
        if not isinstance(postgres, str | AsyncConnectionPool) or not postgres:
            raise InvalidInput(
                f"Inbox({postgres!r})",
                remedy="give a connection string or an open psycopg_pool.AsyncConnectionPool",
            )
        self._postgres = postgres

    @asynccontextmanager
    async def open(self, context: ConsumerContext) -> AsyncIterator[OpenInbox]:
        if isinstance(self._postgres, AsyncConnectionPool):
            yield await _checked(OpenInbox(self._postgres, context))
            return
        async with _own_pool(self._postgres, context) as pool:
            yield await _checked(OpenInbox(pool, context))


class OpenInbox:
    def __init__(self, pool: AsyncConnectionPool[Any], context: ConsumerContext) -> None:
        self._pool = pool
        self._key = {"stream": context.namespace, "consumer": context.consumer}

    async def mark(self) -> Mark | None:
        row = await self._row(statement("tocsin.client/read_inbox"), {})
        return None if row is None else Mark(*row)

    async def begin(self, mark: Mark) -> Mark:
        await self._row(statement("tocsin.client/begin_inbox"), {"seq": mark.seq, "id": mark.id})
        return await self.mark() or mark

    async def handled_beyond(self, seq: int, until: int, limit: int) -> list[int]:
        row = await self._row(
            statement("tocsin.client/read_handled"), {"after": seq, "until": until, "limit": limit}
        )
        return [] if row is None else list(row[0])

    async def once(self, record: Mark, work: Work) -> bool:
        return bool(await self.once_all([record.seq], lambda connection, _: work(connection)))

    async def once_all(self, seqs: list[int], work: BatchWork) -> set[int]:
        """Run the work of several records in one transaction.

        The work gets those of them that were not handled before, which are returned.
        """
        return await retrying(lambda: self._once(seqs, work))

    async def begin_attempt(self, seq: int) -> int:
        """Count an attempt that begins with this record alone; returns its number."""
        row = await self._row(statement("tocsin.client/count_attempt"), {"seq": seq})
        return 1 if row is None else int(row[0])

    async def raise_mark(self, before: int, mark: Mark, handled: int) -> bool:
        with_mark = {**self._key, "before": before, "seq": mark.seq, "id": mark.id, "handled": handled}
        async with self._transaction() as connection:
            is_raised = await _one(connection, statement("tocsin.client/raise_inbox"), with_mark)
            await _one(connection, statement("tocsin.client/tidy_inbox"), self._key)
        return is_raised is not None

    async def check(self) -> None:
        """Reject an inbox that cannot hold its guarantee."""
        nothing = {**self._key, "after": 0, "until": 0, "limit": 0}
        async with self._transaction() as connection:
            try:
                row = await _one(connection, statement("tocsin.client/read_isolation"), {})
                await _one(connection, statement("tocsin.client/read_handled"), nothing)
                await _one(connection, statement("tocsin.client/read_inbox"), self._key)
            except psycopg.errors.UndefinedTable:
                raise Unusable(
                    "the inbox has no tables",
                    remedy="run the SQL of tocsin.client.inbox_sql() in your migrations, or "
                    "`await make_inbox(connection)` once",
                ) from None
            except psycopg.errors.InsufficientPrivilege as error:
                raise Unusable(
                    f"the inbox cannot be used ({error.diag.message_primary})",
                    remedy="grant select, insert, update and delete on tocsin_inbox and tocsin_inbox_ahead",
                ) from None
        if row is None or row[0] != "read committed":
            raise Unusable(
                f"the inbox needs read committed transactions, and these are {row and row[0]}: a snapshot of "
                "the beginning does not show what another process committed meanwhile"
            )

    async def _once(self, seqs: list[int], work: BatchWork) -> set[int]:
        work_began = False
        try:
            async with self._pool.connection(_TIMEOUT_S) as connection, connection.transaction():
                claimed = await self._claim(connection, seqs)
                if not claimed:
                    raise _AlreadyHandled
                work_began = True
                await work(connection, claimed)
                if connection.info.transaction_status != TransactionStatus.INTRANS:
                    raise InvalidInput(
                        "the handler's transaction was aborted by an error that it caught",
                        remedy="let the error "
                        "through, or put `async with connection.transaction()` around what may fail",
                    )
        except _AlreadyHandled:
            return set()
        except PoolClosed as error:
            raise Unusable(f"the inbox's pool is not open: {error}") from None
        except psycopg.Error as error:
            if work_began or isinstance(error, LOST_RACE):
                raise
            raise _unreachable(error) from None
        return claimed

    async def _claim(self, connection: Connection, seqs: list[int]) -> set[int]:
        row = await _one(
            connection, statement("tocsin.client/claim_records"), {**self._key, "seqs": sorted(seqs)}
        )
        mark = await _one(connection, statement("tocsin.client/read_inbox"), self._key)
        if mark is None:
            raise Unusable(
                f"the inbox no longer has a row of the consumer {self._key['consumer']!r}",
                remedy="start it again",
            )
        inserted = set(row[0]) if row else set()
        claimed = {seq for seq in inserted if seq > mark[0]}
        if claimed and claimed != inserted:
            await _one(connection, statement("tocsin.client/tidy_inbox"), self._key)
        return claimed

    async def _row(self, query: bytes, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
        async with self._transaction() as connection:
            return await _one(connection, query, {**self._key, **parameters})

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        """A short transaction on a session of the pool."""
        try:
            async with self._pool.connection(_TIMEOUT_S) as connection, connection.transaction():
                yield connection
        except PoolClosed as error:
            raise Unusable(f"the inbox's pool is not open: {error}") from None
        except psycopg.Error as error:
            raise _unreachable(error) from None


def _unreachable(error: psycopg.Error) -> StoreUnreachable:
    """The statements of the inbox are correct, so every error of them is one of the server."""
    if fault_of(error) is Fault.SETUP:
        return StoreUnreachable(
            f"the inbox cannot be used: {summary(error)}",
            remedy="create its tables, and grant select, insert, update and delete on them",
        )
    return StoreUnreachable(f"the inbox does not answer: {error}")


async def _one(connection: Connection, query: bytes, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
    """The first row or None, whatever row factory the service uses."""
    async with connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(query, parameters)
        return await cursor.fetchone() if cursor.description else None


async def _checked(inbox: OpenInbox) -> OpenInbox:
    await inbox.check()
    return inbox


@asynccontextmanager
async def _own_pool(conninfo: str, context: ConsumerContext) -> AsyncIterator[AsyncConnectionPool[Any]]:
    """A pool with a session for each handler and one for reads."""
    bound_ms = int((context.delivery.timeout_s + _GRACE_S) * 1000)

    async def bound_session(connection: Connection) -> None:
        await connection.execute(statement("tocsin.client/bound_session"), {"ms": str(bound_ms)})
        await connection.commit()

    try:
        # A single connection first: a wrong address is then one clear error and not a timeout of
        # the pool.
        await (await psycopg.AsyncConnection.connect(conninfo, connect_timeout=int(_TIMEOUT_S))).close()
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
        max_size=context.delivery.concurrency + 1,
        kwargs={"application_name": f"tocsin consume {context.consumer}"},
        configure=bound_session,
        open=False,
        name=f"tocsin inbox {context.consumer}",
    ) as pool:
        yield pool

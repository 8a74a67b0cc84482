"""Calls functions of the database on the service's own connection.

Guarantee: arguments that a function rejects raise `InvalidInput`, and an open transaction stays as
it was, still usable. The row factory of the connection does not matter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from tocsin.core.db import Connection
from tocsin.core.sql_errors import readable


async def call_function(connection: Connection, query: bytes, parameters: Mapping[str, Any]) -> Any:
    try:
        async with rolled_back_on_error(connection), connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(query, parameters)
            row = await cursor.fetchone()
    except psycopg.Error as error:
        raise readable(error) from None
    return row[0] if row else None


@asynccontextmanager
async def rolled_back_on_error(connection: Connection) -> AsyncIterator[None]:
    """Undo the block, and nothing else, if Postgres rejects one of its statements.

    In an open transaction the block runs in a savepoint. Without one, `connection.transaction()`
    would commit at its end, and the commit is the caller's decision.
    """
    if connection.info.transaction_status == TransactionStatus.INTRANS:
        async with connection.transaction():
            yield
        return
    try:
        yield
    except psycopg.Error:
        if connection.info.transaction_status == TransactionStatus.INERROR:
            # The failed statement began this transaction, so it holds no work of the caller.
            await connection.rollback()
        raise

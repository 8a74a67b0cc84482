"""Calling a function of the database on the service's own connection.

Guarantee: what the function refuses on purpose arrives as our own error, and leaves a transaction that was under way
as it was, still usable. The connection's own row factory does not matter.
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


async def value_of(connection: Connection, query: bytes, parameters: Mapping[str, Any]) -> Any:
    try:
        async with undone_if_refused(connection), connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(query, parameters)
            row = await cursor.fetchone()
    except psycopg.Error as error:
        raise readable(error) from None
    return row[0] if row else None


@asynccontextmanager
async def undone_if_refused(connection: Connection) -> AsyncIterator[None]:
    """A savepoint where a transaction is under way.

    Where none is, `connection.transaction()` would commit at its end, and that is the caller's decision.
    """
    if connection.info.transaction_status == TransactionStatus.INTRANS:
        async with connection.transaction():
            yield
        return
    try:
        yield
    except psycopg.Error:
        if connection.info.transaction_status == TransactionStatus.INERROR:
            # The statement that failed began it, so it holds nothing of the caller's.
            await connection.rollback()
        raise

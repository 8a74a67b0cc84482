"""Queries for tests: rows as dictionaries, and whether a session waits for a lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg.rows import dict_row

from tocsin.core.db import Connection


async def all_rows(
    connection: Connection, query: str, parameters: Sequence[Any] = ()
) -> list[dict[str, Any]]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query.encode(), parameters)
        return await cursor.fetchall()


async def one_row(connection: Connection, query: str, parameters: Sequence[Any] = ()) -> dict[str, Any]:
    (row,) = await all_rows(connection, query, parameters)
    return row


async def blocked(watch: Connection, session: Connection) -> bool:
    """Whether `session` waits for a lock that another session holds."""
    row = await one_row(watch, "select cardinality(pg_blocking_pids(%s)) as n", (session.info.backend_pid,))
    return bool(row["n"])

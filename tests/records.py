"""Reads the record log."""

from __future__ import annotations

from typing import Any

from psycopg.rows import dict_row

from tocsin.core.db import Connection


async def events(connection: Connection) -> list[dict[str, Any]]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute("select * from tocsin.event order by seq")
        return await cursor.fetchall()

"""The health of systems, for a person to look at."""

from __future__ import annotations

from typing import Any

from psycopg.rows import dict_row

from tocsin.core.db import Connection, statement


async def list_health(connection: Connection) -> list[dict[str, Any]]:
    """By name; of each system the members that are not ok, the worst first, and since when a fact about it waits."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("rules.health/list_health"))
        return await cursor.fetchall()

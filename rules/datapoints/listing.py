"""Series for a person to look at."""

from __future__ import annotations

import re
from typing import Any

from psycopg.rows import dict_row

from schemas.key_pattern import check_pattern
from tocsin.core.db import Connection, statement
from tocsin.core.errors import InvalidInput

_PARTS = {"*": r"[^.]+", "**": r".+"}


async def list_series(
    connection: Connection,
    *,
    owner: str | None = None,
    key: str | None = None,
    stale: bool = False,
    limit: int = 100,
) -> list[dict[str, Any]]:
    """By owner and key. `key` may be a pattern."""
    parameters = {
        "owner": owner,
        "key": None if key is None else _expression(key),
        "freshness": "stale" if stale else None,
        "limit": limit,
    }
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("rules.datapoints/list_series"), parameters)
        return await cursor.fetchall()


def _expression(pattern: str) -> str:
    try:
        check_pattern(pattern)
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    parts = (_PARTS.get(part, re.escape(part)) for part in pattern.split("."))
    return "^" + r"\.".join(parts) + "$"

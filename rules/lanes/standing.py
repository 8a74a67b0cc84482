"""How the lanes stand, for a person to look at."""

from __future__ import annotations

from typing import NamedTuple

from tocsin.core.db import Connection, statement


class Standing(NamedTuple):
    lane: str
    partition: int
    holder: str | None
    """None: nobody who is alive."""
    last_seq: int
    behind_s: float | None
    """Since when it is not complete any more; None before it ever was."""


async def list_lanes(connection: Connection) -> list[Standing]:
    rows = await (await connection.execute(statement("rules.lanes/list_lanes"))).fetchall()
    return [Standing(*row) for row in rows]

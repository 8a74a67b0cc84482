"""Arms, cancels and lists timers.

A thin layer over the SQL functions, which any service may call directly.

Guarantee: every function works inside the caller's transaction and never locks the record log.

On failure: `InvalidInput` for arguments that the SQL function rejects.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import tuple_row
from psycopg.types.json import Jsonb

from tocsin.core.db import Connection, fetch_dicts, statement
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import check_aware
from tocsin.core.sql_errors import readable

KINDS = ("schedule-tick", "for-sustain", "runbook-wait", "watchdog")


async def arm(
    connection: Connection,
    kind: str,
    ref: str,
    key: str,
    fire_at: datetime,
    payload: dict[str, Any] | None = None,
    generation: int = 1,
) -> bool:
    """Arm a timer. True if it is new, False if an armed one was moved."""
    check_aware(fire_at, "fire_at")
    check_kind(kind)
    armed = await _value(
        connection, statement("timers/arm"), (kind, ref, key, fire_at, Jsonb(payload or {}), generation)
    )
    return bool(armed)


async def cancel(connection: Connection, kind: str, ref: str, key: str = "") -> bool:
    """Cancel a timer. False if the clock has fired it, or if it was never armed."""
    return bool(await _value(connection, statement("timers/cancel"), (kind, ref, key)))


async def cancel_all(connection: Connection, ref: str, kind: str | None = None) -> int:
    """Cancel all timers of one entity, and return how many there were."""
    return int(await _value(connection, statement("timers/cancel_all"), (ref, kind)))


async def list_timers(
    connection: Connection, *, kind: str | None = None, parked: bool = False, limit: int = 100
) -> list[dict[str, Any]]:
    if kind is not None:
        check_kind(kind)
    filters = {"kind": kind, "parked": parked, "limit": limit}
    return await fetch_dicts(connection, "timers/list_timers", filters)


async def database_now(connection: Connection) -> datetime:
    now: datetime = await _value(connection, statement("timers/read_instant"), ())
    return now


async def _value(connection: Connection, sql: bytes, parameters: tuple[Any, ...]) -> Any:
    """One value, independent of the row factory of the connection.

    Rejected arguments raise `InvalidInput`.
    """
    async with connection.cursor(row_factory=tuple_row) as cursor:
        try:
            await cursor.execute(sql, parameters)
        except psycopg.Error as error:
            raise readable(error) from None
        row = await cursor.fetchone()
    assert row is not None
    return row[0]


def check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise InvalidInput(f"unknown timer kind {kind!r}", remedy=f"use one of {', '.join(KINDS)}")

"""The Python face of the working set: arm, cancel, list. Thin, because the SQL functions are the contract.

Every function works inside the caller's transaction and never touches the record log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from tocsin.core.db import Connection, statement
from tocsin.core.errors import InvalidInput

KINDS = ("schedule-tick", "for-sustain", "runbook-wait", "watchdog")
_REFUSED = "TS002"


async def arm(
    connection: Connection,
    kind: str,
    ref: str,
    key: str,
    fire_at: datetime,
    payload: dict[str, Any] | None = None,
    generation: int = 1,
) -> bool:
    """True if the timer is new, false if an armed one was moved."""
    if fire_at.tzinfo is None:
        raise InvalidInput(f"fire_at {fire_at.isoformat()} is naive: give an aware instant")
    _check_kind(kind)
    with _readable():
        cursor = await connection.execute(
            statement("timers/arm"), (kind, ref, key, fire_at, Jsonb(payload or {}), generation)
        )
    row = await cursor.fetchone()
    return bool(row and row[0])


async def cancel(connection: Connection, kind: str, ref: str, key: str = "") -> bool:
    """False means that the clock won, or that it was never armed."""
    with _readable():
        cursor = await connection.execute(statement("timers/cancel"), (kind, ref, key))
    row = await cursor.fetchone()
    return bool(row and row[0])


async def cancel_all(connection: Connection, ref: str, kind: str | None = None) -> int:
    """Every timer of one entity; how many there were."""
    with _readable():
        cursor = await connection.execute(statement("timers/cancel_all"), (ref, kind))
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def list_timers(
    connection: Connection, *, kind: str | None = None, parked: bool = False, limit: int = 100
) -> list[dict[str, Any]]:
    if kind is not None:
        _check_kind(kind)
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            statement("timers/list_timers"), {"kind": kind, "parked": parked, "limit": limit}
        )
        return await cursor.fetchall()


async def database_now(connection: Connection) -> datetime:
    row = await (await connection.execute(statement("timers/read_instant"))).fetchone()
    assert row is not None
    now: datetime = row[0]
    return now


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise InvalidInput(f"unknown timer kind {kind!r}: use one of {', '.join(KINDS)}")


@contextmanager
def _readable() -> Iterator[None]:
    """What the SQL functions refuse on purpose arrives as our own error."""
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate == _REFUSED:
            raise InvalidInput(str(error.diag.message_primary)) from None
        raise

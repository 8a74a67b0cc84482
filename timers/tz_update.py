"""Applies a new tz database: moves the pending ticks that it affects.

The clock calls it at every takeover.

Guarantees: the database stores the version with which the ticks were computed, so a takeover
detects a new version, however long no clock ran. An occurrence that is done stays done: the next
one lies after it, and its identity is its wall time, which a new version does not change. A tick
that does not move is not touched. One-shots given as an instant, and `every`, do not depend on
zones and are not computed again.

Why computed outside the transaction: a hundred thousand schedules are seconds of work, and Postgres
ends a session that is idle in a transaction for that long. Each move compares what was read, so an
edit in between wins.

On failure: no tick has moved and the version is not stored. The next takeover tries again.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import structlog

from timers.identity import spread_of
from timers.recurrence import parse_spec
from timers.recurrence.zones import tz_version
from tocsin.core.db import Connection, fetch_all, fetch_value, statement

_log = structlog.get_logger()
_ROWS_BETWEEN_YIELDS = 500
_CHUNK = 1000


class ZonedTick(NamedTuple):
    """One row of timers/read_zoned_ticks."""

    ref: str
    generation: int
    nominal_at: datetime
    done_until: datetime | None
    armed_after: datetime
    recurrence: dict[str, Any]
    owner: str
    name: str
    spread: timedelta
    identity: str | None


class TickMove(NamedTuple):
    tick: ZonedTick
    nominal_at: datetime
    identity: str


async def apply_tz_data(connection: Connection, version: str | None = None) -> int:
    """Move the affected ticks and return how many. On a new database only the version is stored."""
    current = version or tz_version()
    stored = await fetch_value(connection, "timers/read_tz_version")
    if stored == current:
        return 0
    moves = sorted(await _moves(connection), key=lambda move: move.tick.ref) if stored is not None else []
    async with connection.transaction():
        # Chunk by chunk in key order, because building the columns takes time as well.
        for begin in range(0, len(moves), _CHUNK):
            columns = _columns(moves[begin : begin + _CHUNK])
            await connection.execute(statement("timers/move_ticks"), columns)
        await connection.execute(statement("timers/write_tz_version"), {"version": current})
    if stored is not None:
        _log.info("tz data changed", before=stored, now=current, ticks_moved=len(moves))
    return len(moves)


async def _moves(connection: Connection) -> list[TickMove]:
    rows = await fetch_all(connection, "timers/read_zoned_ticks")
    moves = []
    for number, row in enumerate(rows):
        tick = ZonedTick(*row)
        recurrence = parse_spec(tick.recurrence)
        following = recurrence.occurrence_after(tick.done_until or tick.armed_after)
        if following is not None:
            move = TickMove(tick, following.at, recurrence.identity(following))
            # The same instant may now be another wall time.
            if move[1:] != (tick.nominal_at, tick.identity or move.identity):
                moves.append(move)
        if number % _ROWS_BETWEEN_YIELDS == 0:
            await asyncio.sleep(0)
    return moves


def _columns(moves: list[TickMove]) -> dict[str, list[Any]]:
    return {
        "refs": [move.tick.ref for move in moves],
        "generations": [move.tick.generation for move in moves],
        "seen": [move.tick.nominal_at for move in moves],
        "nominal_at": [move.nominal_at for move in moves],
        "fire_at": [
            move.nominal_at + spread_of(move.tick.owner, move.tick.name, move.tick.spread) for move in moves
        ],
        "identities": [move.identity for move in moves],
    }

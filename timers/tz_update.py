"""A new tz database: pending ticks that it concerns are computed again, and moved in one short transaction.

Guarantees: the version the ticks were computed with is stored beside them, so a change is noticed at the next
takeover whatever happened in between; an occurrence that is done stays done (the next one lies after it, and its
identity is its wall time, which a new version does not change); a tick that does not move is not touched.
One-shots given as an instant, and `every`, do not depend on zones and stay.

Why computed outside the transaction: a hundred thousand schedules are seconds of work, and a session of ours that
is idle in a transaction for that long is ended. Each move compares what was read, so an edit in between wins.

On failure nothing moved and the version is not stored: the next takeover does it.
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
_ROWS_BETWEEN_BREATHS = 500
_MOVED_AT_ONCE = 1000


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


class Move(NamedTuple):
    tick: ZonedTick
    nominal_at: datetime
    identity: str


async def follow_tz_data(connection: Connection, version: str | None = None) -> int:
    """How many ticks moved. On a new database there is nothing to compare with: the version is stored."""
    current = version or tz_version()
    stored = await fetch_value(connection, "timers/read_tz_version")
    if stored == current:
        return 0
    moves = sorted(await _moves(connection), key=lambda move: move.tick.ref) if stored is not None else []
    async with connection.transaction():
        # Page by page in key order: putting the columns together takes its time, too.
        for begin in range(0, len(moves), _MOVED_AT_ONCE):
            page = _columns(moves[begin : begin + _MOVED_AT_ONCE])
            await connection.execute(statement("timers/move_ticks"), page)
        await connection.execute(statement("timers/write_tz_version"), {"version": current})
    if stored is not None:
        _log.info("tz data changed", before=stored, now=current, ticks_moved=len(moves))
    return len(moves)


async def _moves(connection: Connection) -> list[Move]:
    rows = await fetch_all(connection, "timers/read_zoned_ticks")
    moves = []
    for number, row in enumerate(rows):
        tick = ZonedTick(*row)
        recurrence = parse_spec(tick.recurrence)
        following = recurrence.occurrence_after(tick.done_until or tick.armed_after)
        if following is not None:
            move = Move(tick, following.at, recurrence.identity(following))
            # The same instant may be another wall time now.
            if move[1:] != (tick.nominal_at, tick.identity or move.identity):
                moves.append(move)
        if number % _ROWS_BETWEEN_BREATHS == 0:
            await asyncio.sleep(0)
    return moves


def _columns(moves: list[Move]) -> dict[str, list[Any]]:
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

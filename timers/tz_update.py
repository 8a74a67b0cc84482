"""Applies new tz data: moves the pending ticks that it affects.

The clock calls it while it fires, after each takeover, until `update_ticks` returns True.

Guarantees: the database stores the version with which the ticks were computed, so a takeover
detects a new version, however long no clock ran. An occurrence that is done stays done: the next
one lies behind its wall time, also where the new data moves that wall time to a later instant. No
occurrence before the last edit or resume of its schedule fires. A tick that does not move is not
touched. One-shots given as an instant, and `every`, do not depend on zones and are not computed
again.

Why computed outside the transaction: a hundred thousand schedules are seconds of work, and Postgres
ends a session that is idle in a transaction for that long. Each move compares what was read, so an
edit in between wins. A tick that becomes due before it has moved is decided by the new data as well
(`clock.ticks`).

On failure: a tick that cannot be computed is logged and left as it is. A tick that another
transaction has locked is skipped, and a later call moves it. The version of the ticks is stored
when nothing is left. Every transaction proves the epoch.
"""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import structlog

from timers.identity import spread_of
from timers.recurrence import Occurrence, Recurrence, parse_identity, parse_spec
from timers.recurrence.zones import tz_version
from tocsin.core.db import Connection, fetch_all, fetch_one, statement
from tocsin.core.sql_errors import LOCK_TIMEOUT

_log = structlog.get_logger()
# About 2 ms of work: the clock fires in the same event loop.
_ROWS_BETWEEN_YIELDS = 50
_CHUNK = 1000


class ZonedTick(NamedTuple):
    """One row of timers/read_zoned_ticks."""

    ref: str
    generation: int
    nominal_at: datetime
    done_until: datetime | None
    done_identity: str | None
    armed_after: datetime
    recurrence: str
    owner: str
    name: str
    spread: timedelta
    identity: str | None


class TickMove(NamedTuple):
    tick: ZonedTick
    nominal_at: datetime
    identity: str


class TzUpdate:
    """The update of one term to the tz data of this process."""

    def __init__(self, epoch: int, version: str | None = None) -> None:
        self._epoch = epoch
        self._version = version or tz_version()
        self.moved = 0

    async def update_ticks(self, connection: Connection) -> bool:
        """Move the affected ticks. True if every tick is computed with this version.

        On a new database only the version is stored.
        """
        stored, before = await fetch_one(connection, "timers/read_tz_versions")
        if stored == before == self._version:
            return True
        complete = stored == self._version or await self._store_version(connection)
        if before is not None:
            moves = await _moves(connection)
            moved = await self._move(connection, moves)
            self.moved += moved
            complete = complete and moved == len(moves)
            _log.info(
                "tz data changed",
                before=before,
                now=self._version,
                ticks_moved=moved,
                ticks_locked=len(moves) - moved,
            )
        if complete:
            await self._write(connection, statement("timers/write_ticks_version"), {"version": self._version})
        return complete

    async def _store_version(self, connection: Connection) -> bool:
        """Store the version, so that edits by older data are refused.

        False if an edit that has read the former version has not committed yet.
        """
        try:
            async with connection.transaction():
                await connection.execute(statement("timers/lock_tz_version"))
                await self._write(
                    connection, statement("timers/write_tz_version"), {"version": self._version}
                )
        except LOCK_TIMEOUT:
            return False
        return True

    async def _move(self, connection: Connection, moves: list[TickMove]) -> int:
        """Move ticks chunk by chunk in key order. Returns how many were not locked or changed."""
        moves = sorted(moves, key=lambda move: move.tick.ref)
        moved = 0
        for begin in range(0, len(moves), _CHUNK):
            columns = _columns(moves[begin : begin + _CHUNK])
            moved += await self._write(connection, statement("timers/move_ticks"), columns)
        return moved

    async def _write(self, connection: Connection, query: bytes, parameters: dict[str, Any]) -> int:
        async with connection.transaction():
            cursor = await connection.execute(query, parameters)
            await connection.execute(statement("timers/prove_epoch"), {"epoch": self._epoch})
        return cursor.rowcount


async def _moves(connection: Connection) -> list[TickMove]:
    moves = []
    for number, row in enumerate(await fetch_all(connection, "timers/read_zoned_ticks")):
        move = move_of(ZonedTick(*row))
        if move is not None:
            moves.append(move)
        if number % _ROWS_BETWEEN_YIELDS == 0:
            await asyncio.sleep(0)
    return moves


def move_of(tick: ZonedTick) -> TickMove | None:
    """The move of a tick, or None if it stays where it is."""
    try:
        recurrence = parse_spec(json.loads(tick.recurrence))
        following = _pending(tick, recurrence)
    except Exception as error:  # any error belongs to this tick alone
        _log.error(
            "tz data not applied to a schedule",
            schedule=tick.name,
            owner=tick.owner,
            error=f"{type(error).__name__}: {error}",
        )
        return None
    if following is None:
        return None
    move = TickMove(tick, following.at, recurrence.identity(following))
    # The same instant may now be another wall time.
    return move if move[1:] != (tick.nominal_at, tick.identity or move.identity) else None


def _pending(tick: ZonedTick, recurrence: Recurrence) -> Occurrence | None:
    """The first occurrence after the last edit that is not done."""
    done = parse_identity(tick.done_identity)
    if done is None and tick.done_until is not None:
        return recurrence.occurrence_after(max(tick.done_until, tick.armed_after))
    return recurrence.occurrence_behind(tick.armed_after, done)


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

"""A recording read from Postgres: one snapshot, read only, in as many sessions as there are processes.

Guarantee: all of it is read as of one moment, so what a batch or the clock commits meanwhile is either wholly in it or
not at all. No row is locked and nothing is written. Rows come through cursors, a few thousand at a time.

What it costs the live system: the snapshot keeps vacuum from removing what died since. A long backtest of a busy
database is better run from an export.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID
from zlib import crc32

import psycopg
from psycopg import sql

from rules.engine import Arrival
from rules.replay.backtest.recording.model import (
    Apply,
    Arrivals,
    Events,
    Horizon,
    LaneSwitch,
    LastSeen,
    OpenAlarm,
    OwnerBegins,
    Part,
    RecordedEvent,
    Staleness,
    Story,
    Verdicts,
    Version,
)
from rules.replay.backtest.warm_up import beginning
from schemas.documents import KINDS
from tocsin.core.db import Connection, connect, fetch_one, statement
from tocsin.core.settings import Settings

_OWNERS_AT_ONCE = 200
_ROWS_AT_ONCE = 5000
_NO_LABELS: dict[str, str] = {}


@dataclass(frozen=True)
class DatabaseSource:
    """Use it inside `recorded`, which keeps the snapshot."""

    settings: Settings
    since: datetime
    until: datetime
    snapshot: str = ""

    async def story(self) -> Story:
        async with self._session() as session:
            versions = [
                Version(*row)
                for row in await _all(session, statement("rules.documents/list_versions"), _EVERY_KIND)
            ]
            kept_from = await _all(session, statement("rules.replay.backtest/read_kept_from"))
            start = beginning(self.since, versions, kept_from[0])
            (_, is_whole), *_ = await _all(
                session, statement("rules.replay.backtest/find_beginning"), {"start": start}
            )
            return Story(
                start=start,
                since=self.since,
                until=self.until,
                is_whole=is_whole,
                versions=versions,
                applies=[
                    Apply(*row)
                    for row in await _all(session, statement("rules.replay.backtest/list_applies"))
                ],
                switches=[
                    LaneSwitch(*row)
                    for row in await _all(session, statement("rules.replay.backtest/list_switches"))
                ],
                horizons=[
                    Horizon(*row)
                    for row in await _all(session, statement("rules.replay.backtest/read_horizons"))
                ],
            )

    async def parts(self, share: int, of: int) -> AsyncIterator[tuple[float, Part]]:
        start = (await self.story()).start
        async with self._session() as session:
            (first_seq, _), *_ = await _all(
                session, statement("rules.replay.backtest/find_beginning"), {"start": start}
            )
            listed = await _all(
                session, statement("rules.replay.backtest/list_owners"), {"first_seq": first_seq}
            )
            partitions = {owner: part for owner, part in listed if crc32(owner.encode()) % of == share}
            owners = list(partitions)
            window = {"start": start, "until": self.until, "first_seq": first_seq, "at": start}
            async with AsyncExitStack() as stack:
                given = {**window, "owners": owners}
                events = await stack.enter_async_context(
                    _by_owner(session, "events", statement("rules.replay.backtest/read_events"), given)
                )
                verdicts = await stack.enter_async_context(
                    _by_owner(session, "verdicts", statement("rules.replay.backtest/read_verdicts"), given)
                )
                for begin in range(0, len(owners), _OWNERS_AT_ONCE):
                    group = owners[begin : begin + _OWNERS_AT_ONCE]
                    async for place, part in self._of_group(
                        session, group, partitions, window, events, verdicts
                    ):
                        yield (begin + place) / len(owners), part

    async def _of_group(
        self,
        session: Connection,
        owners: list[str],
        partitions: dict[str, int],
        window: dict[str, Any],
        events: _ByOwner,
        verdicts: _ByOwner,
    ) -> AsyncIterator[tuple[int, Part]]:
        given = {**window, "owners": owners}
        held = _grouped(await _all(session, statement("rules.replay.backtest/list_open_alarms"), given))
        last = _grouped(await _all(session, statement("rules.replay.backtest/list_last_seen"), given))
        acts: dict[UUID | None, list[RecordedEvent]] = {}
        for act in map(_event, await _all(session, statement("rules.replay.backtest/list_acts"), given)):
            acts.setdefault(act.alarm_id, []).append(act)
        async with _by_owner(
            session, "datapoints", statement("rules.replay.backtest/read_datapoints"), given
        ) as datapoints:
            for place, owner in enumerate(owners):
                yield (
                    place,
                    OwnerBegins(
                        owner,
                        partitions[owner],
                        [
                            OpenAlarm(*row[1:])._replace(acts=tuple(acts.get(row[2], ())))
                            for row in held.get(owner, ())
                        ],
                        [_last_seen(row) for row in last.get(owner, ())],
                    ),
                )
                async for rows in datapoints.of(owner):
                    yield place, Arrivals([_arrival(row) for row in rows])
                async for rows in events.of(owner):
                    yield place, Events([_event(row) for row in rows])
                async for rows in verdicts.of(owner):
                    yield place, Verdicts([Staleness(*row) for row in rows])

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Connection]:
        session = await _reading(self.settings)
        try:
            if self.snapshot:
                taken = sql.SQL("set transaction snapshot {}").format(sql.Literal(self.snapshot))
                await session.execute(taken)
            yield session
        finally:
            await session.close()


@asynccontextmanager
async def recorded(settings: Settings, since: datetime, until: datetime) -> AsyncIterator[DatabaseSource]:
    """The recording as of now; the snapshot is kept until the end of the block."""
    session = await _reading(settings)
    try:
        row = await fetch_one(session, "rules.replay.backtest/export_snapshot")
        assert row is not None
        yield replace(DatabaseSource(settings, since, until), snapshot=row[0])
    finally:
        await session.close()


async def whole_from(connection: Connection) -> datetime | None:
    """Records and datapoints are known to be all there from then on; None: nothing was ever dropped."""
    (kept_from,) = await _all(connection, statement("rules.replay.backtest/read_kept_from"))
    return max((one for one in kept_from if one is not None), default=None)


async def _reading(settings: Settings) -> Connection:
    """A session that may think between two rows for as long as it wants: it holds no lock."""
    session = await connect(settings, "backtest")
    await session.execute("set idle_in_transaction_session_timeout = 0")
    await session.set_autocommit(False)
    await session.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
    await session.set_read_only(True)
    return session


class _ByOwner:
    """The rows of a cursor that is ordered by owner, taken owner by owner; an owner may have none."""

    def __init__(self, cursor: psycopg.AsyncServerCursor[Any]) -> None:
        self._cursor = cursor
        self._rows: list[tuple[Any, ...]] = []

    async def of(self, owner: str) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        while True:
            if not self._rows:
                self._rows = await self._cursor.fetchmany(_ROWS_AT_ONCE)
            if not self._rows or self._rows[0][0] != owner:
                return
            if self._rows[-1][0] == owner:
                found, self._rows = self._rows, []
                yield found
                continue
            count = next(place for place, row in enumerate(self._rows) if row[0] != owner)
            found, self._rows = self._rows[:count], self._rows[count:]
            yield found
            return


@asynccontextmanager
async def _by_owner(
    session: Connection, name: str, query: bytes, given: dict[str, Any]
) -> AsyncIterator[_ByOwner]:
    async with session.cursor(name=name) as cursor:
        await cursor.execute(query, given)
        yield _ByOwner(cursor)


def _last_seen(row: tuple[Any, ...]) -> LastSeen:
    _, key, arrived_at, value, ts, labels = row
    return LastSeen(key, arrived_at, value, ts, labels or _NO_LABELS)


def _arrival(row: tuple[Any, ...]) -> Arrival:
    owner, arrived_at, seq, key, value, ts, labels = row
    return Arrival(arrived_at, seq, owner, key, value, ts, labels or _NO_LABELS)


def _event(row: tuple[Any, ...]) -> RecordedEvent:
    owner, seq, id, ts, recorded_at, origin, type, schedule, rule, action, *rest = row
    return RecordedEvent(seq, id, ts, recorded_at, origin, type, schedule, rule, action, owner, *rest)


def _grouped(rows: Sequence[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    return {owner: list(of_owner) for owner, of_owner in groupby(rows, key=itemgetter(0))}


async def _all(
    session: Connection, query: bytes, given: dict[str, Any] | None = None
) -> list[tuple[Any, ...]]:
    return await (await session.execute(query, given)).fetchall()


_EVERY_KIND = {"after": -1, "kinds": sorted(KINDS)}

"""A recording read from Postgres: one read-only snapshot, shared by all processes of a backtest.

Guarantee: all rows are read as of one moment, so a transaction that commits meanwhile is included
completely or not at all. No row is locked and nothing is written. Rows are read through cursors, a
few thousand at a time.

Cost for the live system: while the snapshot is open, vacuum cannot remove rows that were deleted
since. Run a long backtest of a busy database from an export.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
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

from rules.engine import Alarm, Arrival
from rules.lanes.arrival_gap import ArrivalGap
from rules.replay.backtest.recording.model import (
    Arrivals,
    CalculatedChange,
    CalculatedChanges,
    DocumentVersion,
    Horizon,
    InitialAlarm,
    LaneCutover,
    LastDatapoint,
    OwnerHeader,
    RecordedApply,
    RecordedEvent,
    RecordedEvents,
    RecordingHeader,
    RecordingItem,
)
from rules.replay.backtest.warm_up import replay_start
from schemas.documents import DOCUMENT_KINDS
from tocsin.core.db import Connection, connect, fetch_all, fetch_one, statement
from tocsin.core.settings import Settings

_OWNERS_AT_ONCE = 200
_ROWS_AT_ONCE = 5000
_NO_LABELS: dict[str, str] = {}
_EVERY_KIND = {"after": -1, "kinds": sorted(DOCUMENT_KINDS)}


@dataclass(frozen=True)
class DatabaseRecording:
    """A recording in the database. `recorded` opens its snapshot."""

    settings: Settings
    since: datetime
    until: datetime
    snapshot: str = ""

    async def header(self) -> RecordingHeader:
        async with self._session() as session:
            versions = [
                DocumentVersion(*row)
                for row in await fetch_all(session, "rules.documents/list_versions", _EVERY_KIND)
            ]
            (retained_from,) = await fetch_all(session, "rules.replay.backtest/read_retained_from")
            start = replay_start(self.since, versions, retained_from)
            _, is_whole = await _first_seq(session, start)
            applies = await fetch_all(session, "rules.replay.backtest/list_applies")
            cutovers = await fetch_all(session, "rules.replay.backtest/list_cutovers")
            horizons = await fetch_all(session, "rules.replay.backtest/read_horizons")
            gaps = await fetch_all(session, "rules.replay.backtest/list_gaps", {"until": self.until})
            return RecordingHeader(
                start=start,
                since=self.since,
                until=self.until,
                is_whole=is_whole,
                versions=versions,
                applies=[RecordedApply(*row) for row in applies],
                cutovers=[LaneCutover(*row) for row in cutovers],
                horizons=[Horizon(*row) for row in horizons],
                gaps=_gaps_by_partition(gaps),
            )

    async def items(self, share: int, of: int) -> AsyncIterator[tuple[float, RecordingItem]]:
        start = (await self.header()).start
        async with self._session() as session:
            first_seq, _ = await _first_seq(session, start)
            listed = await fetch_all(session, "rules.replay.backtest/list_owners", {"first_seq": first_seq})
            partitions = {
                owner: partition for owner, partition in listed if crc32(owner.encode()) % of == share
            }
            owners = list(partitions)
            window = {"start": start, "until": self.until, "first_seq": first_seq, "at": start}
            async with AsyncExitStack() as stack:
                parameters = {**window, "owners": owners}
                events = await stack.enter_async_context(
                    _by_owner(session, "events", statement("rules.replay.backtest/read_events"), parameters)
                )
                calculated = await stack.enter_async_context(
                    _by_owner(
                        session, "calculated", statement("rules.replay.backtest/read_calculated"), parameters
                    )
                )
                for begin in range(0, len(owners), _OWNERS_AT_ONCE):
                    group = {owner: partitions[owner] for owner in owners[begin : begin + _OWNERS_AT_ONCE]}
                    async for number, item in self._group_items(session, group, window, events, calculated):
                        yield (begin + number) / len(owners), item

    async def _group_items(
        self,
        session: Connection,
        partitions: dict[str, int],
        window: dict[str, Any],
        events: _RowsByOwner,
        calculated: _RowsByOwner,
    ) -> AsyncIterator[tuple[int, RecordingItem]]:
        """Items of some owners, each with the number of its owner."""
        parameters = {**window, "owners": list(partitions)}
        headers = await _owner_headers(session, partitions, parameters)
        async with _by_owner(
            session, "datapoints", statement("rules.replay.backtest/read_datapoints"), parameters
        ) as datapoints:
            for number, header in enumerate(headers):
                yield number, header
                async for rows in datapoints.of(header.owner):
                    yield number, Arrivals([_arrival(row) for row in rows])
                async for rows in events.of(header.owner):
                    yield number, RecordedEvents([_event(row) for row in rows])
                async for rows in calculated.of(header.owner):
                    yield number, CalculatedChanges([CalculatedChange(*row) for row in rows])

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[Connection]:
        session = await _reading_session(self.settings)
        try:
            if self.snapshot:
                command = sql.SQL("set transaction snapshot {}").format(sql.Literal(self.snapshot))
                await session.execute(command)
            yield session
        finally:
            await session.close()


@asynccontextmanager
async def open_database_recording(
    settings: Settings, since: datetime, until: datetime
) -> AsyncIterator[DatabaseRecording]:
    """Open the recording as of now. The snapshot is kept until the end of the block."""
    session = await _reading_session(settings)
    try:
        row = await fetch_one(session, "rules.replay.backtest/export_snapshot")
        assert row is not None
        yield replace(DatabaseRecording(settings, since, until), snapshot=row[0])
    finally:
        await session.close()


async def complete_since(connection: Connection) -> datetime | None:
    """The instant from which no record and no datapoint was pruned; None if nothing ever was."""
    (retained_from,) = await fetch_all(connection, "rules.replay.backtest/read_retained_from")
    return max((instant for instant in retained_from if instant is not None), default=None)


async def erased_since(connection: Connection) -> list[tuple[str, datetime]]:
    """The owners whose data was erased, and when: recordings of a time before leave them out."""
    return await fetch_all(connection, "rules.replay.backtest/list_erasures")


async def _reading_session(settings: Settings) -> Connection:
    """Open a session that may be idle inside its transaction for any time: it holds no lock."""
    session = await connect(settings, "backtest")
    await session.execute("set idle_in_transaction_session_timeout = 0")
    await session.set_autocommit(False)
    await session.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
    await session.set_read_only(True)
    return session


class _RowsByOwner:
    """Reads a cursor that is ordered by owner, owner by owner. An owner may have no rows."""

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
                rows, self._rows = self._rows, []
                yield rows
                continue
            count = next(number for number, row in enumerate(self._rows) if row[0] != owner)
            rows, self._rows = self._rows[:count], self._rows[count:]
            yield rows
            return


@asynccontextmanager
async def _by_owner(
    session: Connection, name: str, query: bytes, parameters: dict[str, Any]
) -> AsyncIterator[_RowsByOwner]:
    async with session.cursor(name=name) as cursor:
        await cursor.execute(query, parameters)
        yield _RowsByOwner(cursor)


async def _first_seq(session: Connection, start: datetime) -> tuple[int, bool]:
    """The first seq of the replay, and whether nothing was recorded before it."""
    row = await fetch_one(session, "rules.replay.backtest/find_first_seq", {"start": start})
    assert row is not None
    return row[0], row[1]


async def _owner_headers(
    session: Connection, partitions: dict[str, int], parameters: dict[str, Any]
) -> list[OwnerHeader]:
    alarms = _grouped(await fetch_all(session, "rules.replay.backtest/list_open_alarms", parameters))
    last = _grouped(await fetch_all(session, "rules.replay.backtest/list_last_datapoints", parameters))
    resolved = _grouped(
        await fetch_all(session, "rules.replay.backtest/list_operator_resolutions", parameters)
    )
    events: dict[UUID | None, list[RecordedEvent]] = {}
    for row in await fetch_all(session, "rules.replay.backtest/list_operator_events", parameters):
        event = _event(row)
        events.setdefault(event.alarm_id, []).append(event)
    return [
        OwnerHeader(
            owner,
            partition,
            [_initial_alarm(row, events) for row in alarms.get(owner, ())],
            [_last_datapoint(row) for row in last.get(owner, ())],
            tuple(_event(row) for row in resolved.get(owner, ())),
        )
        for owner, partition in partitions.items()
    ]


def _gaps_by_partition(rows: Sequence[tuple[Any, ...]]) -> dict[int, list[ArrivalGap]]:
    return {
        partition: [ArrivalGap(began_at, ended_at) for _, began_at, ended_at in of_partition]
        for partition, of_partition in groupby(rows, key=itemgetter(0))
    }


def _initial_alarm(
    row: tuple[Any, ...], events: Mapping[UUID | None, Sequence[RecordedEvent]]
) -> InitialAlarm:
    owner, rule, instance, id, severity, since, opened_at, payload, source_event_id = row
    alarm = Alarm(id, rule, owner, severity, since, payload, source_event_id, instance)
    return InitialAlarm(alarm, opened_at, tuple(events.get(id, ())))


def _last_datapoint(row: tuple[Any, ...]) -> LastDatapoint:
    _, key, arrived_at, value, ts, labels = row
    return LastDatapoint(key, arrived_at, value, ts, labels or _NO_LABELS)


def _arrival(row: tuple[Any, ...]) -> Arrival:
    owner, arrived_at, seq, key, value, ts, labels = row
    return Arrival(arrived_at, seq, owner, key, value, ts, labels or _NO_LABELS)


def _event(row: tuple[Any, ...]) -> RecordedEvent:
    owner, seq, id, ts, recorded_at, origin, type, schedule, rule, action, *rest = row
    return RecordedEvent(seq, id, ts, recorded_at, origin, type, schedule, rule, action, owner, *rest)


def _grouped(rows: Sequence[tuple[Any, ...]]) -> dict[str, list[tuple[Any, ...]]]:
    return {owner: list(of_owner) for owner, of_owner in groupby(rows, key=itemgetter(0))}

"""An instance in virtual time whose recording is then replayed: the live data lane, drain and clock.

JetStream is a list of messages. A worker, or a clock, can die before any statement of its transaction,
at its COMMIT, or after the commit and before it knows of it. Its successor continues from the
committed position.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import psycopg
import pytest

from cdc.log_reader import LogReader
from clock.term import begin_term
from rules.alarms.over_series import SeriesAlarms
from rules.alarms.queries import list_alarms
from rules.alarms.resolve import resolve
from rules.engine import Arrival
from rules.lanes.batch_size import BatchSize
from rules.lanes.data_lane import DataLane
from rules.lanes.data_stream import canary_subject
from rules.lanes.drain import Drain
from rules.lanes.lane import LaneMessage
from rules.lanes.lease import Leases
from rules.lanes.partition import PartitionLost
from rules.replay.backtest.parallel import backtest
from rules.replay.backtest.recording.database import open_database_recording
from rules.replay.backtest.recording.model import OwnerHeader, RecordingHeader, RecordingItem
from rules.replay.backtest.result import BacktestResult
from schemas.wire.calculated import CalculatedRow
from schemas.wire.subjects import datapoint_subject
from tests.clock.clock_setup import at, drain
from tests.killable_session import KillableSession
from tests.rules.alarms.alarm_batches import virtual_now
from tests.rules.apply.apply_setup import ACTOR, apply_only
from tests.rules.lanes.lane_setup import jetstream
from tests.sessions import Sessions
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import Refused
from tocsin.core.instant import instant_text
from tocsin.core.settings import Settings

_KEY = ("data", 0)


class RecordedInstance:
    """A worker and a clock on one partition."""

    worker: Connection
    _clock: Connection
    _watch: Connection
    _drain: Drain

    def __init__(self, settings: Settings, sessions: Sessions) -> None:
        self._settings = settings.model_copy(update={"data_partitions": 1})
        self._sessions = sessions
        self._lane = DataLane(self._settings, [SeriesAlarms()])
        self._stream: list[LaneMessage] = []
        self._published = 0
        self._now = at(0)
        self._seq = 0
        self._read_until = at(0)

    async def begin(self) -> None:
        self._watch = await self._sessions("watch")
        self._clock = await self._session("clock")
        self._operator = await self._session("operator")
        await self._watch.execute(
            "select tocsin.extend_datapoints(%s, %s)", (at(0).date(), at(30 * 86_400).date())
        )
        async with jetstream(self._settings) as js:
            await self._lane.open(self._watch, js)
        await self._replace_worker()

    async def _session(self, name: str) -> Connection:
        session = await self._sessions(name)
        await virtual_now(session, self._now)
        return session

    async def _replace_worker(self) -> None:
        """Let another worker take the partition, when the lease of the one before has expired."""
        self.worker = await self._session("worker")
        await self.worker.execute("update tocsin.lane_partition set held_until = tocsin.instant()")
        partition = await Leases(self.worker, 60.0).take(_KEY)
        assert partition is not None
        bus = cast(Any, None)
        self._drain = Drain(self._settings, bus, self._lane, partition, asyncio.Semaphore(1), BatchSize())

    def arrival(self, seconds: float, value: float, key: str, owner: str, **labels: str) -> Arrival:
        self._seq += 1
        return Arrival(at(seconds), self._seq, owner, key, value, at(seconds - 3), labels)

    async def arrive(self, arrivals: Sequence[Arrival]) -> None:
        self.publish(arrivals)
        await self.read()

    def publish(self, arrivals: Sequence[Arrival]) -> None:
        """Store datapoints in the stream. No worker has read them yet."""
        for row in arrivals:
            body = {"value": row.value, "ts": instant_text(row.ts), "labels": dict(row.labels)}
            subject = self._subject(row.owner, row.key)
            self._stream.append(LaneMessage(row.seq, row.at, subject, json.dumps(body).encode()))

    def end_gap(self, seconds: float) -> None:
        """Store a canary in the stream: the first message since the last arrival. Not read yet."""
        self._seq += 1
        began_at = max([message.at for message in self._stream[-1:]] + [self._read_until])
        subject = canary_subject(self._settings, 0).replace(".datapoint.", ".data.0.", 1)
        if at(seconds) > began_at:
            self._stream.append(LaneMessage(self._seq, at(seconds), subject, b"", gap_began_at=began_at))

    def _subject(self, owner: str, key: str, kind: str = "data") -> str:
        subject = datapoint_subject(self._settings.subjects, owner, key)
        return subject.replace(".datapoint.", f".{kind}.0.", 1)

    async def read(self) -> None:
        await self._read(self._drain, self.worker)

    async def _read(self, drain: Drain, session: Connection) -> None:
        """Read the messages after the position of the drain."""
        position = drain._partition.position
        read_until = position.watermark or at(0)
        messages = [
            message
            for message in self._stream
            if message.seq > position.last_seq and not (message.is_canary and message.at <= read_until)
        ]
        if messages:
            await drain._commit(session, messages)

    async def die_reading(self, statements: int) -> bool:
        """Kill the worker at a statement; true if it died before the commit. Its successor reads on."""
        killable = KillableSession(self.worker, self._watch, statements)
        with suppress(psycopg.OperationalError):
            await self._read(self._drain, cast(Connection, killable))
        await self.worker.close()
        await self._replace_worker()
        await self.read()
        return killable.is_dead

    async def freeze_reading(self) -> None:
        """Freeze a worker beyond its lease. When it wakes up, its successor has read everything, or nothing."""
        zombie, session = self._drain, self.worker
        await self._replace_worker()
        with pytest.raises(PartitionLost):
            await self._read(zombie, session)
        await self.read()
        with pytest.raises(PartitionLost):
            await self._read(zombie, session)
        await session.close()

    async def apply_only(self, text: str, seconds: float) -> None:
        """Apply these documents and remove all others."""
        await apply_only(self._operator, text, replace(ACTOR, now=at(seconds)))

    async def set_time(self, seconds: float) -> None:
        """Set the time of the sessions: the time of what they record."""
        self._now = at(seconds)
        for session in (self.worker, self._clock, self._operator):
            await virtual_now(session, self._now)

    async def read_until(self, until: datetime) -> None:
        """Read everything, and raise the watermark: nothing else has arrived until then."""
        await self.read()
        self._read_until = max(self._read_until, until)
        self._seq += 1
        subject = canary_subject(self._settings, 0).replace(".datapoint.", ".data.0.", 1)
        self._stream.append(LaneMessage(self._seq, until, subject, b""))
        await self.read()

    async def resolve_alarms(self, owner: str, seconds: float) -> None:
        """An operator resolves the open alarms of an owner."""
        for alarm in await list_alarms(self._operator, states=["open"], owner=owner):
            # The clock or the worker may have resolved it already.
            with suppress(Refused):
                await resolve(self._operator, alarm, Actor("bob", "test", at(seconds)))

    async def run_clock(self, seconds: float) -> None:
        """Fire what is due, with a new leader whose scan begins at the beginning of time."""
        await drain(await begin_term(self._clock, "test"), at(seconds))

    async def die_firing(self, seconds: float, statements: int) -> bool:
        """Kill the clock at a statement; true if it died before it had fired everything."""
        killable = KillableSession(self._clock, self._watch, statements)
        with suppress(psycopg.OperationalError):
            await drain(await begin_term(cast(Connection, killable), "test"), at(seconds))
        await self._clock.close()
        self._clock = await self._session("clock")
        return killable.is_dead

    async def read_calculated(self, seconds: float) -> None:
        """Publish the calculated datapoints of the clock to the stream, and read them."""
        while records := await LogReader(self._watch).read(self._published, 1000):
            self._published = records[-1].seq
            for row in records:
                if isinstance(row, CalculatedRow):
                    self._seq += 1
                    subject = self._subject(row.owner, row.key, "calculated")
                    self._stream.append(LaneMessage(self._seq, at(seconds), subject, row.body("s"), row.seq))
        await self.read()

    async def settle(self, seconds: float) -> None:
        """Run until everything that is due by then has happened."""
        await self.read_until(at(seconds))
        for _ in range(4):
            await self.run_clock(seconds)
            await self.read_calculated(seconds)


async def replayed(
    settings: Settings, since: datetime, until: datetime, jobs: int = 1
) -> tuple[RecordingHeader, BacktestResult]:
    async with open_database_recording(settings, since, until) as source:
        header = await source.header()
        return header, await backtest(source, header, jobs=jobs)


async def count_records(connection: Connection) -> tuple[int, int]:
    """The transitions of rules and the calculated datapoints in the log."""
    row = await (
        await connection.execute(
            "select (select count(*) from tocsin.event where origin = 'derived'"
            " and type in ('alarm-opened', 'alarm-changed', 'alarm-resolved')),"
            " (select count(*) from tocsin.datapoint_calculated)"
        )
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def flat(items: list[RecordingItem]) -> list[Any]:
    """The rows of the items. Sources differ in how many rows an item has."""
    return [row for item in items for row in ([item] if isinstance(item, OwnerHeader) else item.rows)]

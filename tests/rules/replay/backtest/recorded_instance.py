"""A live system in virtual time whose recording is then replayed: the product's own lane, holder and clock.

What JetStream would do is a list of messages. A worker, or a clock, may die before any statement of its transaction, at
its COMMIT, or when that is done and it does not know it yet; its successor reads on from what is committed.
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
from rules.apply import apply, preview
from rules.documents.load import load_text
from rules.engine import Arrival
from rules.lanes.batch_size import BatchSize
from rules.lanes.data_lane import DataLane
from rules.lanes.drain import Drain
from rules.lanes.lane import LaneMessage
from rules.lanes.lease import Leases
from rules.lanes.partition import PartitionLost
from rules.replay.backtest.parallel import backtest
from rules.replay.backtest.recording.database import recorded
from rules.replay.backtest.recording.model import OwnerHeader, RecordingHeader, RecordingItem
from rules.replay.backtest.result import BacktestResult
from schemas.wire.calculated import CalculatedRow
from schemas.wire.subjects import datapoint_subject
from tests.clock.clock_setup import at, drain
from tests.killable_session import KillableSession
from tests.rules.alarms.alarm_batches import virtual_now
from tests.rules.apply.apply_setup import ACTOR
from tests.rules.lanes.lane_setup import jetstream
from tests.sessions import Sessions
from tocsin.core.db import Connection
from tocsin.core.instant import instant_text
from tocsin.core.settings import Settings

_KEY = ("data", 0)


class Living:
    """A worker and a clock on one partition."""

    worker: Connection
    _clock: Connection
    _watch: Connection
    _holder: Drain

    def __init__(self, settings: Settings, sessions: Sessions) -> None:
        self._settings = settings.model_copy(update={"data_partitions": 1})
        self._sessions = sessions
        self._lane = DataLane(self._settings, [SeriesAlarms()])
        self._stream: list[LaneMessage] = []
        self._published = 0
        self._now = at(0)
        self._seq = 0

    async def begin(self) -> None:
        self._watch = await self._sessions("watch")
        self._clock = await self._session("clock")
        await self._watch.execute(
            "select tocsin.extend_datapoints(%s, %s)", (at(0).date(), at(30 * 86_400).date())
        )
        async with jetstream(self._settings) as js:
            await self._lane.open(self._watch, js)
        await self._succeed()

    async def _session(self, name: str) -> Connection:
        session = await self._sessions(name)
        await virtual_now(session, self._now)
        return session

    async def _succeed(self) -> None:
        """Another worker holds the partition, as soon as the time of the one before is up."""
        self.worker = await self._session("worker")
        await self.worker.execute("update tocsin.lane_partition set held_until = tocsin.instant()")
        partition = await Leases(self.worker, 60.0).take(_KEY)
        assert partition is not None
        bus = cast(Any, None)
        self._holder = Drain(self._settings, bus, self._lane, partition, asyncio.Semaphore(1), BatchSize())

    def arrival(self, seconds: float, value: float, key: str, owner: str, **labels: str) -> Arrival:
        self._seq += 1
        return Arrival(at(seconds), self._seq, owner, key, value, at(seconds - 3), labels)

    async def arrive(self, arrivals: Sequence[Arrival]) -> None:
        self.publish(arrivals)
        await self.read()

    def publish(self, arrivals: Sequence[Arrival]) -> None:
        """Stored by JetStream, and read by nobody yet."""
        for one in arrivals:
            body = {"value": one.value, "ts": instant_text(one.ts), "labels": dict(one.labels)}
            subject = self._subject(one.owner, one.key)
            self._stream.append(LaneMessage(one.seq, one.at, subject, json.dumps(body).encode()))

    def _subject(self, owner: str, key: str) -> str:
        return datapoint_subject(self._settings.subjects, owner, key).replace(".datapoint.", ".data.0.", 1)

    async def read(self) -> None:
        await self._read(self._holder, self.worker)

    async def _read(self, holder: Drain, session: Connection) -> None:
        """What follows the position of the holder."""
        position = holder._partition.position.last_seq
        messages = [message for message in self._stream if message.seq > position]
        if messages:
            await holder._commit(session, messages)

    async def die_reading(self, statements: int) -> bool:
        """Whether the death came before the commit. The successor reads the same messages, or what is behind them."""
        mortal = KillableSession(self.worker, self._watch, statements)
        with suppress(psycopg.OperationalError):
            await self._read(self._holder, cast(Connection, mortal))
        await self.worker.close()
        await self._succeed()
        await self.read()
        return mortal.is_dead

    async def freeze_reading(self) -> None:
        """A worker sleeps over its time; when it wakes up, its successor has read everything, or nothing yet."""
        zombie, session = self._holder, self.worker
        await self._succeed()
        with pytest.raises(PartitionLost):
            await self._read(zombie, session)
        await self.read()
        with pytest.raises(PartitionLost):
            await self._read(zombie, session)
        await session.close()

    async def only(self, text: str, seconds: float) -> None:
        """These documents from now on, and no others."""
        loaded = load_text(text, anchor=at(0))
        removed = (await preview(self.worker, loaded, at(seconds), prune=True)).plan.removed
        await apply(self.worker, loaded, replace(ACTOR, now=at(seconds)), removing=removed)

    async def be_at(self, seconds: float) -> None:
        """What is recorded from now on is recorded then."""
        self._now = at(seconds)
        for session in (self.worker, self._clock):
            await virtual_now(session, self._now)

    async def read_until(self, until: datetime) -> None:
        """The worker reads everything, and nothing else has arrived until then."""
        await self.read()
        await self.worker.execute(
            "update tocsin.lane_partition set watermark = greatest(watermark, %s)", (until,)
        )

    async def run_clock(self, seconds: float) -> None:
        """A new leader each time: its scan begins at the beginning of time."""
        await drain(await begin_term(self._clock, "test"), at(seconds))

    async def die_firing(self, seconds: float, statements: int) -> bool:
        """Whether the clock died before it had fired everything; another one takes over."""
        mortal = KillableSession(self._clock, self._watch, statements)
        with suppress(psycopg.OperationalError):
            await drain(await begin_term(cast(Connection, mortal), "test"), at(seconds))
        await self._clock.close()
        self._clock = await self._session("clock")
        return mortal.is_dead

    async def hear(self, seconds: float) -> None:
        """What the clock concluded comes back through the stream."""
        while records := await LogReader(self._watch).read(self._published, 1000):
            self._published = records[-1].seq
            for one in records:
                if isinstance(one, CalculatedRow):
                    self._seq += 1
                    subject = self._subject(one.owner, one.key)
                    self._stream.append(LaneMessage(self._seq, at(seconds), subject, one.body("s"), one.seq))
        await self.read()

    async def come_to_rest(self, seconds: float) -> None:
        """Everything that is due by then has happened."""
        await self.read_until(at(seconds))
        for _ in range(4):
            await self.run_clock(seconds)
            await self.hear(seconds)


async def replayed(
    settings: Settings, since: datetime, until: datetime, jobs: int = 1
) -> tuple[RecordingHeader, BacktestResult]:
    async with recorded(settings, since, until) as source:
        header = await source.header()
        return header, await backtest(source, header, jobs=jobs)


async def counted(connection: Connection) -> tuple[int, int]:
    """Edges and verdicts of the whole record."""
    row = await (
        await connection.execute(
            "select (select count(*) from tocsin.event where type in ('alarm-opened', 'alarm-resolved')),"
            " (select count(*) from tocsin.datapoint_calculated)"
        )
    ).fetchone()
    assert row is not None
    return row[0], row[1]


def flat(items: list[RecordingItem]) -> list[Any]:
    """Row by row: how many come at once is the source's affair."""
    return [row for item in items for row in ([item] if isinstance(item, OwnerHeader) else item.rows)]

"""A live system in virtual time whose recording is then replayed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from rules.applying import apply, preview
from rules.backtest.database import recorded
from rules.backtest.facts import Story
from rules.backtest.owners import Found
from rules.backtest.running import backtest
from rules.engine import Arrival
from rules.loading import load_text
from tests.clock.beats import at
from tests.rules.alarms.judging import virtual_now
from tests.rules.alarms.series import Live
from tests.rules.applying import ACT
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


class _Crash(Exception):
    pass


class Living(Live):
    """As `Live`, with a position that moves as a lane's does."""

    seq = 0

    def arrival(self, seconds: float, value: float, key: str, owner: str, **labels: str) -> Arrival:
        self.seq += 1
        return Arrival(at(seconds), self.seq, owner, key, value, at(seconds - 3), labels)

    async def arrive(self, arrivals: Sequence[Arrival]) -> None:
        await self.take(arrivals)
        await self.worker.execute(
            "update tocsin.ingest_partition set last_seq = %s where lane = 'data'", (arrivals[-1].seq,)
        )

    async def only(self, text: str, seconds: float) -> None:
        """These documents from now on, and no others."""
        loaded = load_text(text, anchor=at(0))
        removed = (await preview(self.worker, loaded, at(seconds), prune=True)).plan.removed
        await apply(self.worker, loaded, replace(ACT, now=at(seconds)), removing=removed)

    async def be_at(self, seconds: float) -> None:
        """What is recorded from now on is recorded then."""
        for session in (self.worker, self._clock):
            await virtual_now(session, at(seconds))

    async def crash(self, seconds: float) -> None:
        """A worker dies in the middle of a batch, while the clock goes on."""
        with suppress(_Crash):
            async with self.worker.transaction():
                await self.worker.execute("update tocsin.rule_state set phase = 'ok', version = version + 1")
                raise _Crash
        await self.run_clock(seconds)

    async def come_to_rest(self, seconds: float, owners: Sequence[str]) -> None:
        """Everything that is due by then has happened."""
        await self.read_until(at(seconds))
        for _ in range(4):
            await self.run_clock(seconds)
            for owner in owners:
                await self.hear(seconds, owner)


async def replayed(
    settings: Settings, since: datetime, until: datetime, jobs: int = 1
) -> tuple[Story, Found]:
    async with recorded(settings, since, until) as source:
        story = await source.story()
        return story, await backtest(source, story, jobs=jobs)


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

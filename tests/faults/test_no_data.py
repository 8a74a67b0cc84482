"""With real processes, of 2,000 series exactly the 50 that stop become stale, while clocks and workers are killed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import nats
import pytest

from rules.alarms.staleness import extended_deadline
from rules.lanes.arrival_gap import ArrivalGap
from rules.lanes.data_stream import ensure_data_stream
from schemas.wire.subjects import datapoint_subject
from tests.faults.processes import WITHIN_S, Processes
from tests.rules.apply.apply_setup import put
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

OWNERS = [f"plant-{number}" for number in range(200)]
KEYS = [f"dsp.{number}" for number in range(10)]
STOPPED = {(owner, "dsp.3") for owner in OWNERS[:50]}
STALE_AFTER = timedelta(seconds=4)
RULES = "datapoint_type:\n  name: load\n  key: dsp.*\n  interval: 1600ms\n  tolerance: 2.5\n"
ROUND_S = 0.6


@pytest.fixture
def processes(short_lease: Settings) -> Iterator[Processes]:
    running = Processes(short_lease, ("clock a", "clock b", "cdc", "worker a", "worker b"))
    try:
        yield running
    finally:
        running.close()


class SeriesProducer:
    """Sends a datapoint of every series that has not stopped, round after round, until `ended`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.rounds = 0
        self.is_stopped = False
        self.ended = asyncio.Event()

    async def run(self) -> None:
        bus = await nats.connect(self._settings.nats)
        try:
            while not self.ended.is_set():
                began = time.monotonic()
                await self._round(bus.jetstream(timeout=20))
                self.rounds += 1
                rest = ROUND_S - (time.monotonic() - began)
                if rest > 0:
                    await _wait(self.ended, rest)
        finally:
            await bus.close()

    async def _round(self, js: Any) -> None:
        sending = []
        for owner in OWNERS:
            keys = [key for key in KEYS if not (self.is_stopped and (owner, key) in STOPPED)]
            body = json.dumps({"batch": [{"key": key, "value": self.rounds} for key in keys]}).encode()
            sending.append(js.publish(datapoint_subject(self._settings.subjects, owner, ""), body))
        await asyncio.gather(*sending)

    async def wait_for_rounds(self, count: int) -> None:
        wanted = self.rounds + count

        async def are_sent() -> bool:
            return self.rounds >= wanted

        await eventually(are_sent, f"{count} rounds", WITHIN_S)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return


def stale_instants(
    arrivals: list[dict[str, Any]], gaps: dict[int, list[ArrivalGap]], until: datetime
) -> set[tuple[str, str, datetime]]:
    """The oracle: the instants at which series become stale, from the stored arrivals and gaps."""
    instants = set()
    deadlines: dict[tuple[str, str], datetime] = {}
    for row in arrivals:
        series = (row["owner"], row["key"])
        deadline = deadlines.get(series)
        if deadline is not None and row["arrived_at"] >= deadline:
            instants.add((*series, deadline))
        of_partition = gaps.get(row["partition"], [])
        deadlines[series] = extended_deadline(row["arrived_at"], STALE_AFTER, of_partition)
    return instants | {(*series, deadline) for series, deadline in deadlines.items() if deadline <= until}


@pytest.mark.timeout(600)
async def test_exactly_the_series_that_stopped_are_stale_at_their_deadlines(
    settings: Settings, connection: Connection, processes: Processes
) -> None:
    await put(connection, RULES)
    bus = await nats.connect(settings.nats)
    await ensure_data_stream(bus.jetstream(timeout=20), settings, 1)
    await bus.close()
    producer = SeriesProducer(settings)
    producing = asyncio.create_task(producer.run())

    async def count(query: str) -> int:
        row = await (await connection.execute(query.encode())).fetchone()
        return int(row[0]) if row else 0

    async def are_stored() -> bool:
        return await count("select count(*) from tocsin.current_value") == len(OWNERS) * len(KEYS)

    await eventually(are_stored, "every series is stored", WITHIN_S)
    processes.kill("clock a", "worker a")
    await producer.wait_for_rounds(1)
    producer.is_stopped = True
    await producer.wait_for_rounds(2)
    processes.kill("worker b", "clock b")

    async def are_stale() -> bool:
        stale = await count("select count(*) from tocsin.current_value where freshness = 'stale'")
        return stale >= len(STOPPED)

    await eventually(are_stale, "those that stopped are stale", WITHIN_S)
    await producer.wait_for_rounds(2)
    producer.ended.set()
    await producing
    await _wait_until_read(connection)

    arrivals = await all_rows(
        connection,
        "select d.owner, d.key, d.arrived_at, c.partition from tocsin.datapoint d"
        " join tocsin.current_value c using (owner, key) order by d.arrived_at, d.stream_seq",
    )
    gaps: dict[int, list[ArrivalGap]] = {}
    for row in await all_rows(connection, "select * from tocsin.arrival_gap order by began_at"):
        gaps.setdefault(row["partition"], []).append(ArrivalGap(row["began_at"], row["ended_at"]))
    ended_at = arrivals[-1]["arrived_at"]
    expected = sorted(stale_instants(arrivals, gaps, ended_at))

    async def recorded() -> list[tuple[str, str, datetime]]:
        rows = await all_rows(
            connection,
            "select owner, key, ts from tocsin.datapoint_calculated where kind = 'stale' and ts <= %s",
            (ended_at,),
        )
        return sorted((row["owner"], row["key"], row["ts"]) for row in rows)

    async def is_all_recorded() -> bool:
        return len(await recorded()) >= len(expected)

    await eventually(is_all_recorded, "every stale series is recorded", WITHIN_S)
    assert await recorded() == expected
    assert {series[:2] for series in expected} >= STOPPED


async def _wait_until_read(connection: Connection) -> None:
    async def is_read() -> bool:
        rows = await all_rows(
            connection,
            "select min(watermark) > (select max(arrived_at) from tocsin.current_value) as is_read"
            " from tocsin.lane_partition where lane = 'data'",
        )
        return bool(rows[0]["is_read"])

    await eventually(is_read, "every partition is read to its end", WITHIN_S)

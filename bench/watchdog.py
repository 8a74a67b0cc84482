"""Staleness at scale: its lateness, the cost of watching, and a scan over a million watched series.

Series send once a second through the real stream, worker, publisher and clock; then some of them
stop. A staleness is late by the time from its deadline to its commit. `writes` are timer rows
written per series and interval, of which a tolerance of 2.5 allows at most one in 1.5.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from datetime import datetime, timedelta

from nats.aio.client import Client

from bench.database import bench_servers, migrated
from bench.processes import running
from clock.term import begin_term
from rules.apply import apply
from rules.documents.load import load_text
from rules.lanes.data_stream import ensure_data_stream
from schemas.wire.subjects import datapoint_subject
from timers.working_set import database_now
from tocsin.core.audit import Actor
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection, fetch_one, statement
from tocsin.core.settings import Settings
from tocsin.embedded import Servers

KEYS = 100
_STATISTICS_S = 1.5
"""How old the server's statistics may be."""
RULES = "datapoint_type:\n  name: load\n  key: dsp.*\n  interval: 1s\n  tolerance: 2.5\n"


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench watchdog")
    parser.add_argument("--series", type=int, default=20_000)
    parser.add_argument("--stopping", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--watched", type=int, default=1_000_000)
    options = parser.parse_args(arguments)
    report: dict[str, object] = {"name": "watchdog", "series": options.series, "stopping": options.stopping}
    with bench_servers() as servers:
        report |= asyncio.run(_staleness(servers, options.series, options.stopping, options.seconds))
    with bench_servers() as servers:
        report |= asyncio.run(_scan(servers, options.watched))
    return report


async def _staleness(servers: Servers, series: int, stopping: int, seconds: int) -> dict[str, object]:
    async with migrated(servers) as (settings, connection):
        actor = Actor("bench", "bench", await database_now(connection))
        await apply(connection, load_text(RULES), actor)
        async with open_bus(settings, "bench") as bus:
            await ensure_data_stream(bus.jetstream(timeout=60), settings, 1)
            with running(settings, "clock", "cdc", "worker"):
                sender = Sender(settings, bus, series)
                sending = asyncio.create_task(sender.run())
                await _until_known(connection, series)
                before = await _writes(connection)
                await asyncio.sleep(seconds)
                written = await _writes(connection) - before
                stopped_at = await database_now(connection)
                sender.stopped = stopping
                lateness = await _until_stale(connection, stopped_at, stopping)
                sender.ended = True
                await sending
    count, (median, high, most) = lateness
    return {
        "stale": count,
        "late p50 ms": median,
        "late p99 ms": high,
        "late max ms": most,
        "writes": written / series / (seconds + _STATISTICS_S),
        "writes goal": 1 / 1.5,
    }


class Sender:
    """Sends all series but the first `stopped` ones, once a second, until `ended`."""

    def __init__(self, settings: Settings, bus: Client, series: int) -> None:
        self.stopped = 0
        self.ended = False
        self._settings = settings
        self._bus = bus
        self._series = series

    async def run(self) -> None:
        while not self.ended:
            began = time.perf_counter()
            for owner in range(self._series // KEYS):
                first = max(0, min(KEYS, self.stopped - owner * KEYS))
                batch = [{"key": f"dsp.k{key}", "value": 20.5 + key} for key in range(first, KEYS)]
                if batch:
                    subject = datapoint_subject(self._settings.subjects, f"plant-{owner}", "")
                    await self._bus.publish(subject, json.dumps({"batch": batch}).encode())
            await self._bus.flush(timeout=60)
            await asyncio.sleep(max(0.0, 1.0 - (time.perf_counter() - began)))


async def _until_known(connection: Connection, series: int) -> None:
    async with asyncio.timeout(120):
        while True:
            row = await fetch_one(connection, "bench/count_series")
            if row is not None and row[0] >= series:
                return
            await asyncio.sleep(0.1)


async def _until_stale(connection: Connection, since: datetime, count: int) -> tuple[int, list[float]]:
    query, parameters = statement("bench/read_staleness_lateness"), {"since": since}
    async with asyncio.timeout(120):
        while True:
            row = await (await connection.execute(query, parameters)).fetchone()
            if row is not None and row[0] >= count:
                return int(row[0]), [float(late_ms) for late_ms in row[1]]
            await asyncio.sleep(0.1)


async def _writes(connection: Connection) -> int:
    await asyncio.sleep(_STATISTICS_S)
    row = await fetch_one(connection, "bench/read_timer_writes")
    return int(row[0]) if row else 0


async def _scan(servers: Servers, watched: int) -> dict[str, object]:
    async with migrated(servers) as (_, connection):
        now = await database_now(connection)
        filling = {"at": now + timedelta(hours=1), "count": watched}
        await connection.execute(statement("bench/fill_watched"), filling)
        await connection.execute(statement("bench/vacuum_timers"))
        term = await begin_term(connection, "bench")
        took_ms = []
        for _ in range(200):
            began = time.perf_counter()
            now, _ = await term.poll()
            await term.run_once(now)
            took_ms.append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        await term.backstop_scan(connection)
        backstop_ms = (time.perf_counter() - began) * 1000
        row = await fetch_one(connection, "bench/read_timer_writes")
    return {
        "watched": watched,
        "look p50 ms": sorted(took_ms)[len(took_ms) // 2],
        "backstop ms": backstop_ms,
        "bytes a series": (int(row[1]) if row else 0) / watched,
    }

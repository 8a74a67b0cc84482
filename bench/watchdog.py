"""Silence at scale: how late its verdicts are, what watching costs, and a scan beside a million watched series.

Series send once a second through the real stream, worker, publisher and clock; then some of them stop. A verdict
is late by the time from its deadline to its commit; `writes` are timer rows written per series and interval, of which
a tolerance of 2.5 allows at most one in 1.5.
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
from rules.applying import apply
from rules.datapoints.stream import ensure_data_stream
from rules.loading import load_text
from schemas.subjects import datapoint_subject
from timers.schedule_spec import Act
from timers.working_set import database_now
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection, statement
from tocsin.core.settings import Settings
from tocsin.embedded import Servers

KEYS = 100
WITHIN_S = 2.5
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
        report |= asyncio.run(_silence(servers, options.series, options.stopping, options.seconds))
    with bench_servers() as servers:
        report |= asyncio.run(_scan(servers, options.watched))
    return report


async def _silence(servers: Servers, series: int, stopping: int, seconds: int) -> dict[str, object]:
    async with migrated(servers) as (settings, connection):
        act = Act("bench", "bench", await database_now(connection))
        await apply(connection, load_text(RULES), act)
        bus = await connect_bus(settings, "bench")
        try:
            await ensure_data_stream(bus.jetstream(timeout=60), settings, 1)
            with running(settings, "clock", "cdc", "worker"):
                await _until_known(settings, bus, connection, series)
                before = await _writes(connection)
                await _send(settings, bus, series, 0, seconds)
                written = await _writes(connection) - before
                stopped_at = await database_now(connection)
                sending = asyncio.create_task(_send(settings, bus, series, stopping, seconds))
                found = await _until_stale(connection, stopped_at, stopping)
                await sending
        finally:
            await bus.close()
    count, (median, high, most) = found
    return {
        "verdicts": count,
        "late p50 ms": median,
        "late p99 ms": high,
        "late max ms": most,
        "writes": written / series / seconds,
        "writes goal": 1 / 1.5,
    }


async def _until_known(settings: Settings, bus: Client, connection: Connection, series: int) -> None:
    """Each series once; the workers have to start first."""
    await _send(settings, bus, series, 0, 1)
    async with asyncio.timeout(120):
        while True:
            await asyncio.sleep(0.1)
            row = await (await connection.execute(statement("bench/count_series"))).fetchone()
            if row is not None and row[0] >= series:
                return


async def _send(settings: Settings, bus: Client, series: int, silent: int, seconds: int) -> None:
    """Once a second all but the first `silent` series of every hundredth key."""
    for _ in range(seconds):
        began = time.perf_counter()
        for owner in range(series // KEYS):
            first = max(0, min(KEYS, silent - owner * KEYS))
            batch = [{"key": f"dsp.k{key}", "value": 20.5 + key} for key in range(first, KEYS)]
            if batch:
                subject = datapoint_subject(settings.subjects, f"plant-{owner}", "")
                await bus.publish(subject, json.dumps({"batch": batch}).encode())
        await bus.flush(timeout=60)
        await asyncio.sleep(max(0.0, 1.0 - (time.perf_counter() - began)))


async def _until_stale(connection: Connection, since: datetime, count: int) -> tuple[int, list[float]]:
    query, parameters = statement("bench/read_verdict_lateness"), {"since": since}
    async with asyncio.timeout(120):
        while True:
            row = await (await connection.execute(query, parameters)).fetchone()
            if row is not None and row[0] >= count:
                return int(row[0]), [float(one) for one in row[1]]
            await asyncio.sleep(0.1)


async def _writes(connection: Connection) -> int:
    # The server's statistics are up to a second old.
    await asyncio.sleep(1.5)
    row = await (await connection.execute(statement("bench/read_timer_writes"))).fetchone()
    return int(row[0]) if row else 0


async def _scan(servers: Servers, watched: int) -> dict[str, object]:
    async with migrated(servers) as (_, connection):
        now = await database_now(connection)
        filling = {"at": now + timedelta(hours=1), "count": watched}
        await connection.execute(statement("bench/fill_watched"), filling)
        await connection.execute(statement("bench/analyze"))
        term = await begin_term(connection, "bench")
        took_ms = []
        for _ in range(200):
            began = time.perf_counter()
            now, _ = await term.look()
            await term.run_once(now)
            took_ms.append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        await term.look_back(connection)
        backstop_ms = (time.perf_counter() - began) * 1000
        row = await (await connection.execute(statement("bench/read_timer_writes"))).fetchone()
    return {
        "watched": watched,
        "look p50 ms": sorted(took_ms)[len(took_ms) // 2],
        "backstop ms": backstop_ms,
        "bytes a series": (int(row[1]) if row else 0) / watched,
    }

"""A burst of timers at one instant: the time until the last of their events is in the stream.

The limit is eight seconds for 100,000 timers, the goal of the design.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from datetime import timedelta

import nats
from nats.js.errors import NotFoundError

from bench.database import bench_servers, migrated
from bench.processes import running
from timers.working_set import database_now
from tocsin.core.db import Connection, fetch_one, statement
from tocsin.core.settings import Settings
from tocsin.embedded import Servers


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench burst")
    parser.add_argument("--count", type=int, default=100_000)
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(_measure(servers, options.count))


async def _measure(servers: Servers, count: int) -> dict[str, object]:
    async with migrated(servers) as (settings, connection):
        await connection.execute(statement("bench/schedule_burst"), {"count": count})
        at = await database_now(connection) + timedelta(seconds=6 + count / 100_000 * 6)
        await connection.execute(statement("bench/arm_burst"), {"count": count, "at": at, "step_us": 0})
        with running(settings, "clock", "cdc"):
            await _wait_for_stream(settings, 1)
            began = time.perf_counter()
            await _wait_for_stream(settings, count)
            stream_s = time.perf_counter() - began
            late = await _late(connection)
    goal_s = 8.0
    return {
        "name": "burst",
        "count": count,
        "committed_p99_ms": late,
        "first_to_last_in_stream_s": stream_s,
        "ours": stream_s,
        "limit": goal_s,
        "ratio": stream_s / goal_s,
        "goal": "at most 1",
    }


async def _late(connection: Connection) -> float:
    row = await fetch_one(connection, "bench/read_lateness", {"after": 0, "before": 2**62})
    assert row is not None
    return float(row[1])


async def _wait_for_stream(settings: Settings, last: int) -> None:
    bus = await nats.connect(settings.nats)
    js = bus.jetstream()
    async with asyncio.timeout(120):
        while True:
            try:
                if (await js.stream_info(settings.stream)).state.last_seq >= last:
                    break
            except NotFoundError:
                pass
            await asyncio.sleep(0.01)
    await bus.close()

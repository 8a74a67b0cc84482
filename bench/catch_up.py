"""Checks whether a clock keeps its lease while it catches up after an outage.

The outage takes one hour, with 100,000 cron schedules.

The limit is one epoch: every further epoch means that the leader lost its lease while it worked.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import time
from datetime import timedelta

from psycopg.types.json import Jsonb

from bench.database import bench_servers, migrated
from bench.processes import running
from timers.recurrence import parse
from timers.working_set import database_now
from tocsin.core.db import Connection, fetch_one, statement
from tocsin.embedded import Servers


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench catch_up")
    parser.add_argument("--schedules", type=int, default=100_000)
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(_measure(servers, options.schedules))


async def _measure(servers: Servers, schedules: int) -> dict[str, object]:
    times = itertools.product(range(60), range(24), ("*", "MON-FRI", "1-5", "SUN", "SAT", "TUE"))
    recurrences = [
        Jsonb(parse(cron=f"{minute} {hour} * * {days}", tz="America/New_York").spec)
        for minute, hour, days in times
    ]
    async with migrated(servers) as (settings, connection):
        now = await database_now(connection)
        await connection.execute(
            statement("bench/fill_schedules"), {"recurrences": recurrences, "count": schedules, "at": now}
        )
        await connection.execute(statement("bench/arm_schedules"), {"at": now - timedelta(hours=1)})
        began = time.perf_counter()
        with running(settings, "clock"):
            await _settled(connection)
            taken_s = time.perf_counter() - began
            row = await fetch_one(connection, "bench/read_leader")
    assert row is not None
    return {
        "name": "catch_up",
        "schedules": schedules,
        "distinct": len(recurrences),
        "seconds": taken_s,
        "ours": row[0],
        "limit": 1,
        "ratio": row[0] / 1,
        "goal": "one epoch: the lease never expires",
    }


async def _settled(connection: Connection) -> None:
    async with asyncio.timeout(300):
        while True:
            row = await fetch_one(connection, "bench/count_overdue")
            if row is not None and row[0] == 0:
                return
            await asyncio.sleep(0.2)

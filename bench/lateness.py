"""Lateness at a steady rate of fires, compared with the raw SQL loop at the same rate."""

from __future__ import annotations

import argparse
import asyncio
from datetime import datetime, timedelta
from pathlib import Path

from bench.database import bench_servers, migrated
from bench.processes import running
from clock.scan import BEGINNING
from timers.working_set import database_now
from tocsin.core.db import Connection, fetch_one, statement
from tocsin.embedded import Servers

_RAW_BASE = 1_000_000


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench lateness")
    parser.add_argument("--rate", type=int, default=1000, help="fires a second")
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(_measure(servers, options.rate, options.seconds))


async def _measure(servers: Servers, rate: int, seconds: int) -> dict[str, object]:
    count = rate * seconds
    async with migrated(servers) as (settings, connection):
        await connection.execute(statement("bench/schedule_burst"), {"count": count})
        parameters = {"count": count, "step_us": 1_000_000 // rate}
        start = await database_now(connection) + timedelta(seconds=5)
        await connection.execute(statement("bench/arm_burst"), {**parameters, "at": start})
        with running(settings, "clock"):
            await _until(connection, start + timedelta(seconds=seconds + 1))
        ours = await _percentiles(connection, 0, _RAW_BASE)
        await connection.execute(statement("bench/truncate_timers"))
        start = await database_now(connection) + timedelta(seconds=2)
        await connection.execute(statement("bench/arm_burst"), {**parameters, "at": start})
        await _raw(connection, start + timedelta(seconds=seconds + 1))
        raw = await _percentiles(connection, _RAW_BASE, 2**62)
    return {
        "name": "lateness",
        "rate": rate,
        "fires": ours[3],
        "ours_p50_ms": ours[0],
        "ours_worst_ms": ours[2],
        "raw_p50_ms": raw[0],
        "raw_p99_ms": raw[1],
        "ours": ours[1],
        "limit": 10.0,
        "ratio": ours[1] / 10.0,
        "goal": "p99 at most 10 ms (ratio at most 1)",
    }


async def _raw(connection: Connection, until: datetime) -> None:
    sql = (Path(__file__).parent / "raw_fire.sql").read_bytes()
    sql = b"\n".join(line for line in sql.splitlines() if not line.startswith(b"--"))
    mark: tuple[datetime, str] = (BEGINNING, "")
    done = 0
    while (now := await database_now(connection)) < until:
        row = await (
            await connection.execute(
                sql,
                {"mark": mark[0], "mark_ref": mark[1], "now": now, "limit": 1000, "base": _RAW_BASE + done},
            )
        ).fetchone()
        assert row is not None
        if row[0]:
            done += row[0]
            mark = (row[1], row[2])
        else:
            await asyncio.sleep(0.001)


async def _percentiles(connection: Connection, after: int, before: int) -> tuple[float, float, float, int]:
    row = await fetch_one(connection, "bench/read_lateness", {"after": after, "before": before})
    assert row is not None
    return (row[0], row[1], row[2], row[3])


async def _until(connection: Connection, instant: datetime) -> None:
    await asyncio.sleep((instant - await database_now(connection)).total_seconds())

"""Lateness while the working set grows: a small system, then 100,000 and 1,000,000 more timers.

The clock runs before the timers are armed, with plans that it made for a small table, and autovacuum
is on. A thousand runbook waits become due after each growth.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import NamedTuple

from bench.database import bench_servers, migrated
from bench.processes import running
from timers.schedule_spec import ScheduleSpec
from timers.schedules import put_schedule
from timers.working_set import database_now
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, fetch_one, fetch_value, statement
from tocsin.embedded import Servers

_SCHEDULES = 5
_WAITS = 1000
_FAR = timedelta(days=365)
# Arming takes this long on a busy machine. What commits later than it is due is found by the backstop.
_LEAD = timedelta(seconds=5)
_POLL_S = 0.02


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench growth")
    parser.add_argument("--timers", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--seconds", type=int, default=20, help="how long each phase is measured")
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(_measure(servers, options.timers, options.seconds))


async def _measure(servers: Servers, growths: list[int], seconds: int) -> dict[str, object]:
    phases: dict[str, Lateness] = {}
    waits: dict[str, object] = {}
    async with migrated(servers) as (settings, connection):
        await _add_schedules(connection)
        with running(settings, "clock"):
            await asyncio.sleep(seconds / 2)
            await connection.execute(statement("bench/analyze_timers"))
            phases["before"] = await _lateness_during(connection, asyncio.sleep(seconds))
            for count in growths:
                phases[f"arming_{count}"] = await _lateness_during(connection, _arm(connection, count))
                firing = _fire_waits(connection, waits, count)
                phases[f"waits_{count}"] = await _lateness_during(connection, firing)
                phases[f"after_{count}"] = await _lateness_during(connection, asyncio.sleep(seconds))
    before = phases["before"]
    ours = max(phases[f"after_{count}"].p50_ms for count in growths)
    return {
        "name": "growth",
        "schedules": _SCHEDULES,
        "waits": _WAITS,
        **{f"{name}_ms": lateness.compared_with(before) for name, lateness in phases.items()},
        **waits,
        "ours": ours,
        "limit": before.p50_ms,
        "ratio": ours / before.p50_ms,
        "goal": "p50 after each growth at most 2 times the p50 before",
    }


class Lateness(NamedTuple):
    p50_ms: float
    p99_ms: float
    max_ms: float

    def compared_with(self, before: Lateness) -> str:
        pairs = zip(("p50", "p99", "max"), self, before, strict=True)
        return ", ".join(f"{name} {ours:.1f} ({ours / other:.1f}x)" for name, ours, other in pairs)


async def _add_schedules(connection: Connection) -> None:
    now = await database_now(connection)
    for number in range(_SCHEDULES):
        spec = ScheduleSpec(f"beat-{number}", {"every": "250ms"}, catch_up="all", max_catch_up=10_000)
        await put_schedule(connection, spec, Actor("bench", "bench", now))


async def _lateness_during(connection: Connection, work: Awaitable[None]) -> Lateness:
    """The lateness of the fires while the work is done, at least for two seconds."""
    first = await fetch_value(connection, "cdc/read_head")
    await asyncio.gather(work, asyncio.sleep(2))
    last = await fetch_value(connection, "cdc/read_head")
    row = await fetch_one(connection, "bench/read_lateness", {"after": first, "before": last + 1})
    assert row is not None
    return Lateness(*row[:3])


async def _arm(connection: Connection, count: int) -> None:
    at = await database_now(connection) + _FAR
    await connection.execute(statement("bench/grow_pending"), {"count": count, "at": at})


async def _fire_waits(connection: Connection, report: dict[str, object], count: int) -> None:
    """Arm waits, and note how long after their instant the last one has fired."""
    due_at = await database_now(connection) + _LEAD
    parameters = {"owner": f"growth-{count}", "count": _WAITS, "at": due_at}
    await connection.execute(statement("bench/fill_waits"), parameters)
    armed_at = await database_now(connection)
    await asyncio.sleep((due_at - armed_at).total_seconds())
    while await fetch_value(connection, "bench/count_waits"):  # noqa: ASYNC110 - in the database
        await asyncio.sleep(_POLL_S)
    fired_s = (await database_now(connection) - max(due_at, armed_at)).total_seconds()
    report[f"waits_{count}_s"] = round(fired_s, 2)

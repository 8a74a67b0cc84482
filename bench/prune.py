"""Rows that retention removes per second, compared with one plain `delete`.

`--actions N --alarms N`.

The limit decides nothing and checks nothing: it deletes by the same index the rows that are known
to be old, in one transaction (`bench/sql/delete_ended.sql`). Retention checks whether a record of
each row is left in the log, and removes a thousand at a time, each chunk durable before the next. A
probe appends to the log in the meantime; its longest wait is reported.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from datetime import UTC, datetime, timedelta

from bench.database import bench_servers, migrated
from bench.probe import repeated
from clock.retention.rows import ROW_KINDS, read_bounds, remove_rows
from tocsin.core.db import Connection, statement
from tocsin.embedded import Servers

_T0 = datetime(2026, 1, 1, tzinfo=UTC)
_TABLES = ("alarm", "action")
_GOAL = 0.3


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench prune")
    parser.add_argument("--actions", type=int, default=50_000)
    parser.add_argument("--alarms", type=int, default=50_000)
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        measured = asyncio.run(_measure(servers, options.actions, options.alarms))
    ratio = measured["ours"] / measured["limit"]
    report: dict[str, object] = {"name": "prune", **vars(options), **measured, "ratio": ratio}
    return {**report, "goal": f"at least {_GOAL:g} of a plain delete", "reached": ratio >= _GOAL}


async def _measure(servers: Servers, actions: int, alarms: int) -> dict[str, float]:
    rows = 2 * actions + alarms
    async with migrated(servers) as (settings, connection):
        await _fill(connection, actions, alarms)
        bounds = await read_bounds(connection, settings)
        with repeated(settings, statement("bench/append_one"), 0.005) as waits:
            began = time.perf_counter()
            removed = 0
            for kind in ROW_KINDS:
                if kind.table in _TABLES:
                    removed += await remove_rows(connection, kind, bounds)
            ours = rows / (time.perf_counter() - began)
        assert removed == actions + alarms, f"{removed} of {actions + alarms} were removed"
        await _fill(connection, actions, alarms)
        began = time.perf_counter()
        await connection.execute(statement("bench/delete_ended"), {"until": _T0 + timedelta(days=31)})
        limit = rows / (time.perf_counter() - began)
    return {"ours": ours, "limit": limit, "longest_append_s": max(waits)}


async def _fill(connection: Connection, actions: int, alarms: int) -> None:
    """Rows that ended before the first record of the log."""
    parameters = {"at": _T0, "actions": actions, "alarms": alarms}
    await connection.execute(statement("bench/fill_ended"), parameters)
    await connection.execute(statement("bench/raise_horizon"))
    await connection.execute(statement("bench/vacuum_timers"))
    await connection.execute(statement("bench/checkpoint"))

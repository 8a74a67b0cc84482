"""Rows that retention removes a second, beside one plain `delete` of as many: `--actions N --alarms N`.

The limit decides nothing and looks at nothing: it deletes by the same index what is known to be old, in one transaction
(`bench/sql/delete_ended.sql`). Ours looks whether a record of each is left in the log, and removes a thousand at a
time, each page durable before the next. Beside it a probe appends to the log: the longest that it waited.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from datetime import UTC, datetime

from bench.database import bench_servers, migrated
from bench.waits import repeated
from clock.retention.rows import KINDS, read_bounds, remove_rows
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
            gone = 0
            for kind in KINDS:
                if kind.table in _TABLES:
                    gone += await remove_rows(connection, kind, bounds)
            ours = rows / (time.perf_counter() - began)
        assert gone == actions + alarms, f"{gone} of {actions + alarms} are gone"
        await _fill(connection, actions, alarms)
        began = time.perf_counter()
        await connection.execute(statement("bench/delete_ended"))
        limit = rows / (time.perf_counter() - began)
    return {"ours": ours, "limit": limit, "longest_append_s": max(waits)}


async def _fill(connection: Connection, actions: int, alarms: int) -> None:
    """All of them ended before the log begins."""
    given = {"at": _T0, "actions": actions, "alarms": alarms}
    await connection.execute(statement("bench/fill_ended"), given)
    await connection.execute(statement("bench/raise_horizon"))
    await connection.execute(statement("bench/analyze"))
    await connection.execute(statement("bench/checkpoint"))

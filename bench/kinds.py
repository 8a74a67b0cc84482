"""Fires of sustains, waits and watchdogs per second, each compared with a raw SQL loop.

The raw loop deletes the due timers by ctid and writes the rows that a fire of that kind writes, in
one statement per batch; it has no planning, no held timers and no fencing. `--due N --pending N`.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from datetime import UTC, datetime, timedelta

from bench.database import bench_servers, migrated
from clock.scan import BEGINNING
from clock.term import begin_term
from tocsin.core.db import Connection, fetch_one, statement
from tocsin.embedded import Servers

_T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
_NOW = _T0 + timedelta(seconds=2)
_BATCH = 1_000
_KINDS = {"for-sustain": "sustains", "runbook-wait": "waits", "watchdog": "watchdogs"}


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench kinds")
    parser.add_argument("--due", type=int, default=20_000)
    parser.add_argument("--pending", type=int, default=1_000_000)
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(_measure(servers, options.due, options.pending))


async def _measure(servers: Servers, due: int, pending: int) -> dict[str, object]:
    report: dict[str, object] = {"name": "kinds", "due": due, "pending": pending}
    ratios: list[float] = []
    async with migrated(servers) as (_, connection):
        await connection.execute(
            statement("bench/fill_pending"), {"at": _T0 + timedelta(days=365), "count": pending}
        )
        await connection.execute(statement("bench/insert_partition"))
        await connection.execute(statement("bench/set_watermark"), {"at": _NOW})
        for kind, name in _KINDS.items():
            raw = await _turn(connection, name, "raw", due, kind)
            ours = await _turn(connection, name, "ours", due, kind)
            ratios.append(ours / raw)
            report |= {f"{kind}: raw": raw, f"{kind}: ours": ours, f"{kind}: ratio": ours / raw}
    return report | {"ratio": min(ratios), "goal": 0.5}


async def _turn(connection: Connection, name: str, owner: str, due: int, kind: str) -> float:
    # One of bench/sql/fill_sustains.sql, fill_waits.sql and fill_watchdogs.sql.
    await connection.execute(statement(f"bench/fill_{name}"), {"owner": owner, "count": due, "at": _T0})
    await connection.execute(statement("bench/vacuum_timers"))
    await connection.execute(statement("bench/checkpoint"))
    return due / (await (_raw(connection, name, due) if owner == "raw" else _ours(connection, due)))


async def _raw(connection: Connection, name: str, due: int) -> float:
    mark = (BEGINNING, "", "")
    done = 0
    began = time.perf_counter()
    while done < due:
        bounds = {"mark": mark[0], "mark_ref": mark[1], "mark_key": mark[2], "now": _NOW, "limit": _BATCH}
        row = await fetch_one(connection, f"bench/raw_{name}", bounds)
        assert row is not None
        done += row[0]
        mark = (row[1], row[2], row[3])
    return time.perf_counter() - began


async def _ours(connection: Connection, due: int) -> float:
    term = await begin_term(connection, "bench", batch=_BATCH)
    fired = 0
    began = time.perf_counter()
    while fired < due:
        batch = await term.run_once(_NOW)
        fired += batch.fires
        if not batch.more and fired < due:
            raise RuntimeError(f"only {fired} of {due} were due")
    return time.perf_counter() - began

"""Fires of schedule ticks per second, compared with a raw SQL loop on the same tables.

The two alternate three times, and the pair with the median ratio is reported: on a busy machine a
single pair shows mostly the load of the machine.

`--distinct` gives every schedule a cron of its own. The limit is then the smaller of the raw loop
and the bare next-fire rate of those expressions on one core.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from psycopg.types.json import Jsonb

from bench.database import bench_servers, hold_snapshot, migrated
from clock.scan import BEGINNING
from clock.term import begin_term
from timers.recurrence import parse, parse_spec
from tocsin.core.db import Connection, statement
from tocsin.embedded import Servers

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
NOW = T0 + timedelta(seconds=2)
BATCH = 1000
TURNS = 3


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench fire")
    parser.add_argument("--due", type=int, default=100_000)
    parser.add_argument("--pending", type=int, default=1_000_000)
    parser.add_argument("--distinct", action="store_true")
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(measure(servers, options.due, options.pending, distinct=options.distinct))


async def measure(
    servers: Servers, due: int, pending: int, *, distinct: bool = False, held_snapshot: bool = False
) -> dict[str, object]:
    async with migrated(servers) as (settings, connection):
        specs = _specs(due if distinct else 1)
        await _fill(connection, due, pending, specs)
        snapshot = await hold_snapshot(settings) if held_snapshot else None
        report: dict[str, object] = {
            "name": "fire --distinct" if distinct else "fire",
            "due": due,
            "pending": pending,
        }
        bare = float("inf")
        if distinct:  # every expression is parsed once, as by a clock that has just taken over
            report["ours_after_a_takeover"] = due / await _ours(connection, due)
            bare = report["bare_next_fires_per_s"] = _bare_next_fires(specs)
        turns = [await _turn(connection, due, number) for number in range(1, TURNS + 1)]
        if snapshot is not None:
            await snapshot.close()
    ratios = sorted(ours / min(raw, bare) for raw, ours in turns)
    raw, ours = next(turn for turn in turns if turn[1] / min(turn[0], bare) == ratios[TURNS // 2])
    limit = min(raw, bare)
    return report | {
        "ratios": ", ".join(f"{ratio:.3f}" for ratio in ratios),
        "raw_per_s": raw,
        "ours": ours,
        "limit": limit,
        "ratio": ours / limit,
        "goal": 0.5,
    }


async def _turn(connection: Connection, due: int, number: int) -> tuple[float, float]:
    """Raw and own fires per second, measured one after the other."""
    await _arm(connection, day=number)
    raw_s = await _raw(connection, due, number)
    await _arm(connection, day=number)
    return due / raw_s, due / await _ours(connection, due, day=number)


def _specs(count: int) -> list[dict[str, object]]:
    if count == 1:
        return [parse(every="1h", anchor=T0).spec]
    times = itertools.product(range(60), range(24), range(1, 29), range(1, 13))
    return [
        parse(cron=f"{minute} {hour} {day} {month} *", tz="America/New_York").spec
        for minute, hour, day, month in itertools.islice(times, 0, None, max(1, 483_840 // count))
    ][:count]


async def _fill(connection: Connection, due: int, pending: int, specs: Sequence[dict[str, object]]) -> None:
    await connection.execute(
        statement("bench/fill_pending"), {"at": T0 + timedelta(days=365), "count": pending}
    )
    await connection.execute(
        statement("bench/fill_schedules"),
        {"recurrences": [Jsonb(spec) for spec in specs], "count": due, "at": T0},
    )
    await _arm(connection)


async def _arm(connection: Connection, day: int = 0) -> None:
    await connection.execute(statement("bench/arm_schedules"), {"at": T0 + timedelta(days=day)})
    await connection.execute(statement("bench/vacuum_timers"))
    await connection.execute(statement("bench/checkpoint"))


async def _raw(connection: Connection, due: int, day: int) -> float:
    """The raw loop. It writes with seqs beyond the head of the log, in the next partition."""
    now, base = NOW + timedelta(days=day), 1_000_000 + (day - 1) * due
    sql = (Path(__file__).parent / "raw_fire.sql").read_bytes()
    sql = b"\n".join(line for line in sql.splitlines() if not line.startswith(b"--"))
    mark: tuple[datetime, str] = (BEGINNING, "")
    done = 0
    began = time.perf_counter()
    while done < due:
        row = await (
            await connection.execute(
                sql,
                {"mark": mark[0], "mark_ref": mark[1], "now": now, "limit": BATCH, "base": base + done},
            )
        ).fetchone()
        assert row is not None
        done += row[0]
        mark = (row[1], row[2])
    return time.perf_counter() - began


async def _ours(connection: Connection, due: int, day: int = 0) -> float:
    term = await begin_term(connection, "bench", batch=BATCH)
    fired = 0
    began = time.perf_counter()
    while fired < due:
        batch = await term.run_once(NOW + timedelta(days=day))
        fired += batch.fires
        if not batch.more and fired < due:
            raise RuntimeError(f"only {fired} of {due} fired")
    return time.perf_counter() - began


def _bare_next_fires(specs: Sequence[dict[str, object]]) -> float:
    """Each expression is parsed and used once, as for a due schedule."""
    recurrences = [parse_spec(spec) for spec in specs]
    began = time.perf_counter()
    for recurrence in recurrences:
        recurrence.next_after(NOW + timedelta(hours=1))
    return len(recurrences) / (time.perf_counter() - began)

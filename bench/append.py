"""Compares three ways to find the head of the record log, with and without a held snapshot.

A counter row, `max(seq)` over the partitions of the log, and `max(last_seq)` over `log_commit` (the
way of `tocsin.append`), on the real tables. Each operation is one committed transaction. An empty
round trip is measured for comparison.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time

from bench.database import bench_servers, hold_snapshot, migrated
from tocsin.core.db import Connection, statement
from tocsin.embedded import Servers

_WAYS = ("nothing", "counter_row", "max_seq", "log_commit")


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench append")
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=400)
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(_measure(servers, options.commits, options.partitions))


async def _measure(servers: Servers, commits: int, partitions: int) -> dict[str, object]:
    report: dict[str, object] = {"name": "append", "commits": commits, "partitions": partitions}
    async with migrated(servers) as (settings, connection):
        await connection.execute(statement("bench/create_counter"))
        await connection.execute(statement("bench/extend_log"), {"count": partitions})
        for way in _WAYS:
            quiet, _ = await _medians(connection, way, min(commits, 2000))
            report[f"{way}_us"] = quiet
        snapshot = await hold_snapshot(settings)
        for way in _WAYS:
            _, last = await _medians(connection, way, commits if way != "max_seq" else min(commits, 500))
            report[f"{way}_us_under_snapshot"] = last
        await snapshot.close()
    ours = report["log_commit_us_under_snapshot"]
    limit = report["nothing_us_under_snapshot"]
    assert isinstance(ours, float)
    assert isinstance(limit, float)
    return report | {"ours": ours, "limit": limit, "ratio": limit / ours}


async def _medians(connection: Connection, way: str, count: int) -> tuple[float, float]:
    """The medians of the first and the last tenth, in microseconds."""
    sql = statement(f"bench/head_by_{way}")
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        await connection.execute(sql)
        taken.append(time.perf_counter() - began)
    tenth = max(1, count // 10)
    first, last = statistics.median(taken[:tenth]), statistics.median(taken[-tenth:])
    return round(first * 1e6, 1), round(last * 1e6, 1)

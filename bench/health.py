"""The cost of systems for an append.

Measured are an append without systems, with unrelated systems, and with members that it concerns.

Each append is a statement of its own inside a transaction that is rolled back, so the disk is not
measured. The cases alternate several times; the median of all is reported.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections import defaultdict

from bench.database import bench_servers, migrated
from tocsin.core.db import Connection, statement
from tocsin.embedded import Servers

_MEMBERS = 10
_CASES = (("without", 0), ("untouched", 0), ("touched", 1))
_ROUNDS = 15


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench health")
    parser.add_argument("--systems", type=int, default=100)
    parser.add_argument("--batch", type=int, default=500)
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(_measure(servers, options.systems, options.batch))


async def _measure(servers: Servers, systems: int, batch: int) -> dict[str, object]:
    taken: defaultdict[str, list[float]] = defaultdict(list)
    async with migrated(servers) as (_, connection):
        for _ in range(_ROUNDS):
            for case, is_member in _CASES:
                async with connection.transaction(force_rollback=True):
                    if case != "without":
                        await connection.execute(
                            statement("bench/fill_systems"), {"systems": systems, "members": _MEMBERS}
                        )
                    for records, count in ((1, 40), (batch, 3)):
                        owner = "plant" if is_member else "other"
                        for kind in ("staleness", "transitions"):
                            name = f"{records}_{kind}_{case}"
                            await _append(connection, kind, records, owner, count, taken[name])
    report: dict[str, object] = {"name": "health", "systems": systems, "members": systems * _MEMBERS}
    medians = {name: statistics.median(times) for name, times in taken.items()}
    for name, median in sorted(medians.items()):
        report[f"{name}_us"] = round(median * 1e6, 1)
    limit, ours = medians[f"{batch}_transitions_without"], medians[f"{batch}_transitions_untouched"]
    return report | {"ours": ours, "limit": limit, "ratio": limit / ours}


async def _append(
    connection: Connection, kind: str, records: int, owner: str, count: int, taken: list[float]
) -> None:
    query = statement("bench/append_transitions" if kind == "transitions" else "bench/append_staleness")
    for number in range(count + 1):
        began = time.perf_counter()
        await connection.execute(query, {"count": records, "owner": owner})
        if number:  # the first statement is planned by Postgres
            taken.append(time.perf_counter() - began)

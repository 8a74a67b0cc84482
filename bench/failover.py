"""Failover: the time from the end of a leader to the epoch of the next one in Postgres."""

from __future__ import annotations

import argparse
import asyncio
import signal
import statistics
import subprocess
import time

from bench.database import bench_servers, migrated
from bench.processes import start
from tocsin.core.db import Connection, fetch_one
from tocsin.core.settings import Settings
from tocsin.embedded import Servers


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench failover")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(_measure(servers, options.rounds))


async def _measure(servers: Servers, rounds: int) -> dict[str, object]:
    async with migrated(servers) as (settings, connection):
        clocks = [start(settings, "clock")]
        epoch = await _next_leader(connection, 0)
        killed: list[float] = []
        clean: list[float] = []
        try:
            for number in range(2 * rounds):
                clocks.append(start(settings, "clock"))
                # The standby must be listening before the leader ends.
                await asyncio.sleep(2.0)
                leader = clocks.pop(0)
                began = time.perf_counter()
                leader.send_signal(signal.SIGKILL if number % 2 == 0 else signal.SIGTERM)
                epoch = await _next_leader(connection, epoch)
                (killed if number % 2 == 0 else clean).append(time.perf_counter() - began)
                await asyncio.to_thread(leader.wait)
        finally:
            _end(clocks)
    return _report(settings, killed, clean)


def _report(settings: Settings, killed: list[float], clean: list[float]) -> dict[str, object]:
    limit = settings.lease_ttl_s + 0.5
    return {
        "name": "failover",
        "ttl_s": settings.lease_ttl_s,
        "kill_median_s": statistics.median(killed),
        "clean_median_s": statistics.median(clean),
        "clean_worst_s": max(clean),
        "ours": max(killed),
        "limit": limit,
        "ratio": max(killed) / limit,
        "goal": "kill -9 at most TTL + 0.5 s (ratio at most 1), clean at most 0.3 s",
    }


async def _next_leader(connection: Connection, epoch: int) -> int:
    async with asyncio.timeout(60):
        while True:
            row = await fetch_one(connection, "bench/read_leader")
            if row is not None and row[0] > epoch:
                return int(row[0])
            await asyncio.sleep(0.002)


def _end(clocks: list[subprocess.Popen[bytes]]) -> None:
    for clock in clocks:
        clock.kill()
        clock.wait()

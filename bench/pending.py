"""Fires per second with many more pending timers: the scan must not become slower."""

from __future__ import annotations

import argparse
import asyncio

from bench.database import bench_servers
from bench.fire import measure


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench pending")
    parser.add_argument("--due", type=int, default=100_000)
    parser.add_argument("--few", type=int, default=1_000_000)
    parser.add_argument("--many", type=int, default=10_000_000)
    options = parser.parse_args(arguments)
    rates = {}
    for pending in (options.few, options.many):
        with bench_servers() as servers:
            rates[pending] = asyncio.run(measure(servers, options.due, pending))["ours"]
    ours, limit = rates[options.many], rates[options.few]
    assert isinstance(ours, float)
    assert isinstance(limit, float)
    return {
        "name": "pending",
        "few": options.few,
        "many": options.many,
        "ours": ours,
        "limit": limit,
        "ratio": ours / limit,
        "goal": 0.8,
    }

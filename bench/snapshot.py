"""Fires per second while an old snapshot keeps every dead row, compared with none."""

from __future__ import annotations

import argparse
import asyncio

from bench.database import bench_servers
from bench.fire import measure


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench snapshot")
    parser.add_argument("--due", type=int, default=200_000)
    parser.add_argument("--pending", type=int, default=100_000)
    options = parser.parse_args(arguments)
    rates = {}
    for held in (False, True):
        with bench_servers() as servers:
            rates[held] = asyncio.run(measure(servers, options.due, options.pending, held_snapshot=held))[
                "ours"
            ]
    ours, limit = rates[True], rates[False]
    assert isinstance(ours, float)
    assert isinstance(limit, float)
    return {
        "name": "snapshot",
        "due": options.due,
        "ours": ours,
        "limit": limit,
        "ratio": ours / limit,
        "goal": 0.8,
    }

"""A writer in a process of its own: `python -m bench.writer RATE SECONDS BATCH`.

TOCSIN_POSTGRES must be in the environment.

Commits BATCH events at a time, RATE times a second (0: as fast as possible), and then prints a line
for each commit: the last seq, and the monotonic clock right after the commit returned, which is the
same clock in every process of the machine.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from datetime import UTC, datetime

from tocsin.core.db import connect, fetch_one
from tocsin.core.settings import Settings

_AT = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


def start_writer(settings: Settings, rate: float, seconds: float, batch: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bench.writer", str(rate), str(seconds), str(batch)],
        env={**os.environ, "TOCSIN_POSTGRES": settings.postgres},
        stdout=subprocess.PIPE,
        text=True,
    )


def commits(output: str) -> dict[int, float]:
    """The time at which each commit returned, by its last seq."""
    return {int(seq): float(at) for seq, at in (line.split() for line in output.splitlines())}


async def main(rate: float, seconds: float, batch: int) -> None:
    connection = await connect(Settings(), "bench writer")
    times: list[tuple[int, float]] = []
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        row = await fetch_one(connection, "bench/append_backlog", {"count": batch, "at": _AT})
        assert row is not None
        times.append((row[0], time.monotonic()))
        if rate:
            await asyncio.sleep(max(0.0, began + len(times) / rate - time.monotonic()))
    await connection.close()
    for seq, at in times:
        print(seq, repr(at))


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))

"""Idle live connections: the processor time and memory that 1,000 of them cost an API process.

The connections are server-sent events, which a browser keeps open. Heartbeats and checks of credentials
are part of the cost. The limit is what an API without connections costs in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.database import bench_servers, migrated
from cdc.stream import ensure_stream
from tocsin.api.access.tokens import TokenChange, add_token
from tocsin.core.bus import open_bus
from tocsin.core.db import open_session
from tocsin.core.settings import Settings
from tocsin.embedded import Servers
from tocsin.policy import AccessRole, Grant

_GOAL_CORE = 0.05
_GOAL_MB = 100.0
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20
_SERVE = """
import asyncio, sys
from tocsin.api.service import Api, listen
from tocsin.core.settings import Settings

async def main():
    settings = Settings.model_validate_json(sys.argv[1])
    with listen(settings) as listening:
        api = Api(settings, listening)
        print(api.url, flush=True)
        await api.run()

asyncio.run(main())
"""


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench live")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=45.0)
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(_on(servers, options.connections, options.seconds))


async def _on(servers: Servers, count: int, seconds: float) -> dict[str, object]:
    async with migrated(servers) as (settings, _), open_bus(settings, "bench") as bus:
        await ensure_stream(bus.jetstream(), settings, horizon=1)
        return await _measure(settings, count, seconds)


async def _measure(settings: Settings, count: int, seconds: float) -> dict[str, object]:
    served = settings.model_copy(update={"api": "127.0.0.1:0", "api_connections": count + 100})
    async with open_session(settings, "bench") as connection:
        grants = [Grant(AccessRole.VIEWER, "*")]
        token = (await add_token(connection, "bench", grants, TokenChange("bench", "bench"))).text
    with subprocess.Popen(  # noqa: ASYNC220 - nothing else runs here yet
        [sys.executable, "-c", _SERVE, served.model_dump_json()], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = next(line.strip() for line in process.stdout if line.startswith("http"))
            async with _listening(url, token, 1):
                before_core, before_mb = await _cost(process.pid, seconds / 3)
            async with _listening(url, token, count):
                core, memory_mb = await _cost(process.pid, seconds)
        finally:
            process.kill()
    added_mb = memory_mb - before_mb
    return {
        "name": "live",
        "connections": count,
        "idle_core": before_core,
        "core": core,
        "added_core": core - before_core,
        "memory_mb": memory_mb,
        "added_mb": added_mb,
        "kb_per_connection": added_mb * 1024 / count,
        "goal": f"below {_GOAL_CORE:.0%} of a core and {_GOAL_MB:g} MB more",
        "reached": core < _GOAL_CORE and added_mb < _GOAL_MB,
    }


@asynccontextmanager
async def _listening(url: str, token: str, count: int) -> AsyncIterator[None]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    writers: list[asyncio.StreamWriter] = []
    reading: list[asyncio.Task[None]] = []
    request = f"GET /v1/live HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\r\n".encode()
    try:
        for _ in range(count):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert b" 200 " in head, head
            writers.append(writer)
            reading.append(asyncio.create_task(_read(reader)))
        yield
    finally:
        for task in reading:
            task.cancel()
        for writer in writers:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> None:
    while await reader.read(65_536):
        pass


async def _cost(pid: int, seconds: float) -> tuple[float, float]:
    """The share of a core in a while, and the memory at its end."""
    began, before = time.monotonic(), _processor_s(pid)
    await asyncio.sleep(seconds)
    share = (_processor_s(pid) - before) / (time.monotonic() - began)
    resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1])  # noqa: ASYNC240 - of the kernel
    return share, resident * _PAGE_MB


def _processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS

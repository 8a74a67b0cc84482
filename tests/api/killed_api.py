"""An API in a process of its own, for tests that kill it."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tocsin.core.settings import Settings


@asynccontextmanager
async def api_process(settings: Settings) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The process and its address. It is killed at the end of the block."""
    served = settings.model_copy(update={"api": "127.0.0.1:0"})
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.api.api_process", served.model_dump_json()), stdout=PIPE
    )
    try:
        assert process.stdout is not None
        line = ""
        while not line.startswith("http"):
            line = (await process.stdout.readline()).decode().strip()
        yield process, line
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

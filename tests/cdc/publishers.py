"""Publishers without a lease as processes, to be killed and frozen by tests and by `python -m bench exactly-once`."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process

from tocsin.core.settings import Settings

_PASSED_ON = {"postgres", "nats", "namespace", "cdc_chunk", "cdc_in_flight", "stream_replicas"}


def environment(settings: Settings) -> dict[str, str]:
    values = settings.model_dump(include=_PASSED_ON)
    return {**os.environ, **{f"TOCSIN_{name.upper()}": str(value) for name, value in values.items()}}


async def start(settings: Settings, stdout: int = PIPE, stderr: int | None = None) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.cdc.publisher_process"),
        env=environment(settings),
        stdout=stdout,
        stderr=stderr,
    )


async def kill(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()

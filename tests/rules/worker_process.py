"""A worker in a process of its own that stops between an effect and its outcome, to be killed there.

`python -m tests.rules.worker_process`, with the settings in the environment.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from rules.actions import performer
from rules.worker import Worker
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


async def stop_here(*_: Any) -> bool:
    sys.stdout.write("the effect is done\n")
    sys.stdout.flush()
    await asyncio.Event().wait()
    return False


async def main() -> None:
    setattr(performer, "commit_outcome", stop_here)  # noqa: B010
    async with running(Service("worker", Worker(Settings()).run)):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())

"""A clock process that can be trapped inside its transaction, at `locked` and `appended`.

`python -m tests.faults.clock_process`, with the settings and the directory of traps in the environment.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from clock.service import Clock
from tests.faults.traps import VARIABLE, die_with_the_parent, hook_of
from tocsin.core.logs import configure_logs
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


async def main(settings: Settings, traps: Path) -> None:
    async with running(Service("clock", Clock(settings, hook=hook_of(traps)).run)):
        await asyncio.Event().wait()


if __name__ == "__main__":
    die_with_the_parent()
    settings = Settings()
    configure_logs(settings)
    asyncio.run(main(settings, Path(os.environ[VARIABLE])))

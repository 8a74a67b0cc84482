"""A worker of the data lane in a process of its own, trapped when a batch is `planned` and when it is `written`.

`python -m tests.rules.lanes.lane_process`, with the settings and the directory of traps in the environment.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from rules.alarms.over_series import SeriesAlarms
from tests.faults.traps import VARIABLE, die_with_the_parent, hook_of
from tests.rules.lanes.counting_work import Counting
from tests.rules.lanes.lane_setup import lane_worker
from tocsin.core.logs import configure_logs
from tocsin.core.service import running
from tocsin.core.settings import Settings


async def main(settings: Settings, traps: Path) -> None:
    async with running(lane_worker("lane", settings, SeriesAlarms(), Counting(hook_of(traps)))):
        await asyncio.Event().wait()


if __name__ == "__main__":
    die_with_the_parent()
    read = Settings()
    configure_logs(read)
    asyncio.run(main(read, Path(os.environ[VARIABLE])))

"""A clock in a process of its own that can be stopped at a named point inside its transaction.

`python -m tests.faults.clock_process`, with the settings in the environment and the traps in the directory named by
TOCSIN_TEST_TRAPS: a file `locked` or `appended` there is a trap. Whoever leads takes it by renaming it, which only
one process can do, and does to itself what the file says: `kill`, `stop`, or `hold` until the file is gone.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from functools import partial
from pathlib import Path

import structlog

from clock.service import Clock
from tests.waiting import eventually
from tocsin.core.logs import configure_logs
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings

_PR_SET_PDEATHSIG = 1
_log = structlog.get_logger()


async def main(settings: Settings, traps: Path) -> None:
    async def hook(point: str) -> None:
        taken = traps / f"{point}-{os.getpid()}"
        action = _take(traps / point, taken)
        if action is None:
            return
        _log.warning("trapped", point=point, action=action)
        if action == "hold":
            await eventually(partial(_gone, str(taken)), "the trap is opened", within=120)
        else:
            os.kill(os.getpid(), signal.SIGKILL if action == "kill" else signal.SIGSTOP)

    async with running(Service("clock", Clock(settings, hook=hook).run)):
        await asyncio.Event().wait()


def _take(trap: Path, taken: Path) -> str | None:
    """What the trap says, read before it is taken: whoever set it removes it as soon as it is."""
    try:
        action = trap.read_text(encoding="ascii")
        trap.rename(taken)
    except FileNotFoundError:
        return None
    return action


async def _gone(taken: str) -> bool:
    return not os.access(taken, os.F_OK)


def _die_with_the_parent() -> None:
    """A frozen clock must not outlive a test run that was killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    _die_with_the_parent()
    read = Settings()
    configure_logs(read)
    asyncio.run(main(read, Path(os.environ["TOCSIN_TEST_TRAPS"])))

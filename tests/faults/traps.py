"""Traps in processes under test: a point at which whoever comes by is killed, frozen or held.

A file named like the point, in the directory of traps, is a trap. Whoever comes by takes it by renaming it, which only
one process can do, and does to itself what the file says: `kill`, `stop`, or `hold` until the file is gone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import structlog

from tests.waiting import eventually

_PR_SET_PDEATHSIG = 1
_log = structlog.get_logger()
VARIABLE = "TOCSIN_TEST_TRAPS"


def hook_of(traps: Path) -> Callable[[str], Awaitable[None]]:
    """To be called at each point."""

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

    return hook


def die_with_the_parent() -> None:
    """A frozen process must not outlive a test run that was killed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


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

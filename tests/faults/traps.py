"""Traps in processes under test: points at which a process is killed, frozen or held.

A file in the folder of traps, named like the point, is a trap. The process that reaches the point takes
it by renaming it, which only one process can do. The content is the action: `kill`, `stop`, or `hold`
until the file is removed.
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

from tests.wait import eventually

_PR_SET_PDEATHSIG = 1
_log = structlog.get_logger()
VARIABLE = "TOCSIN_TEST_TRAPS"


def hook_of(traps: Path) -> Callable[[str], Awaitable[None]]:
    """A hook that a process calls at each point."""

    async def hook(point: str) -> None:
        taken = traps / f"{point}-{os.getpid()}"
        action = _take(traps / point, taken)
        if action is None:
            return
        _log.warning("trapped", point=point, action=action)
        if action == "hold":
            await eventually(partial(_is_removed, str(taken)), "the trap is opened", within=120)
        else:
            os.kill(os.getpid(), signal.SIGKILL if action == "kill" else signal.SIGSTOP)

    return hook


def die_with_the_parent() -> None:
    """Make the kernel kill this process with its parent, also if it is frozen."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _take(trap: Path, taken: Path) -> str | None:
    """Take the trap; its action. It is read before, because the test removes a trap that was taken."""
    try:
        action = trap.read_text(encoding="ascii")
        trap.rename(taken)
    except FileNotFoundError:
        return None
    return action


async def _is_removed(taken: str) -> bool:
    return not os.access(taken, os.F_OK)

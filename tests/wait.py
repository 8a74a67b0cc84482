"""Waits for a condition. No other module of the tests sleeps.

Guarantee: returns as soon as the condition holds, and fails with a message if it never does.

Why: a test that waits for seconds is slow on a fast machine and wrong on a slow one. The limit is long: it
only keeps a broken test from hanging.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

_POLL_S = 0.01


async def eventually(predicate: Callable[[], Awaitable[bool]], what: str, within: float = 60.0) -> None:
    deadline = time.monotonic() + within
    while not await predicate():
        assert time.monotonic() < deadline, f"never within {within:g} s: {what}"
        await asyncio.sleep(_POLL_S)


def eventually_sync(predicate: Callable[[], bool], what: str, within: float = 60.0) -> None:
    deadline = time.monotonic() + within
    waiting = threading.Event()
    while not predicate():
        assert time.monotonic() < deadline, f"never within {within:g} s: {what}"
        waiting.wait(_POLL_S)

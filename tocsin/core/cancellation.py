"""Cancellation that arrives together with the answer of a library.

Guarantee: `cancellable` raises `CancelledError` when its task was cancelled while it waited, also
if the library returned a result or raised an error of its own.

Why: nats-py, psycopg_pool and aiosmtplib wait with `asyncio.wait_for`. In Python 3.11 that returns
the result of a future that is done and drops a cancellation of the same iteration of the event
loop. A task that is cancelled once would then run on, and a time limit (`asyncio.timeout`, which
cancels) would not hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

Result = TypeVar("Result")


async def cancellable(
    answer: Awaitable[Result], undo: Callable[[Result], Awaitable[object]] | None = None
) -> Result:
    """`undo` gives back a result that the caller will not get, such as a connection."""
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    before = task.cancelling()
    try:
        result = await answer
    except Exception as error:
        if task.cancelling() > before:
            raise asyncio.CancelledError from error
        raise
    if task.cancelling() > before:
        if undo is not None:
            await undo(result)
        raise asyncio.CancelledError
    return result

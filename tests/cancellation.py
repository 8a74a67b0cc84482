"""Cancels a task at the same moment at which a library gets its answer.

Why: Python 3.11's `asyncio.wait_for` returns the result and drops the cancellation if both arrive in the
same iteration of the event loop. On a loaded machine that happens by chance; here it always happens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import pytest


async def swallow_one_cancellation(*_: object) -> None:
    """Run until cancelled twice."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    await asyncio.Event().wait()


class Answers:
    """Counts the answers that one task waits for with `asyncio.wait_for`, and cancels the task at one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._task: asyncio.Task[Any] | None = None
        self._cancel_at: int | None = None
        self._is_alone = True
        self._wait_for = asyncio.wait_for
        monkeypatch.setattr(asyncio, "wait_for", self._count_and_wait)

    def watch(self, task: asyncio.Task[Any], cancel_at: int | None = None, *, is_alone: bool = True) -> None:
        """Cancel `task` at answer number `cancel_at`, from 1; None only counts.

        Without `is_alone`, the answers that other tasks wait for count too: nats-py creates a task for each
        `fetch`.
        """
        self.count, self._task, self._cancel_at, self._is_alone = 0, task, cancel_at, is_alone

    async def _count_and_wait(self, awaitable: Awaitable[Any], timeout: float | None) -> Any:
        answer = asyncio.ensure_future(awaitable)
        task = self._task
        if task is not None and (task is asyncio.current_task() or not self._is_alone):
            self.count += 1
            if self.count == self._cancel_at:
                answer.add_done_callback(lambda _: task.cancel())
        return await self._wait_for(answer, timeout)

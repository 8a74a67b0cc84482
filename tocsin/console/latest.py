"""Only the newest of several works of one kind runs: a new one cancels the one before it.

The editor plans and replays a document after each pause of typing. Its key is a random text of the page, so no page can
cancel the work of another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class Latest:
    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[Any]] = {}

    async def run(self, key: str, work: Coroutine[Any, Any, Result]) -> Result | None:
        """The result; None if a newer work of this key has replaced it. Without a key nothing is replaced."""
        task = asyncio.create_task(work)
        if key:
            before = self._running.get(key)
            if before is not None:
                before.cancel()
            self._running[key] = task
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
            if self._running.get(key) is task:
                del self._running[key]
        return None if task.cancelled() else task.result()

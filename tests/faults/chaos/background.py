"""An event loop in a thread of its own, for the links, the receiver and the producer.

The main thread starts servers and processes, because the kernel ties a child to the thread that forked
it, and it blocks while it waits for them. The links must forward bytes meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Self, TypeVar

T = TypeVar("T")
_WITHIN_S = 240.0


class Background:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="background", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self._cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_WITHIN_S)
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine in the loop and wait for its result."""
        return self.start(work).result(_WITHIN_S)

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

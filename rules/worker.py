"""A worker: dispatches events and performs steps, side by side, in one service.

Any number of them run at once; they are competing consumers. If one half fails, both are stopped and the
service starts them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rules.dispatch import Dispatcher
from rules.perform import Performer
from tocsin.core.settings import Settings

_ASK_AGAIN_S = 0.5


class Worker:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def run(self) -> None:
        halves = [
            asyncio.create_task(Dispatcher(self._settings).run(), name="dispatch"),
            asyncio.create_task(Performer(self._settings).run(), name="perform"),
        ]
        try:
            done, _ = await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
            for half in done:
                half.result()
        finally:
            await _end(halves)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Libraries that wait with Python 3.11's `wait_for` may swallow a cancellation: ask until they have ended."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_ASK_AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)

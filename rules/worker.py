"""A worker: dispatches events and performs steps, side by side, in one service.

Any number of them run at once; they are competing consumers. If one half fails, both are stopped and the
service starts them again.
"""

from __future__ import annotations

import asyncio

from rules.dispatch import Dispatcher
from rules.perform import Performer
from tocsin.core.settings import Settings


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
            for half in halves:
                half.cancel()
            await asyncio.gather(*halves, return_exceptions=True)

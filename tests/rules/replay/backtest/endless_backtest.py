"""A backtest that never ends, with its bar, for a terminal to interrupt."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

from rules.engine import Arrival
from rules.replay.backtest.parallel import backtest
from rules.replay.backtest.recording.model import Arrivals, OwnerHeader, RecordingHeader, RecordingItem
from tocsin.cli.progress import fraction_bar

_START = datetime(2026, 1, 1, tzinfo=UTC)


class Endless:
    async def header(self) -> RecordingHeader:
        return RecordingHeader(_START, _START, _START + timedelta(days=1), True, [], [], [], [], {})

    async def items(self, share: int, of: int) -> AsyncIterator[tuple[float, RecordingItem]]:
        yield 0.0, OwnerHeader("plant", 0, (), ())
        while True:
            yield 0.5, Arrivals([Arrival(_START, 1, "plant", "a", 1.0, _START, {})] * 1000)


async def _run() -> None:
    source = Endless()
    with fraction_bar("replaying") as report:
        await backtest(source, await source.header(), jobs=2, report=report)


if __name__ == "__main__":
    try:
        asyncio.run(_run())
    except KeyboardInterrupt:
        sys.exit(130)

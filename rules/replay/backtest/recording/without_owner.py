"""A recording without one owner, to write it again after `tocsin forget`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from rules.replay.backtest.recording.model import OwnerHeader, Recording, RecordingHeader, RecordingItem


@dataclass(frozen=True)
class WithoutOwner:
    source: Recording
    owner: str

    async def header(self) -> RecordingHeader:
        return await self.source.header()

    async def items(self, share: int, of: int) -> AsyncIterator[tuple[float, RecordingItem]]:
        is_left_out = False
        async for done, item in self.source.items(share, of):
            if isinstance(item, OwnerHeader):
                is_left_out = item.owner == self.owner
            if not is_left_out:
                yield done, item

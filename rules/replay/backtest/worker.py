"""What a process of a backtest does: shares, one after the other, with rules that are compiled once.

Why a module of its own: such a process begins by importing this, and needs nothing of what it takes to send.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from typing import Any

from rules.replay.backtest.owner_replay import Found, ShareReplay
from rules.replay.backtest.recording.model import Source, Story, Version
from tocsin.core.errors import Refused

Progress = tuple[int, float]
"""A share, and how much of it is done."""
_STEP = 0.02


@dataclass(frozen=True)
class Work:
    progress: SimpleQueue[Progress]
    stop: Event
    source: Source
    story: Story
    candidate: list[Version] | None

    @cached_property
    def replay(self) -> ShareReplay:
        return ShareReplay(self.story, self.candidate)

    def run(self, share: int, of: int) -> Found:
        told = 0.0

        def report(done: float) -> None:
            nonlocal told
            if self.stop.is_set():
                raise Refused("the backtest was stopped")
            if done - told >= _STEP:
                told = done
                self.progress.put((share, done))

        found = asyncio.run(self.replay.run(self.source, share, of, report))
        self.progress.put((share, 1.0))
        return found


_work: Work


def begin(*given: Any) -> None:
    global _work
    _work = Work(*given)


def run_share(share: int, of: int) -> Found:
    return _work.run(share, of)

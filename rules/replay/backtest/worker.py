"""Replays shares in one process of a backtest, one after the other, with rules compiled once.

Why it is a module of its own: a process starts by importing it, and it imports nothing that
delivers messages.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from typing import Any

from rules.calc.rule import CalcPoint
from rules.replay.backtest.recording.model import DocumentVersion, Recording, RecordingHeader
from rules.replay.backtest.result import BacktestResult
from rules.replay.backtest.share_replay import ShareReplay
from tocsin.core.errors import Refused
from tocsin.core.logs import configure_command_logs
from tocsin.core.settings import read_settings

Progress = tuple[int, float]
"""A share, and the fraction of it that is done."""
_LEAST_PROGRESS = 0.02


@dataclass(frozen=True)
class ShareWorker:
    progress: SimpleQueue[Progress]
    stop: Event
    source: Recording
    header: RecordingHeader
    candidate: list[DocumentVersion] | None
    results: dict[str, list[CalcPoint]] | None

    @cached_property
    def replay(self) -> ShareReplay:
        return ShareReplay(self.header, self.candidate, self.results)

    def run(self, share: int, of: int) -> BacktestResult:
        reported = 0.0

        def report(done: float) -> None:
            nonlocal reported
            if self.stop.is_set():
                raise Refused("the backtest was stopped")
            if done - reported >= _LEAST_PROGRESS:
                reported = done
                self.progress.put((share, done))

        result = asyncio.run(self.replay.run(self.source, share, of, report))
        self.progress.put((share, 1.0))
        return result


_worker: ShareWorker


def initialize(*arguments: Any) -> None:
    global _worker
    # A process of its own inherits no configuration, and unconfigured logs go to stdout.
    configure_command_logs(read_settings())
    _worker = ShareWorker(*arguments)


def run_share(share: int, of: int) -> BacktestResult:
    return _worker.run(share, of)

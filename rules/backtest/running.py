"""A backtest on all cores.

Guarantee: the same result whatever the number of processes: each takes the owners whose names fall in its share, and
what they found is put together and sorted. On failure of one the whole fails: there is no report of a part.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from functools import reduce
from multiprocessing.queues import SimpleQueue
from operator import add

from rules.backtest.facts import Source, Story, Version
from rules.backtest.owners import Found, ShareReplay

Report = Callable[[float], None]
"""Told how much of the work is done, from 0 to 1."""
Progress = tuple[int, float]
_STEP = 0.005
_EVERY_S = 0.2


async def backtest(
    source: Source,
    story: Story,
    candidate: Sequence[Version] | None = None,
    *,
    jobs: int = 1,
    report: Report = lambda done: None,
) -> Found:
    """`candidate`: the documents to try; None replays with those of the time."""
    documents = None if candidate is None else list(candidate)
    if jobs == 1:
        found = await ShareReplay(story, documents).run(source, 0, 1, report)
        return found.in_order()
    context = multiprocessing.get_context("spawn")
    progress = context.SimpleQueue()
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(progress,)) as pool:
        shares = [pool.submit(_run_share, source, story, documents, share, jobs) for share in range(jobs)]
        await _follow(shares, progress, report)
        return reduce(add, (share.result() for share in shares)).in_order()


async def _follow(shares: list[Future[Found]], progress: SimpleQueue[Progress], report: Report) -> None:
    done = dict.fromkeys(range(len(shares)), 0.0)
    waiting = {asyncio.wrap_future(share) for share in shares}
    while waiting:
        finished, waiting = await asyncio.wait(waiting, timeout=_EVERY_S, return_when=asyncio.FIRST_EXCEPTION)
        for one in finished:
            one.result()
        while not progress.empty():
            share, part = progress.get()
            done[share] = part
        report(sum(done.values()) / len(done))


_progress: SimpleQueue[Progress] | None = None


def _begin(progress: SimpleQueue[Progress]) -> None:
    global _progress
    _progress = progress


def _run_share(source: Source, story: Story, candidate: list[Version] | None, share: int, of: int) -> Found:
    told = 0.0

    def report(done: float) -> None:
        nonlocal told
        if done - told >= _STEP and _progress is not None:
            told = done
            _progress.put((share, done))

    return asyncio.run(ShareReplay(story, candidate).run(source, share, of, report))

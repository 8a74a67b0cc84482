"""A backtest on all cores.

Guarantee: the same result whatever the number of processes: the owners are divided into shares, and what was found in
them is put together and sorted; the health of systems, whose members may be of several shares, is concluded in the end.
There are more shares than processes, so that one on a busy core takes fewer of them.

On failure of one the whole fails: there is no report of a part. Then, and when somebody presses Ctrl-C, the others stop
at their next block of rows.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import reduce
from multiprocessing.queues import SimpleQueue
from operator import add

from rules.replay.backtest.owner_replay import Found, ShareReplay
from rules.replay.backtest.recording.model import Source, Story, Version
from rules.replay.backtest.report.notifications import count_pages
from rules.replay.backtest.worker import Progress, begin, run_share
from tocsin.core.errors import Refused

Report = Callable[[float], None]
"""Told how much of the work is done, from 0 to 1."""
_EVERY_S = 0.2
_SHARES_EACH = 4


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
    replay = ShareReplay(story, documents)
    if jobs == 1:
        return _concluded(replay, await replay.run(source, 0, 1, report), story)
    context = multiprocessing.get_context("spawn")
    progress, stop = context.SimpleQueue(), context.Event()
    given = (progress, stop, source, story, documents)
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=begin, initargs=given) as pool:
        of = jobs * _SHARES_EACH
        with _without_interrupts():
            shares = [pool.submit(run_share, share, of) for share in range(of)]
        try:
            await _follow(shares, progress, report)
        except BrokenProcessPool:
            raise Refused(
                "a process of the backtest was killed", remedy="use fewer --jobs if memory is short"
            ) from None
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
    return _concluded(replay, reduce(add, (share.result() for share in shares)), story)


def _concluded(replay: ShareReplay, found: Found, story: Story) -> Found:
    found = replay.conclude(found)
    found.pages_then = count_pages(replay.history, found.heard_then, story.since, story.until)
    found.pages_now = count_pages(replay.rules, found.heard_now, story.since, story.until)
    found.heard_then, found.heard_now = [], []
    return found


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Processes that begin meanwhile leave the answer to Ctrl-C, which the terminal sends to all, to this one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def _follow(shares: list[Future[Found]], progress: SimpleQueue[Progress], report: Report) -> None:
    done = dict.fromkeys(range(len(shares)), 0.0)
    while not all(share.done() for share in shares):
        finished, _ = await asyncio.to_thread(wait, shares, _EVERY_S, FIRST_EXCEPTION)
        for one in finished:
            one.result()
        while not progress.empty():
            share, part = progress.get()
            done[share] = part
        report(sum(done.values()) / len(done))

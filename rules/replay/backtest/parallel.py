"""Runs a backtest on all cores.

Guarantee: the result does not depend on the number of processes. The owners are divided into
shares, one task each, and the results of the shares are added and sorted. The members of a system
may be in several shares, so the health of systems is derived at the end. There are more shares than
processes, so that a process on a busy core takes fewer of them.

On failure of one share the whole backtest fails: no partial result is returned. Then, and after
Ctrl-C, the other processes stop at their next block of rows.
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

from rules.replay.backtest.calc import CalcReplay, replay_results
from rules.replay.backtest.recording.model import DocumentVersion, Recording, RecordingHeader
from rules.replay.backtest.report.notifications import count_notifications
from rules.replay.backtest.result import BacktestResult
from rules.replay.backtest.share_replay import ShareReplay
from rules.replay.backtest.worker import Progress, initialize, run_share
from tocsin.core.errors import Refused

ReportProgress = Callable[[float], None]
"""Called with the fraction of the work that is done."""
_POLL_S = 0.2
_SHARES_PER_PROCESS = 4


async def backtest(
    source: Recording,
    header: RecordingHeader,
    candidate: Sequence[DocumentVersion] | None = None,
    *,
    jobs: int = 1,
    report: ReportProgress = lambda done: None,
) -> BacktestResult:
    """Replay a recording with the candidate documents, or with the rules that were in force if they
    are None."""
    documents = None if candidate is None else list(candidate)
    replay = ShareReplay(header, documents)
    calculated = await replay_results(source, header, replay.rules.of_calc(), documents is None)
    results = None
    if documents is not None and (calculated.points or _has_calc_rules(header)):
        results = calculated.by_owner()
        replay = ShareReplay(header, documents, results)
    if jobs == 1:
        return _finish(replay, await replay.run(source, 0, 1, report), header, calculated)
    context = multiprocessing.get_context("spawn")
    progress, stop = context.SimpleQueue(), context.Event()
    arguments = (progress, stop, source, header, documents, results)
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=initialize, initargs=arguments) as pool:
        share_count = jobs * _SHARES_PER_PROCESS
        with _without_interrupts():
            shares = [pool.submit(run_share, share, share_count) for share in range(share_count)]
        try:
            await _follow(shares, progress, report)
        except BrokenProcessPool:
            raise Refused(
                "a process of the backtest was killed", remedy="use fewer --jobs if memory is short"
            ) from None
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
    return _finish(replay, reduce(add, (share.result() for share in shares)), header, calculated)


def _has_calc_rules(header: RecordingHeader) -> bool:
    return any(version.kind == "calc_rule" for version in header.versions)


def _finish(
    replay: ShareReplay, result: BacktestResult, header: RecordingHeader, calculated: CalcReplay
) -> BacktestResult:
    """Derive what needs the results of all shares, and drop the events that only this needed."""
    result.mismatches += calculated.mismatches
    result.calculated_count = calculated.compared
    replay.replay_new_owners(calculated.by_owner().keys() - calculated.owners, result)
    result = replay.finish(result)
    result.recorded_notifications = count_notifications(
        replay.history, result.recorded_events, header.since, header.until
    )
    result.replayed_notifications = count_notifications(
        replay.rules, result.replayed_events, header.since, header.until
    )
    result.recorded_events, result.replayed_events = [], []
    return result


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Make processes that start in the block ignore Ctrl-C, which the terminal sends to all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def _follow(
    shares: list[Future[BacktestResult]], progress: SimpleQueue[Progress], report: ReportProgress
) -> None:
    """Report progress until all shares are done. Raises the error of the first share that fails."""
    done = dict.fromkeys(range(len(shares)), 0.0)
    while not all(share.done() for share in shares):
        finished, _ = await asyncio.to_thread(wait, shares, _POLL_S, FIRST_EXCEPTION)
        for future in finished:
            future.result()
        while not progress.empty():
            share, fraction = progress.get()
            done[share] = fraction
        report(sum(done.values()) / len(done))

"""Calculates the windows of calc_rules, as soon as the watermarks have passed their ends.

Guarantee: every window is calculated once, in order, by one worker at a time: the results and the
new position commit together, and the position is checked again in that transaction. All partitions
have been read beyond the end of a window, so no datapoint of it is missing, whatever process was
late or was killed. A datapoint whose `ts` lies far behind its arrival is late: it changes no window,
and is counted.

On failure nothing was calculated, and the worker tries again. While a partition lags, the windows
wait: they are never corrected afterwards.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import NamedTuple

import structlog

from rules.calc.gaps import GapIndex
from rules.calc.memory import CalcMemory, InputGroups, add_series
from rules.calc.points import read_points, read_results
from rules.calc.rule import CalcPoint, CompiledInput, InputRange
from rules.calc.rule_set import calc_rule_book
from rules.calc.window import ApplyBegin, CalcPeriod, CalcWindow, period_begins, windows
from rules.lanes.arrival_gap import ArrivalGap
from rules.metrics import CALC_DROPPED, CALC_FAILED, CALC_LATE, CALC_RESULTS
from tocsin.core.db import Connection, fetch_all, fetch_one, fetch_value, open_service_session, retrying
from tocsin.core.errors import Conflict
from tocsin.core.instant import instant_of, microseconds_of
from tocsin.core.record_log import append_records
from tocsin.core.records import NewRecords
from tocsin.core.service import beat
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import LOCK_TIMEOUT

_log = structlog.get_logger()
_EVERY_S = 0.2
_WINDOWS = 20
_POINTS = 5_000


class _Position(NamedTuple):
    until: datetime | None
    rules_seq: int
    rules_begin: datetime | None
    watermark: datetime | None


class _Counts:
    """What a chunk of windows did, counted after its commit."""

    def __init__(self) -> None:
        self.late: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.results: Counter[str] = Counter()

    def publish(self) -> None:
        pairs = (CALC_LATE, self.late), (CALC_FAILED, self.failed), (CALC_DROPPED, self.dropped)
        for metric, counts in (*pairs, (CALC_RESULTS, self.results)):
            for rule, count in counts.items():
                metric.add(count, rule)
        for rule, count in self.dropped.items():
            if count:
                _log.warning("calc_rule has too many groups", rule=rule, dropped=count)


class CalcEvaluator:
    """A task of a worker. `windows` and `points` bound what one transaction calculates."""

    def __init__(self, settings: Settings, windows: int = _WINDOWS, points: int = _POINTS) -> None:
        self._settings = settings
        self._windows = windows
        self._points = points
        self._book = calc_rule_book()

    async def run(self) -> None:
        async with open_service_session(self._settings, "worker calc") as connection:
            while True:
                beat("calc")
                # A process that keeps the log locked for longer than we wait only delays us.
                with suppress(LOCK_TIMEOUT):
                    await retrying(lambda: self.calculate(connection))
                await asyncio.sleep(_EVERY_S)

    async def calculate(self, connection: Connection) -> int:
        """Calculate the windows that are decided by now; returns the number of results."""
        results = 0
        while await fetch_value(connection, "rules.calc/has_calc_rules"):
            counts = _Counts()
            async with connection.transaction():
                count, points = await self._calculate_chunk(connection, counts)
            counts.publish()
            results += points
            if not count:
                break
            beat("calc")
        return results

    async def _calculate_chunk(self, connection: Connection, counts: _Counts) -> tuple[int, int]:
        """Calculate some windows; returns how many, and the number of their results."""
        if not await fetch_value(connection, "rules.calc/try_lock_calculation"):
            return 0, 0
        position = await self._read_position(connection)
        if position.watermark is None:
            return 0, 0
        periods = await self._read_periods(connection, position)
        after = 0 if position.until is None else microseconds_of(position.until)
        # More may arrive for the instant of the watermark, so the window that ends there waits.
        decided = windows(periods, after, microseconds_of(position.watermark))
        chunk = list(islice(decided, self._windows))
        if not chunk:
            return 0, 0
        gaps = await _read_gaps(connection, chunk)
        points: list[CalcPoint] = []
        done = 0
        for window in chunk:
            points += await _calculate_window(connection, window, points, gaps, counts)
            done += 1
            if len(points) >= self._points:
                break
        await self._commit(connection, position, chunk[done - 1], points)
        return done, len(points)

    async def _read_position(self, connection: Connection) -> _Position:
        row = await fetch_one(connection, "rules.calc/read_position")
        assert row is not None
        until, rules_seq, rules_begin, watermark = row
        return _Position(until, -1 if rules_seq is None else rules_seq, rules_begin, watermark)

    async def _read_periods(self, connection: Connection, position: _Position) -> list[CalcPeriod]:
        rows = await fetch_all(connection, "rules.calc/list_applies_after", {"after": position.rules_seq})
        begin = 0 if position.rules_begin is None else microseconds_of(position.rules_begin)
        begins = period_begins((ApplyBegin(*row) for row in rows), begin)
        if position.until is not None:
            begins.insert(0, (position.rules_seq, begin))
        if not begins:
            return []
        await self._book.refresh(connection, begins[0][0] + 1)
        return [CalcPeriod(seq, begin, self._book.at(seq + 1)) for seq, begin in begins]

    async def _commit(
        self, connection: Connection, before: _Position, last: CalcWindow, points: Sequence[CalcPoint]
    ) -> None:
        moved = await fetch_one(
            connection,
            "rules.calc/put_position",
            {
                "until": instant_of(last.end),
                "rules_seq": last.period.rules_seq,
                "rules_begin": instant_of(last.period.begins),
                "expected": before.until,
            },
        )
        if moved is None:
            raise Conflict("another worker calculated the same windows")
        await append_records(connection, NewRecords(calculated=[point.as_record() for point in points]))


async def _calculate_window(
    connection: Connection, window: CalcWindow, pending: Sequence[CalcPoint], gaps: GapIndex, counts: _Counts
) -> list[CalcPoint]:
    """The results of a window. `pending` are results that are not stored yet."""
    collected = {rule.name: {name: InputGroups() for name in rule.inputs} for rule in window.rules}
    await _collect(connection, window, collected, counts)
    results = await _read_results(connection, window)
    reads = window.period.rules.reads
    results.add_results(point for point in pending if reads(point.key))
    points: list[CalcPoint] = []
    for rule in window.rules:
        results.collect(rule, window.end, collected[rule.name])
        concluded = rule.conclude(window.end, collected.pop(rule.name), gaps)
        results.add_results(point for point in concluded.points if reads(point.key))
        points += concluded.points
        counts.results[rule.name] += len(concluded.points)
        counts.failed[rule.name] += concluded.failed
        counts.dropped[rule.name] += concluded.dropped
    return points


async def _collect(
    connection: Connection,
    window: CalcWindow,
    collected: dict[str, dict[str, InputGroups]],
    counts: _Counts,
) -> None:
    """Read the datapoints of producers, each range once for all rules."""
    by_range: dict[InputRange, list[CompiledInput]] = {}
    for rule in window.rules:
        for given in rule.inputs.values():
            if not given.is_calculated:
                by_range.setdefault(given.range, []).append(given)
    for bounds, inputs in by_range.items():
        wanted = {id(given) for given in inputs}
        async for owner, key, found, late in read_points(connection, inputs, bounds, window.end):
            for rule, given in window.period.rules.readers(key):
                if id(given) in wanted:
                    counts.late[rule.name] += late
                    add_series(collected[rule.name][given.name], given, owner, key, found, window.end)


async def _read_results(connection: Connection, window: CalcWindow) -> CalcMemory:
    """The stored results that the rules of a window read."""
    inputs = [given for rule in window.rules for given in rule.inputs.values() if given.is_calculated]
    memory = CalcMemory()
    if inputs:
        begin = min(given.range.bounds(window.end)[0] for given in inputs)
        await read_results(connection, {given.key for given in inputs}, (begin, window.end), memory)
    return memory


async def _read_gaps(connection: Connection, chunk: Sequence[CalcWindow]) -> GapIndex:
    """The gaps that can reach into a range of these windows."""
    begin = min(window.end - window.period.rules.span for window in chunk)
    rows = await fetch_all(connection, "rules.calc/list_gaps", {"after": instant_of(begin)})
    return GapIndex(ArrivalGap(*row) for row in rows)

"""Calculates the results of calc_rules again, from the datapoints of a recording.

Guarantee: the windows, the documents of each window and the values are those of the live evaluator
(`rules.calc.window`, `rules.calc.rule`). Results that were recorded are compared with the replay, if
the recording holds everything that their windows read. With candidate rules the results replace the
recorded ones: each arrives when the same result was recorded to have arrived, or else at the end of
its window.

A window has series of all owners, and a recording is read owner by owner. So this is a pass of its
own before the replay of the owners, and only if there are calc_rules. Memory holds the datapoints of
one owner that an input reads, and one number per series, input and window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rules.calc.gaps import GapIndex
from rules.calc.memory import CalcMemory, InputGroups
from rules.calc.rule import CalcPoint
from rules.calc.rule_set import reading_spans
from rules.calc.window import CalcPeriod, CalcWindow, windows
from rules.engine import Arrival
from rules.replay.backtest.recording.model import (
    Arrivals,
    CalculatedChange,
    CalculatedChanges,
    OwnerHeader,
    Recording,
    RecordingHeader,
)
from rules.replay.backtest.report.mismatches import Mismatch
from schemas.wire.calculated import CALC_PREFIX
from tocsin.core.instant import instant_of, microseconds_of

_AFTER_ALL = 2**62
"""The sequence of a result without a recorded arrival: at one instant it comes last."""
_InputKey = tuple[int, str, str]
"""The end of a window, a rule and an input."""


@dataclass
class CalcReplay:
    points: list[CalcPoint] = field(default_factory=list)
    mismatches: list[Mismatch] = field(default_factory=list)
    owners: frozenset[str] = frozenset()
    """All owners of the recording."""
    compared: int = 0
    """Recorded results in the window of the backtest."""

    def by_owner(self) -> dict[str, list[CalcPoint]]:
        points: dict[str, list[CalcPoint]] = {}
        for point in self.points:
            points.setdefault(point.owner, []).append(point)
        return points


async def replay_results(
    source: Recording, header: RecordingHeader, periods: Sequence[CalcPeriod], is_historical: bool
) -> CalcReplay:
    if not any(period.rules.rules for period in periods):
        return CalcReplay()
    replay = _ResultReplay(header, periods, is_historical)
    async for _, item in source.items(0, 1):
        if isinstance(item, OwnerHeader):
            replay.end_owner()
            replay.owners.add(item.owner)
        elif isinstance(item, Arrivals):
            replay.memory.arrive(row for row in item.rows if replay.reads(row.key))
        elif isinstance(item, CalculatedChanges):
            replay.recorded += (change for change in item.rows if change.kind == "calc")
    replay.end_owner()
    return replay.finish()


class _ResultReplay:
    def __init__(self, header: RecordingHeader, periods: Sequence[CalcPeriod], is_historical: bool) -> None:
        self.memory = CalcMemory()
        self.owners: set[str] = set()
        self.recorded: list[CalculatedChange] = []
        self._header = header
        self._periods = periods
        self._is_historical = is_historical
        self._values: dict[_InputKey, InputGroups] = {}

    def reads(self, key: str) -> bool:
        return any(period.rules.reads(key) for period in self._periods)

    def _windows(self) -> Iterator[CalcWindow]:
        """The windows that are decided: all partitions were read beyond their ends."""
        header = self._header
        if self._is_historical:
            until = microseconds_of(header.horizon("calc", 0)) + 1
        else:
            ends = [header.horizon("data", one.partition) for one in header.horizons if one.lane == "data"]
            until = microseconds_of(min(ends, default=header.until))
        yield from windows(self._periods, microseconds_of(header.start), until)

    def end_owner(self) -> None:
        """Keep one number per window of each series of the owner, and drop its datapoints."""
        if not self.memory.series:
            return
        for window in self._windows():
            for rule in window.rules:
                inputs = {name: InputGroups() for name in rule.inputs}
                self.memory.collect(rule, window.end, inputs)
                for name, groups in inputs.items():
                    self._keep((window.end, rule.name, name), groups)
        self.memory = CalcMemory()

    def _keep(self, key: _InputKey, groups: InputGroups) -> None:
        if groups:
            kept = self._values.setdefault(key, InputGroups())
            for group, series in groups.items():
                kept.setdefault(group, []).extend(series)

    def finish(self) -> CalcReplay:
        gaps = GapIndex(gap for of_partition in self._header.gaps.values() for gap in of_partition)
        results, points = CalcMemory(), list[CalcPoint]()
        for window in self._windows():
            for rule in window.rules:
                inputs = {
                    name: self._values.pop((window.end, rule.name, name), InputGroups())
                    for name in rule.inputs
                }
                results.collect(rule, window.end, inputs)
                concluded = rule.conclude(window.end, inputs, gaps).points
                # Rules of a later period may read them as well.
                results.add_results(point for point in concluded if self.reads(point.key))
                points += concluded
        replay = CalcReplay(points, owners=frozenset(self.owners))
        if self._is_historical:
            self._compare(replay)
        return replay

    def _compare(self, replay: CalcReplay) -> None:
        then = {(row.owner, row.key, microseconds_of(row.at)): row.value for row in self.recorded}
        now = {(point.owner, point.key, point.end): point.value for point in replay.points}
        until = microseconds_of(self._header.horizon("calc", 0))
        for owner, key, end in sorted({*then, *now}):
            if not self._is_compared(key, end, until):
                continue
            was, is_ = then.get((owner, key, end)), now.get((owner, key, end))
            replay.compared += was is not None
            if was != is_:
                replay.mismatches.append(_mismatch(owner, key, end, was, is_))

    def _is_compared(self, key: str, end: int, until: int) -> bool:
        """Whether the recording holds all that the window of a result read."""
        header = self._header
        if not microseconds_of(header.since) <= end <= until:
            return False
        if header.is_whole:
            return True
        rule = key.removeprefix(CALC_PREFIX).partition("{")[0]
        spans = (self._spans(period).get(rule, 0) for period in self._periods)
        return end - max(spans, default=0) >= microseconds_of(header.start)

    @staticmethod
    def _spans(period: CalcPeriod) -> Mapping[str, int]:
        return reading_spans({rule.name: rule.document for rule in period.rules.rules})


def with_replayed_results(points: Iterable[CalcPoint], recorded: Sequence[Arrival]) -> list[Arrival]:
    """The arrivals of an owner, with the recorded results replaced by the replayed ones."""
    was = {
        (row.key, microseconds_of(row.ts), row.value): row
        for row in recorded
        if row.key.startswith(CALC_PREFIX)
    }
    others = [row for row in recorded if not row.key.startswith(CALC_PREFIX)]
    replayed = [was.get((point.key, point.end, point.value)) or _arrival(point) for point in points]
    return sorted([*others, *replayed], key=lambda row: (row.at, row.seq))


def _arrival(point: CalcPoint) -> Arrival:
    at = instant_of(point.end)
    return Arrival(at, _AFTER_ALL, point.owner, point.key, point.value, at, point.labels)


def _mismatch(owner: str, key: str, end: int, was: object, is_: object) -> Mismatch:
    recorded = "nothing" if was is None else f"{was!r}"
    replayed = "nothing" if is_ is None else f"{is_!r}"
    cause = "the recorded datapoints and the documents of the time give another value at this instant"
    return Mismatch(owner, instant_of(end), key, recorded, replayed, cause)

"""Datapoints of series in memory, and the values of windows over them: the shell of replays.

Guarantee: a window over this memory has the vectors that the live evaluator reads from the database
(`rules.calc.points`): datapoints by their arrival, results of calc_rules by the end of their window,
both in the order of `ts`.

Pure: no I/O.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rules.calc.functions import SeriesValue, Vector, value_of_series
from rules.calc.gaps import GapIndex
from rules.calc.rule import CalcPoint, CalcRule, CompiledInput, Conclusion, Group, InputRange
from rules.calc.rule_set import CalcRuleSet
from rules.engine import Arrival
from schemas.wire.calculated import CALC_PREFIX
from tocsin.core.instant import microseconds_of

InputGroups = dict[Group, list[SeriesValue]]
"""The values of the series of an input, by group."""


class RangeOfSeries(NamedTuple):
    vector: Vector
    labels: dict[str, str]
    """Those of the newest datapoint of the range."""


class SeriesBuffer:
    def __init__(self) -> None:
        self._at: list[int] = []
        self._ts: list[int] = []
        self._values: list[float] = []
        self._labels: list[dict[str, str]] = []

    def add(self, at: int, ts: int, value: float, labels: dict[str, str]) -> None:
        """Datapoints are added in the order of their arrival."""
        self._at.append(at)
        self._ts.append(ts)
        self._values.append(value)
        self._labels.append(labels)

    def forget(self, until: int) -> None:
        """Drop the datapoints that arrived up to an instant."""
        count = bisect_right(self._at, until)
        for column in (self._at, self._ts, self._values, self._labels):
            del column[:count]

    def range(self, bounds: InputRange, end: int) -> RangeOfSeries | None:
        first, last = (bisect_right(self._at, bound) for bound in bounds.bounds(end))
        indices = [
            index for index in range(first, last) if self._at[index] - self._ts[index] <= bounds.late_after
        ]
        if not indices:
            return None
        last_arrival = self._at[indices[-1]]
        indices.sort(key=self._ts.__getitem__)
        ts = [self._ts[index] for index in indices]
        values = [self._values[index] for index in indices]
        return RangeOfSeries(Vector(ts, values, last_arrival), self._labels[indices[-1]])


class CalcMemory:
    def __init__(self) -> None:
        self.series: dict[tuple[str, str], SeriesBuffer] = {}

    def arrive(self, arrivals: Iterable[Arrival]) -> None:
        """Add datapoints of producers. Results are added by `add_results`, by the end of their window."""
        for arrival in arrivals:
            value = number_of(arrival.value)
            if value is not None and not arrival.key.startswith(CALC_PREFIX):
                at, ts = microseconds_of(arrival.at), microseconds_of(arrival.ts)
                self.buffer(arrival.owner, arrival.key).add(at, ts, value, arrival.labels)

    def add_results(self, points: Iterable[CalcPoint]) -> None:
        for point in points:
            self.buffer(point.owner, point.key).add(point.end, point.end, float(point.value), point.labels)

    def collect(self, rule: CalcRule, end: int, into: Mapping[str, InputGroups]) -> None:
        """Add the values of the series of each input of a rule to their groups."""
        for (owner, key), buffer in self.series.items():
            for name, given in rule.inputs.items():
                if given.reads(key):
                    add_series(into[name], given, owner, key, buffer.range(given.range, end), end)

    def calculate(
        self, rules: CalcRuleSet, due: Sequence[CalcRule], end: int, gaps: GapIndex
    ) -> Iterator[tuple[CalcRule, Conclusion]]:
        """The results of the rules that are due, each of which later ones may read."""
        for rule in due:
            inputs = {name: InputGroups() for name in rule.inputs}
            self.collect(rule, end, inputs)
            concluded = rule.conclude(end, inputs, gaps)
            self.add_results(point for point in concluded.points if rules.reads(point.key))
            yield rule, concluded

    def forget(self, until: int) -> None:
        for buffer in self.series.values():
            buffer.forget(until)

    def buffer(self, owner: str, key: str) -> SeriesBuffer:
        return self.series.setdefault((owner, key), SeriesBuffer())


def add_series(
    groups: InputGroups,
    given: CompiledInput,
    owner: str,
    key: str,
    found: RangeOfSeries | None,
    end: int,
) -> None:
    """Add the value of one series to its group, if it has one."""
    if found is None:
        return
    group = given.group_of(owner, key, found.labels)
    if group is None:
        return
    value = value_of_series(given.each, found.vector, end - given.range.offset)
    if value is not None:
        bucket = given.bucket_of(key, found.labels)
        groups.setdefault(group, []).append(SeriesValue(value, bucket))


def number_of(value: object) -> float | None:
    """A value as a number; None for a text. true is 1."""
    return float(value) if isinstance(value, int | float) else None

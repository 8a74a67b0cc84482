"""The functions of calc_rules: over the datapoints of a series, and over the series of a group.

Guarantee: a result depends on its numbers alone, not on their order in a group: sums are exact until
they are rounded once (`math.fsum`). None means that there is no value, such as the rate of a single
datapoint. A result that is not finite is None.

Why not in SQL: rule tests and backtests must give the same bits, and have no database.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import fsum, inf, isfinite, sqrt
from typing import NamedTuple

from schemas.values.calc_function import CalcFunction
from tocsin.core.instant import MICROSECOND

_SECOND_US = 1_000_000


class Vector(NamedTuple):
    """The datapoints of one series in one range, in the order of `ts`. Never empty."""

    ts: Sequence[int]
    """Microseconds since 1970."""
    values: Sequence[float]
    last_arrival: int
    """The newest arrival, in microseconds since 1970."""


class SeriesValue(NamedTuple):
    value: float
    bucket: float | None = None
    """The upper bound, of a series that is a bucket of a histogram."""


def value_of_series(function: CalcFunction, vector: Vector, end: int) -> float | None:
    """The value of a series in a range that ends at `end`."""
    try:
        value = _OF_SERIES[function.name](vector, end, function)
    except OverflowError:
        return None
    return value if value is not None and isfinite(value) else None


def value_of_group(function: CalcFunction, series: Sequence[SeriesValue]) -> float | None:
    """The value of a group with at least one series."""
    if function.name == "histogram_quantile":
        return _histogram_quantile(function.fraction, series)
    values = [value for value, _ in series]
    try:
        value = _OF_GROUP[function.name](values, function.fraction)
    except OverflowError:
        return None
    return value if isfinite(value) else None


def _last(vector: Vector, end: int, function: CalcFunction) -> float:
    return vector.values[-1]


def _increase(vector: Vector, end: int, function: CalcFunction) -> float | None:
    """The sum of the rises. A fall is a restart at 0, as of a counter in Prometheus."""
    if len(vector.values) < 2:
        return None
    return fsum(later - earlier if later >= earlier else later for earlier, later in pairwise(vector.values))


def _rate(vector: Vector, end: int, function: CalcFunction) -> float | None:
    lasts = vector.ts[-1] - vector.ts[0]
    increase = _increase(vector, end, function)
    return None if increase is None or lasts <= 0 else increase / (lasts / _SECOND_US)


def _delta(vector: Vector, end: int, function: CalcFunction) -> float | None:
    return None if len(vector.values) < 2 else vector.values[-1] - vector.values[0]


def _changes(vector: Vector, end: int, function: CalcFunction) -> float:
    return float(sum(later != earlier for earlier, later in pairwise(vector.values)))


def _absent_for(vector: Vector, end: int, function: CalcFunction) -> float:
    return (end - vector.last_arrival) / _SECOND_US


def _predict_linear(vector: Vector, end: int, function: CalcFunction) -> float | None:
    """The least-squares line through the datapoints, at `duration` after the end of the range."""
    count = len(vector.values)
    if count < 2 or vector.ts[0] == vector.ts[-1]:
        return None
    times = [(ts - end) / _SECOND_US for ts in vector.ts]
    mean_time, mean = fsum(times) / count, fsum(vector.values) / count
    spread = fsum((time - mean_time) ** 2 for time in times)
    slope = (
        fsum((time - mean_time) * (value - mean) for time, value in zip(times, vector.values, strict=True))
        / spread
    )
    return mean + slope * (function.duration / MICROSECOND / _SECOND_US - mean_time)


def _avg(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _stddev(values: Sequence[float]) -> float:
    """Of the whole population, as in Prometheus."""
    mean = _avg(values)
    return sqrt(fsum((value - mean) ** 2 for value in values) / len(values))


def _quantile(values: Sequence[float], fraction: float) -> float:
    """Linear between the two nearest values, as in Prometheus."""
    ordered = sorted(values)
    rank = fraction * (len(ordered) - 1)
    lower = int(rank)
    upper = min(lower + 1, len(ordered) - 1)
    weight = rank - lower
    return ordered[lower] * (1 - weight) + ordered[upper] * weight


def _histogram_quantile(fraction: float, series: Sequence[SeriesValue]) -> float | None:
    """As in Prometheus: linear inside a bucket, and the highest finite bound above all of them."""
    by_bound: dict[float, list[float]] = {}
    for value, bucket in series:
        if bucket is not None:
            by_bound.setdefault(bucket, []).append(value)
    bounds = sorted(by_bound)
    if len(bounds) < 2 or bounds[-1] != inf:
        return None
    counts: list[float] = []
    for bound in bounds:
        counts.append(max(fsum(by_bound[bound]), counts[-1] if counts else 0.0))
    rank = fraction * counts[-1]
    if counts[-1] <= 0:
        return None
    index = next(index for index, count in enumerate(counts) if count >= rank)
    if index == len(bounds) - 1:
        return bounds[-2]
    if index == 0 and bounds[0] <= 0:
        return bounds[0]
    below, start = (counts[index - 1], bounds[index - 1]) if index else (0.0, 0.0)
    inside = counts[index] - below
    return start + (bounds[index] - start) * ((rank - below) / inside) if inside > 0 else start


_SeriesFunction = Callable[[Vector, int, CalcFunction], float | None]
_OF_SERIES: Mapping[str, _SeriesFunction] = {
    "last": _last,
    "avg": lambda vector, end, function: _avg(vector.values),
    "min": lambda vector, end, function: min(vector.values),
    "max": lambda vector, end, function: max(vector.values),
    "sum": lambda vector, end, function: fsum(vector.values),
    "count": lambda vector, end, function: float(len(vector.values)),
    "stddev": lambda vector, end, function: _stddev(vector.values),
    "quantile": lambda vector, end, function: _quantile(vector.values, function.fraction),
    "rate": _rate,
    "increase": _increase,
    "delta": _delta,
    "changes": _changes,
    "absent_for": _absent_for,
    "predict_linear": _predict_linear,
}
_OF_GROUP: Mapping[str, Callable[[Sequence[float], float], float]] = {
    "sum": lambda values, fraction: fsum(values),
    "avg": lambda values, fraction: _avg(values),
    "min": lambda values, fraction: min(values),
    "max": lambda values, fraction: max(values),
    "count": lambda values, fraction: float(len(values)),
    "stddev": lambda values, fraction: _stddev(values),
    "quantile": _quantile,
}

"""Aggregates the datapoints of a time window, with bounded memory.

Guarantee: a window of `over` is stored as at most `BUCKETS` buckets of `over / BUCKETS`, aligned to
the epoch, at any rate of arrivals. A value counts from its arrival until its bucket is `over` old:
the window reaches back between 59/60 of `over` and `over`. The result depends on arrivals alone.

`rate` is (newest - oldest) / seconds between their arrivals; None while there are no two instants.
A text can only be counted; other reductions ignore it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from math import isfinite
from operator import itemgetter
from typing import Literal

from rules.engine.inputs import Value
from tocsin.core.instant import EPOCH, MICROSECOND, microseconds_of

BUCKETS = 60

Reduce = Literal["avg", "min", "max", "sum", "count", "rate"]
Bucket = tuple[float, ...]
"""The number of the bucket since the epoch, then what the reduction needs: a sum and a count; the
smallest value; the largest value; or the first value and its instant in seconds."""
Buckets = tuple[Bucket, ...]

_amount: Callable[[Bucket], float] = itemgetter(1)
_count: Callable[[Bucket], float] = itemgetter(2)
_REDUCERS: dict[str, Callable[[Iterable[float]], float]] = {
    "min": min,
    "max": max,
    "sum": sum,
    "count": sum,
}


class Window:
    """The `window` of a rule: `over` and `reduce`."""

    __slots__ = ("_width", "over", "reduce")

    def __init__(self, over: timedelta, reduce: Reduce) -> None:
        self.over = over
        self.reduce = reduce
        self._width = max(over // MICROSECOND // BUCKETS, 1)

    def add(self, buckets: Buckets, value: Value, at: datetime) -> Buckets:
        if isinstance(value, str):
            if self.reduce != "count":
                return buckets
            value = 0
        number = microseconds_of(at) // self._width
        if buckets and buckets[-1][0] >= number:
            return (*buckets[:-1], _merged(self.reduce, buckets[-1], value))
        oldest = number - BUCKETS
        first = 0
        while first < len(buckets) and buckets[first][0] <= oldest:
            first += 1
        return (*buckets[first:], _bucket(self.reduce, number, value, at))

    def amount(self, buckets: Buckets, newest: Value, newest_at: datetime, at: datetime) -> float | None:
        """The result of the window at an instant; None if it has none."""
        oldest = microseconds_of(at) // self._width - BUCKETS
        if buckets and buckets[0][0] <= oldest:
            buckets = tuple(bucket for bucket in buckets if bucket[0] > oldest)
        if not buckets:
            return 0.0 if self.reduce == "count" else None
        if self.reduce == "rate":
            elapsed_s = _seconds(newest_at) - buckets[0][2]
            if isinstance(newest, str) or elapsed_s <= 0:
                return None
            amount = (newest - buckets[0][1]) / elapsed_s
        elif self.reduce == "avg":
            amount = sum(map(_amount, buckets)) / sum(map(_count, buckets))
        else:
            amount = _REDUCERS[self.reduce](map(_amount, buckets))
        return amount if isfinite(amount) else None


def _bucket(reduce: Reduce, number: int, value: float, at: datetime) -> Bucket:
    if reduce == "count":
        return (number, 1.0)
    if reduce == "avg":
        return (number, float(value), 1)
    if reduce == "rate":
        return (number, float(value), _seconds(at))
    return (number, float(value))


def _merged(reduce: Reduce, bucket: Bucket, value: float) -> Bucket:
    if reduce == "count":
        return (bucket[0], bucket[1] + 1)
    if reduce == "avg":
        return (bucket[0], bucket[1] + value, bucket[2] + 1)
    if reduce == "sum":
        return (bucket[0], bucket[1] + value)
    if reduce == "min":
        return bucket if bucket[1] <= value else (bucket[0], float(value))
    if reduce == "max":
        return bucket if bucket[1] >= value else (bucket[0], float(value))
    return bucket


def _seconds(at: datetime) -> float:
    return (at - EPOCH).total_seconds()

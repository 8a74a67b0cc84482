"""Aggregates the datapoints of a time window, with bounded memory.

Guarantee: a window of `over` is stored as at most `BUCKETS` buckets of `over / BUCKETS`, aligned to
the epoch, at any rate of arrivals. A value counts from its arrival until its bucket is `over` old:
the window reaches back between 59/60 of `over` and `over`. The result depends on arrivals alone.

`rate` is (newest - oldest) / seconds between the times that the producer gave; None while there are
no two of them. A text can only be counted; other reductions ignore it. A window with fewer than
`min_count` datapoints has no result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from math import isfinite
from operator import itemgetter
from typing import Literal

from rules.engine.inputs import Value
from tocsin.core.instant import EPOCH, MICROSECOND, instant_of, microseconds_of

BUCKETS = 60

Reduce = Literal["avg", "min", "max", "sum", "count", "rate"]
Bucket = tuple[float, ...]
"""The number of the bucket since the epoch, then what the reduction needs (a sum, the smallest, the
largest or the first value), the number of values, and for `rate` the time of the first value in
seconds."""
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
    """The `window` of a rule: `over`, `reduce` and `min_count`."""

    __slots__ = ("_width", "min_count", "over", "reduce")

    def __init__(self, over: timedelta, reduce: Reduce, min_count: int = 1) -> None:
        self.over = over
        self.reduce = reduce
        self.min_count = min_count
        self._width = max(over // MICROSECOND // BUCKETS, 1)

    def add(self, buckets: Buckets, value: Value, at: datetime, ts: datetime | None = None) -> Buckets:
        """The buckets with a value that arrived at `at`; `ts` is the time of the producer."""
        if isinstance(value, str):
            if self.reduce != "count":
                return buckets
            value = 0
        number = microseconds_of(at) // self._width
        if buckets and buckets[-1][0] >= number:
            return (*buckets[:-1], _merged(self.reduce, buckets[-1], value))
        return (*self.trimmed(buckets, at), _bucket(self.reduce, number, value, ts or at))

    def trimmed(self, buckets: Buckets, at: datetime) -> Buckets:
        """The buckets that count at an instant."""
        oldest = microseconds_of(at) // self._width - BUCKETS
        if not buckets or buckets[0][0] > oldest:
            return buckets
        first = 1
        while first < len(buckets) and buckets[first][0] <= oldest:
            first += 1
        return buckets[first:]

    def expiry(self, buckets: Buckets) -> datetime:
        """The instant at which the oldest bucket leaves the window. There is at least one."""
        return instant_of((int(buckets[0][0]) + BUCKETS) * self._width)

    def amount(
        self, buckets: Buckets, newest: Value, newest_ts: datetime, at: datetime | None = None
    ) -> float | None:
        """The result of the window at an instant; None if it has none. Without `at`, all buckets count."""
        if at is not None:
            buckets = self.trimmed(buckets, at)
        if not buckets:
            return 0.0 if self.reduce == "count" and self.min_count == 1 else None
        if self.min_count > 1 and sum(map(_count, buckets)) < self.min_count:
            return None
        if self.reduce == "rate":
            elapsed_s = _seconds(newest_ts) - buckets[0][3]
            if isinstance(newest, str) or elapsed_s <= 0:
                return None
            amount = (newest - buckets[0][1]) / elapsed_s
        elif self.reduce == "avg":
            amount = sum([bucket[1] for bucket in buckets]) / sum([bucket[2] for bucket in buckets])
        else:
            amount = _REDUCERS[self.reduce](map(_amount, buckets))
        return amount if isfinite(amount) else None


def _bucket(reduce: Reduce, number: int, value: float, ts: datetime) -> Bucket:
    if reduce == "count":
        return (number, 1.0, 1)
    if reduce == "rate":
        return (number, float(value), 1, _seconds(ts))
    return (number, float(value), 1)


def _merged(reduce: Reduce, bucket: Bucket, value: float) -> Bucket:
    number, amount, count, *rest = bucket
    if reduce == "count":
        amount += 1
    elif reduce in ("avg", "sum"):
        amount += value
    elif reduce == "min":
        amount = min(amount, float(value))
    elif reduce == "max":
        amount = max(amount, float(value))
    return (number, amount, count + 1, *rest)


def _seconds(at: datetime) -> float:
    return (at - EPOCH).total_seconds()

"""Fixed intervals on elapsed time: `every: 10s`.

Guarantee: the occurrences are the anchor plus whole multiples of the interval, the anchor first.
Counting them and finding the latest are arithmetic: a year of a one-second schedule costs the same
as a minute.

Why elapsed time: "every 6 hours" across a change of the clocks is still six hours. For 06:00 and
12:00 on the wall, write a cron expression.

On failure: an interval shorter than 100 ms is `InvalidInput`; beyond the end of the calendar,
`OverflowError`, which `Recurrence` turns into "no more fires".
"""

from datetime import datetime, timedelta

from schemas.values.duration import parse_duration
from timers.recurrence.occurrence import Occurrence
from tocsin.core.errors import InvalidInput

SHORTEST = timedelta(milliseconds=100)


class Every:
    __slots__ = ("_anchor", "_interval")

    def __init__(self, interval: timedelta, anchor: datetime) -> None:
        self._interval = interval
        self._anchor = anchor

    def after(self, instant: datetime) -> Occurrence | None:
        turn = max((instant - self._anchor) // self._interval + 1, 0)
        return Occurrence(self._anchor + turn * self._interval, None, 0, None)

    def latest(self, after: datetime, until: datetime) -> Occurrence | None:
        turn = (until - self._anchor) // self._interval
        if turn < 0:
            return None
        at = self._anchor + turn * self._interval
        return Occurrence(at, None, 0, None) if at > after else None

    def count(self, after: datetime, until: datetime) -> int:
        first = max((after - self._anchor) // self._interval + 1, 0)
        return max((until - self._anchor) // self._interval - first + 1, 0)

    def minimum_distance(self) -> timedelta:
        return self._interval


def parse_interval(text: object) -> timedelta:
    interval = parse_duration(text)
    if interval < SHORTEST:
        raise InvalidInput(f"every {text!r} is too short: the shortest interval is 100ms")
    return interval

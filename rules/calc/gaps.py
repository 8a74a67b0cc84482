"""Finds whether an arrival gap of any partition reaches into a range.

Guarantee: `overlap` is true if nothing could arrive in a part of the range, in at least one
partition of the data stream. Pure: no I/O.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from rules.lanes.arrival_gap import ArrivalGap
from tocsin.core.instant import microseconds_of


class GapIndex:
    def __init__(self, gaps: Iterable[ArrivalGap] = ()) -> None:
        ordered = sorted((microseconds_of(gap.began_at), microseconds_of(gap.ended_at)) for gap in gaps)
        self._begins = [began for began, _ in ordered]
        self._latest_ends = list(accumulate((ended for _, ended in ordered), max))

    def overlap(self, begin: int, end: int) -> bool:
        """Whether a gap began before `end` and ended after `begin`."""
        count = bisect_left(self._begins, end)
        return count > 0 and self._latest_ends[count - 1] > begin


NO_GAPS = GapIndex()

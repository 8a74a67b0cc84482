"""A queue of calls that are due at instants of virtual time.

Guarantee: calls run in the order of their instants. At one instant ends of snoozes and of silences
come first, then staleness, inputs, sustains over series, effects of events, steps of actions,
sustains over events, the health of systems, and the windows of calc_rules last. Within a rank, calls
run in the order in which they were added.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import datetime

SNOOZE, SILENCE, STALENESS, INPUT, SUSTAIN, EVENT, STEP, EVENT_SUSTAIN, HEALTH, CALC = range(10)

Call = Callable[[], None]


class Scheduler:
    def __init__(self) -> None:
        self._due: list[tuple[datetime, int, int, Call]] = []
        self._numbers = itertools.count()

    def add(self, at: datetime, rank: int, call: Call) -> None:
        heapq.heappush(self._due, (at, rank, next(self._numbers), call))

    def next(self, until: datetime) -> tuple[datetime, Call] | None:
        """Remove and return the first call that is due at or before an instant."""
        if not self._due or self._due[0][0] > until:
            return None
        at, _, _, call = heapq.heappop(self._due)
        return at, call

"""What is due when: instants in order, and at one instant in the order of the house.

Guarantee: at one instant sustains come before ends of snoozes, those before silences, silences before inputs, inputs
before what follows from events, and the health of systems is concluded last; within a rank, first come first served.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from datetime import datetime

SUSTAIN, SNOOZE, SILENCE, INPUT, EVENT, STEP, HEALTH = range(7)


class Agenda:
    def __init__(self) -> None:
        self._due: list[tuple[datetime, int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def add(self, at: datetime, rank: int, what: Callable[[], None]) -> None:
        heapq.heappush(self._due, (at, rank, next(self._numbers), what))

    def next(self, until: datetime) -> tuple[datetime, Callable[[], None]] | None:
        """The first that is due at or before an instant; it is taken off."""
        if not self._due or self._due[0][0] > until:
            return None
        at, _, _, what = heapq.heappop(self._due)
        return at, what

"""Counts the pings of each caller to each heartbeat. A client in a loop is refused, and costs nothing more."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable

MAX_PINGS = 300
WINDOW_S = 60.0
_MAX_COUNTED = 10_000


class PingRates:
    def __init__(self) -> None:
        self._pings: OrderedDict[Hashable, deque[float]] = OrderedDict()

    def allows(self, key: Hashable, now_s: float) -> bool:
        """Count a ping. False if `MAX_PINGS` were counted within the last `WINDOW_S`."""
        pings = self._pings.setdefault(key, deque())
        self._pings.move_to_end(key)
        while len(self._pings) > _MAX_COUNTED:
            self._pings.popitem(last=False)
        while pings and pings[0] <= now_s - WINDOW_S:
            pings.popleft()
        if len(pings) >= MAX_PINGS:
            return False
        pings.append(now_s)
        return True

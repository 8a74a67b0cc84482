"""Whether the data stream stores messages late, as the canaries of a worker show it. Pure.

A stream is slow in a partition if its canaries come, and one of them was not acknowledged in time a
short while ago. If most partitions are slow, all are: the disk of a stream is shared. If one is slow,
that says nothing about the others.

The state outlives a restart of the lanes: what arrived in the slow time may be read after it.
"""

from __future__ import annotations

import math

from rules.lanes.partition import PartitionKey

# For so long after a late canary, messages are read that were stored late. Longer than the lanes
# need to start again after a request to a slow server has timed out.
_REMEMBERED_S = 10.0
# A worker that reads none of its canaries for so long may lack the right to publish them. Then it
# does not know whether producers can publish, and their series must be able to become stale.
_CANARIES_COME_S = 60.0


class StreamPace:
    def __init__(self) -> None:
        self._late_at_s: dict[PartitionKey, float] = {}
        self._in_time_at_s: dict[PartitionKey, float] = {}
        self._read_at_s = -math.inf

    def canary_late(self, key: PartitionKey, now_s: float) -> None:
        """Note that a canary was not acknowledged in time."""
        self._late_at_s[key] = now_s

    def canary_in_time(self, key: PartitionKey, now_s: float) -> None:
        """Note that a canary was acknowledged in time."""
        self._in_time_at_s[key] = now_s

    def canary_read(self, now_s: float) -> None:
        """Note that a canary of any partition was read."""
        self._read_at_s = now_s

    def is_slow(self, key: PartitionKey, now_s: float) -> bool:
        if now_s - self._read_at_s >= _CANARIES_COME_S:
            return False
        late = _recent(self._late_at_s, now_s)
        in_time = _recent(self._in_time_at_s, now_s) - late
        return key in late or len(late) > max(1, len(in_time))


def _recent(noted_at_s: dict[PartitionKey, float], now_s: float) -> set[PartitionKey]:
    return {key for key, at_s in noted_at_s.items() if now_s - at_s < _REMEMBERED_S}

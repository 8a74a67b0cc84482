"""The size of the next batch of a partition, adapted to how long the last ones took.

Guarantee: batches grow while they are cheap and shrink when one takes longer than its slice. The
rules decide how much a datapoint costs, and a worker that is busy for too long would be taken for
dead. A batch that failed is tried again at half its size, and its old size only after many
successful batches: Postgres ends a session whose transaction stays open for too long, and the same
batch would take as long again. So a batch size is kept when the worker restarts.
"""

from __future__ import annotations

from collections import defaultdict

from rules.lanes.partition import PartitionKey

_LEAST_BYTES = 16 * 1024
_FIRST_BYTES = 256 * 1024
_MOST_BYTES = 512 * 1024
# Successful batches until one as large as the one that failed is tried.
_PATIENCE = 100


class BatchSize:
    def __init__(self) -> None:
        self.max_bytes = _FIRST_BYTES
        self._limit_bytes = _MOST_BYTES
        self._succeeded = 0

    def succeeded(self, busy_s: float, slice_s: float) -> None:
        self._succeeded += 1
        if self._succeeded >= _PATIENCE:
            self._limit_bytes, self._succeeded = min(_MOST_BYTES, self._limit_bytes * 2), 0
        if busy_s > slice_s:
            self.max_bytes = max(_LEAST_BYTES, self.max_bytes // 2)
        elif busy_s < slice_s / 4:
            self.max_bytes = min(self._limit_bytes, self.max_bytes * 2)

    def failed(self) -> None:
        self.max_bytes = self._limit_bytes = max(_LEAST_BYTES, self.max_bytes // 2)
        self._succeeded = 0


BatchSizes = defaultdict[PartitionKey, BatchSize]

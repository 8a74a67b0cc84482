"""How much of a partition goes into one batch, by how the last ones went.

Guarantee: batches grow while they are cheap and shrink when one keeps us busy for longer than a slice: rules decide
what a datapoint costs, and a worker that answers nobody would be taken for dead. One that failed is tried again by
half, and its size only after many that went well: Postgres ends a session whose transaction lies open for too long,
and the same batch would take as long again. So a pace outlives the worker's restarts.
"""

from __future__ import annotations

from collections import defaultdict

from rules.lanes.partition import Key

_LEAST_BYTES = 16 * 1024
_FIRST_BYTES = 256 * 1024
_MOST_BYTES = 512 * 1024
# Batches that went well until one as large as the one that failed is tried.
_PATIENCE = 100


class Pace:
    def __init__(self) -> None:
        self.batch_bytes = _FIRST_BYTES
        self._most_bytes = _MOST_BYTES
        self._went_well = 0

    def settled(self, busy_s: float, slice_s: float) -> None:
        self._went_well += 1
        if self._went_well >= _PATIENCE:
            self._most_bytes, self._went_well = min(_MOST_BYTES, self._most_bytes * 2), 0
        if busy_s > slice_s:
            self.batch_bytes = max(_LEAST_BYTES, self.batch_bytes // 2)
        elif busy_s < slice_s / 4:
            self.batch_bytes = min(self._most_bytes, self.batch_bytes * 2)

    def failed(self) -> None:
        self.batch_bytes = self._most_bytes = max(_LEAST_BYTES, self.batch_bytes // 2)
        self._went_well = 0


Paces = defaultdict[Key, Pace]

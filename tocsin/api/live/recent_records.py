"""The newest records of the log in memory, bounded by number and bytes, without a hole."""

from __future__ import annotations

from collections import deque
from itertools import islice

from tocsin.api.live.record import LiveRecord


class RecentRecords:
    """`first` to `last` are the seqs that it holds; it is empty if `first` is `last + 1`.

    A seq whose message is not a record is part of the window and holds None.
    """

    def __init__(self, last: int, max_records: int, max_bytes: int) -> None:
        self.last = last
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._bytes = 0
        self._records: deque[LiveRecord | None] = deque()

    @property
    def first(self) -> int:
        return self.last - len(self._records) + 1

    def append(self, seq: int, record: LiveRecord | None) -> None:
        if seq != self.last + 1:
            raise ValueError(f"record {seq} cannot follow {self.last}")
        self._records.append(record)
        self._bytes += _size(record)
        self.last = seq
        while len(self._records) > self._max_records or (
            self._bytes > self._max_bytes and len(self._records) > 1
        ):
            self._bytes -= _size(self._records.popleft())

    def after(self, seq: int, at_most: int | None = None) -> tuple[int, list[LiveRecord]]:
        """The records after `seq`, which is not before `first - 1`, and the seq that they reach."""
        if seq < self.first - 1:
            raise ValueError(f"record {seq + 1} is no longer in memory, the first is {self.first}")
        count = max(0, self.last - seq)
        # From the newest end: thousands that were read before may lie at the other.
        newest = list(islice(reversed(self._records), count))
        newest.reverse()
        wanted = newest if at_most is None else newest[:at_most]
        return seq + len(wanted), [record for record in wanted if record is not None]

    def restart(self, last: int) -> None:
        """Forget everything: the next record is the one after `last`."""
        self._records.clear()
        self._bytes = 0
        self.last = last


def _size(record: LiveRecord | None) -> int:
    return 0 if record is None else len(record.body)

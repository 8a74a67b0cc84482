"""Moves the stored mark to where NATS has everything acknowledged.

Guarantee: the mark moves only over records that the store has, and over records that are not
selected. An acknowledgement in NATS proves nothing: the database of the service may have lost the
commit since (a failover to an asynchronous standby, a restore from a backup).

Why gaps are compared and not records: the store returns its handled records in order. Only where
two of them are not neighbours is the stream asked for the next selected record. They are neighbours
if their sequences are, or if the deliveries to this process showed it (`DeliveryOrder`). After a
restore the first such request finds a missing record, however many were acknowledged since.

On failure: the errors of NATS and of the store. The mark is where it was, or further by some pages.
"""

from __future__ import annotations

import sys

from nats.aio.msg import Msg
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from tocsin.client._mark_store import Mark, OpenMarkStore
from tocsin.client._start_position import record_id

_PAGE = 1000


class DeliveryOrder:
    """Which selected record follows which, as far as the deliveries to this process show it.

    The first deliveries of records are in the order of the stream, so nothing selected lies between
    two whose numbers follow each other.
    """

    def __init__(self) -> None:
        self._next: dict[int, int] = {}
        self._last = (0, 0)

    def begin(self) -> None:
        """A new consumer counts its deliveries from the beginning."""
        self._last = (0, 0)

    def note(self, message: Msg) -> None:
        if message.metadata.num_delivered == 1:
            seq, number = message.metadata.sequence.stream, message.metadata.sequence.consumer
            if self._last[0] and number == self._last[1] + 1:
                self._next[self._last[0]] = seq
            self._last = (seq, number)

    def follows(self, before: int, seq: int) -> bool:
        return self._next.get(before) == seq

    def forget_before(self, seq: int) -> None:
        self._next = {before: after for before, after in self._next.items() if before >= seq}


class SelectedRecords:
    """The positions of the selected records in the stream."""

    def __init__(self, js: JetStreamContext, stream: str, subjects: list[str], order: DeliveryOrder) -> None:
        self._js = js
        self._stream = stream
        self._next = dict.fromkeys(subjects, 0)
        self._order = order

    async def has_between(self, before: int, seq: int) -> bool:
        """Whether a selected record lies between the two."""
        if seq <= before + 1 or self._order.follows(before, seq):
            return False
        return await self.next_after(before) < seq

    async def next_after(self, seq: int) -> int:
        """The first selected record after `seq`; a huge number if the stream has none.

        `seq` may not fall from one call to the next: the answer for each subject is kept until it
        is passed.
        """
        for subject, upcoming in self._next.items():
            if upcoming <= seq:
                self._next[subject] = await self._read_next(subject, seq + 1)
        return min(self._next.values())

    async def mark_at(self, seq: int) -> Mark:
        return Mark(seq, await record_id(self._js, self._stream, seq))

    async def _read_next(self, subject: str, seq: int) -> int:
        try:
            message = await self._js.get_msg(self._stream, seq=seq, subject=subject, next=True)
        except NotFoundError:
            return sys.maxsize
        return int(message.seq or sys.maxsize)


async def advance_mark(selected: SelectedRecords, acknowledged: int, store: OpenMarkStore) -> int | None:
    """Move the mark up to `acknowledged`; returns the first record before it that is not handled."""
    mark = await store.mark()
    position = acknowledged if mark is None else mark.seq
    while position < acknowledged:
        handled = await store.handled_beyond(position, acknowledged, _PAGE)
        reached = await _without_gap(selected, position, handled)
        is_end = len(handled) < _PAGE or reached < handled[-1]
        missing = await selected.next_after(reached) if is_end else None
        if missing is not None and missing > acknowledged:
            reached, missing = acknowledged, None
        if reached > position:
            covered = sum(seq <= reached for seq in handled)
            raised = await selected.mark_at(reached)
            if not await store.raise_mark(position, raised, covered):
                return None
        if missing is not None:
            return missing
        position = reached
    return None


async def find_position(selected: SelectedRecords, until: int, store: OpenMarkStore) -> tuple[int, int]:
    """The record up to which all selected ones are handled, and the selected record behind it."""
    mark = await store.mark()
    position = 0 if mark is None else mark.seq
    while True:
        handled = await store.handled_beyond(position, until, _PAGE)
        position = await _without_gap(selected, position, handled)
        if len(handled) < _PAGE or position < handled[-1]:
            return position, await selected.next_after(position)


async def _without_gap(selected: SelectedRecords, position: int, handled: list[int]) -> int:
    """The last of the handled records before the first gap in them."""
    for seq in handled:
        if await selected.has_between(position, seq):
            break
        position = seq
    return position

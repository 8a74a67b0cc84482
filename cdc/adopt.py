"""Accepting a loss: the log goes on behind a stream that has more than it, or past a hole of its own.

Guarantee: nothing in the stream is overwritten or removed, and no sequence is used twice. What the stream
has and the log lost becomes a recorded gap of the log. What the log has at sequences that the stream gave
to other messages was never published: it is moved behind the stream's end, in its order, with its ids. So a
consumer that remembers its last sequence misses nothing.

Why found again here and not taken from the publisher: between its alarm and a person's decision both sides
may have moved.
On failure nothing has changed: gap, move, audit row and event are one transaction.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from cdc.compare import id_of
from cdc.gaps import record_gap, tell_gap
from cdc.log_reader import LogReader
from cdc.stream import find_stream
from tocsin.core.audit import Actor
from tocsin.core.db import fetch_value, retrying
from tocsin.core.errors import Refused
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import NO_GAP

_LOST = "postgres lost it, or somebody else published it"
_REMOVED = "removed from the log"


@dataclass(frozen=True)
class Loss:
    """Records `first` to `last` that the log has not."""

    first: int
    last: int
    in_stream: bool
    """The stream has messages at these sequences; otherwise tombstones will take them."""
    to_move: int | None = None
    """How many records of the log are at sequences that the stream gave to others; None if it is a mere hole."""

    @property
    def count(self) -> int:
        return self.last - self.first + 1


async def find_loss(js: JetStreamContext, settings: Settings, reader: LogReader) -> Loss | None:
    """What the log lacks, the nearest to its end first. Walks the whole log if it lacks nothing."""
    info = await find_stream(js, settings)
    last = int(info.state.last_seq) if info else 0
    if info is not None:
        # The head after the stream: a racing publisher must not look like a stream that is ahead.
        head = await reader.head()
        agreed = await _agreed_until(js, settings, reader, (int(info.state.first_seq), last, head))
        if agreed < last:
            return Loss(agreed + 1, last, in_stream=True, to_move=max(0, head - agreed))
    horizon = await reader.horizon()
    hole = await reader.first_hole(max(last, horizon - 1)) or await reader.first_hole(horizon - 1)
    return None if hole is None else Loss(*hole, in_stream=hole[0] <= last)


async def adopt(reader: LogReader, settings: Settings, loss: Loss, actor: Actor) -> int:
    """How many records were moved behind the stream's end."""
    try:
        if loss.to_move is not None:
            return await retrying(lambda: _go_on_behind_stream(reader, settings, loss, actor))
        await record_gap(reader.connection, settings, loss.first, loss.last, _REMOVED, actor)
        return 0
    except psycopg.DatabaseError as error:
        if error.sqlstate != NO_GAP:
            raise
        raise Refused(f"{str(error).splitlines()[0]}; nothing was changed", remedy="look again") from None


async def _go_on_behind_stream(reader: LogReader, settings: Settings, loss: Loss, actor: Actor) -> int:
    given = {"agreed_until": loss.first - 1, "stream_last": loss.last, "reason": _LOST, "who": actor.who}
    async with reader.connection.transaction():
        moved = int(await fetch_value(reader.connection, "cdc/adopt", given))
        payload: dict[str, object] = {"from": loss.first, "until": loss.last, "reason": _LOST}
        if moved:
            payload |= {"moved": moved, "moved_by": loss.count}
        await tell_gap(reader.connection, settings, actor, payload)
    return moved


async def _agreed_until(
    js: JetStreamContext, settings: Settings, reader: LogReader, ends: tuple[int, int, int]
) -> int:
    """The last sequence up to which log and stream have the same records: they part once and never meet again.

    Where the log has no record (a gap) or the stream no message any more, nothing contradicts.
    """
    first, last, head = ends
    high = min(last, head)
    low = min(high, max(first, await reader.horizon()) - 1)
    while low < high:
        middle = (low + high + 1) // 2
        record = await reader.last_at_or_before(middle, after=low)
        if record is None or await _is_same(js, settings, *record):
            low = middle
        else:
            high = record[0] - 1
    return low


async def _is_same(js: JetStreamContext, settings: Settings, seq: int, id: object) -> bool:
    try:
        found = await js.get_msg(settings.stream, seq=seq)
    except NotFoundError:
        return True
    return id_of(found.data) == str(id)

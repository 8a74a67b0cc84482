"""Accepts a loss for `tocsin cdc adopt`: the log continues after a longer stream, or past a hole.

Guarantee: nothing in the stream is overwritten or removed, and no sequence is used twice. Records
that the stream has and the log lost become a recorded gap of the log. Records of the log at
sequences that the stream gave to other messages were never published: they are moved after the end
of the stream, in their order, with their ids. So a consumer that remembers its last sequence misses
nothing.

Why the loss is searched again here and not taken from the publisher: between its report and the
operator's decision both sides may have changed.

On failure: nothing has changed, because gap, move, audit row and event are one transaction.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from cdc.compare import id_of
from cdc.gaps import append_gap_event, record_gap
from cdc.log_reader import LogReader
from cdc.stream import find_stream
from tocsin.core.audit import Actor
from tocsin.core.db import fetch_value, retrying
from tocsin.core.errors import Refused
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import NO_GAP

_LOST = "postgres lost it, or another process published it"
_REMOVED = "removed from the log"


@dataclass(frozen=True)
class Loss:
    """Records `first` to `last`, which the log lacks."""

    first: int
    last: int
    in_stream: bool
    """Whether the stream has messages at these sequences; otherwise tombstones will fill them."""
    to_move: int | None = None
    """How many records of the log are at sequences that the stream gave to others; None for a plain
    hole."""

    @property
    def count(self) -> int:
        return self.last - self.first + 1


async def find_loss(js: JetStreamContext, settings: Settings, reader: LogReader) -> Loss | None:
    """Find the loss nearest to the end of the log. Walks the whole log if there is none."""
    info = await find_stream(js, settings)
    last = int(info.state.last_seq) if info else 0
    if info is not None:
        # The head is read after the stream: a concurrent publisher must not look like a stream that
        # is ahead.
        head = await reader.head()
        agreed = await _agreed_until(js, settings, reader, (int(info.state.first_seq), last, head))
        if agreed < last:
            return Loss(agreed + 1, last, in_stream=True, to_move=max(0, head - agreed))
    horizon = await reader.horizon()
    hole = await reader.first_hole(max(last, horizon - 1)) or await reader.first_hole(horizon - 1)
    return None if hole is None else Loss(*hole, in_stream=hole[0] <= last)


async def adopt(reader: LogReader, settings: Settings, loss: Loss, actor: Actor) -> int:
    """Accept the loss. Returns how many records were moved after the end of the stream."""
    try:
        if loss.to_move is not None:
            return await retrying(lambda: _continue_after_stream(reader, settings, loss, actor))
        await record_gap(reader.connection, settings, loss.first, loss.last, _REMOVED, actor)
        return 0
    except psycopg.DatabaseError as error:
        if error.sqlstate != NO_GAP:
            raise
        raise Refused(
            f"{str(error).splitlines()[0]}; nothing was changed", remedy="run the command again"
        ) from None


async def _continue_after_stream(reader: LogReader, settings: Settings, loss: Loss, actor: Actor) -> int:
    loss_bounds = {
        "agreed_until": loss.first - 1,
        "stream_last": loss.last,
        "reason": _LOST,
        "who": actor.who,
    }
    async with reader.connection.transaction():
        moved = int(await fetch_value(reader.connection, "cdc/adopt", loss_bounds))
        payload: dict[str, object] = {"from": loss.first, "until": loss.last, "reason": _LOST}
        if moved:
            payload |= {"moved": moved, "moved_by": loss.count}
        await append_gap_event(reader.connection, settings, actor, payload)
    return moved


async def _agreed_until(
    js: JetStreamContext, settings: Settings, reader: LogReader, ends: tuple[int, int, int]
) -> int:
    """The last sequence up to which log and stream have the same records.

    They diverge once and never agree again. A gap of the log, or a sequence that the stream no
    longer has, counts as agreement.
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
        message = await js.get_msg(settings.stream, seq=seq)
    except NotFoundError:
        return True
    return id_of(message.data) == str(id)

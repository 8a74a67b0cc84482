"""Accepts a loss for `tocsin cdc adopt`: the log continues after a longer stream, or past a hole.

Guarantee: nothing in the stream is overwritten or removed, and no sequence is used twice. Records
that the stream has and the log lost become a recorded gap of the log. Records of the log at
sequences that the stream gave to other messages were never published: they are moved after the end
of the stream, in their order, with their ids. So a consumer that remembers its last sequence misses
nothing. Records on which both agree stay where they are. One call accepts one loss, the one nearest
to the end.

Why the loss is searched again here and not taken from the publisher: between its report and the
operator's decision both sides may have changed.

On failure: nothing has changed, because gap, move, audit row and event are one transaction.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from nats.js.client import JetStreamContext

from cdc.divergence import Bounds, find_divergence
from cdc.gaps import append_gap_event, record_gap
from cdc.log_reader import LogReader
from cdc.report import read_report
from cdc.stream import find_stream
from tocsin.core.audit import Actor
from tocsin.core.db import fetch_one, retrying
from tocsin.core.errors import Refused
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import NO_GAP

_LOST = "postgres lost it, or another process published it"
_REMOVED = "removed from the log"
# Agreeing records at the end after which nothing further down is compared, except what the stream
# check reported.
_AGREEING = 10_000


@dataclass(frozen=True)
class Loss:
    """Sequences `first` to `last`, at which the log lacks records or has others than the stream."""

    first: int
    last: int
    in_stream: bool
    """Whether the stream has messages at these sequences; otherwise tombstones will fill them."""
    stream_differs: bool = False
    """Whether messages of the stream are not the records of the log (`cdc.divergence`). Otherwise the
    log has a hole."""
    to_move: int = 0
    """How many records of the log are at sequences that the stream gave to others."""
    is_inside: bool = False
    """Whether log and stream agree again behind it. Then only the records of the loss are moved."""

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
        bounds = Bounds(max(int(info.state.first_seq), await reader.horizon()), last, head)
        reported = (await read_report(reader.connection)).seq or last
        found = await find_divergence(js, settings, reader, bounds, min(last, reported) - _AGREEING)
        if found is not None:
            to_move = (found.last if found.is_inside else max(found.first - 1, head)) - found.first + 1
            return Loss(
                found.first,
                found.last,
                in_stream=True,
                stream_differs=True,
                to_move=to_move,
                is_inside=found.is_inside,
            )
    horizon = await reader.horizon()
    hole = await reader.first_hole(max(last, horizon - 1)) or await reader.first_hole(horizon - 1)
    return None if hole is None else Loss(*hole, in_stream=hole[0] <= last)


async def adopt(reader: LogReader, settings: Settings, loss: Loss, actor: Actor) -> int:
    """Accept the loss. Returns how many records were moved after the end of the stream."""
    try:
        if loss.stream_differs:
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
    values = {"first": loss.first, "last": loss.last, "reason": _LOST, "who": actor.who}
    async with reader.connection.transaction():
        if loss.is_inside:
            moved, moved_by = await fetch_one(reader.connection, "cdc/adopt_inside", values)
        else:
            moved, moved_by = await fetch_one(reader.connection, "cdc/adopt", values)
        payload: dict[str, object] = {"from": loss.first, "until": loss.last, "reason": _LOST}
        if moved:
            payload |= {"moved": moved, "moved_by": moved_by}
        await append_gap_event(reader.connection, settings, actor, payload)
    return int(moved)

"""Finds the sequences at which log and stream have different records.

Guarantee: `find_divergence` walks back from the end of the stream, so it finds the run of differing
records that is nearest to the end, and its true beginning. It does not assume that log and stream
differ from one sequence on: another process may have taken a sequence in the middle of a chunk, and
the records behind it are then published at their own sequences.

Why record by record: it needs only the right to get single messages, which the publisher has, and
walking ends at the first record on which both agree. A sequence that the stream no longer has, or
that a recorded gap of the log covers, cannot be compared.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from cdc.compare import identity_text, is_same_record
from cdc.log_reader import LogReader
from tocsin.core.settings import Settings

_CHUNK = 100


class Divergence(NamedTuple):
    first: int
    last: int
    """The last differing sequence, or the end of the stream if nothing behind it agrees."""
    is_inside: bool
    """Whether log and stream agree again behind it."""
    text: str
    """The difference at its highest sequence that both have."""


class Bounds(NamedTuple):
    first: int
    """The first sequence that both have."""
    last: int
    """The last sequence of the stream."""
    head: int
    """The head of the log."""


async def find_divergence(
    js: JetStreamContext, settings: Settings, reader: LogReader, bounds: Bounds, down_to: int
) -> Divergence | None:
    """The differing run nearest to the end.

    Stops at `down_to` if nothing has differed by then. A run that begins further down is followed
    to its beginning.
    """
    walk = _Walk(bounds)
    for high in range(min(bounds.last, bounds.head), bounds.first - 1, -_CHUNK):
        if high < down_to and walk.first is None:
            break
        low = max(bounds.first, high - _CHUNK + 1)
        bodies = {
            record.seq: record.body(settings.source)
            for record in await reader.read_range(low - 1, high - low + 1)
        }
        stored = await asyncio.gather(*(_read_message(js, settings, seq) for seq in bodies))
        messages = dict(zip(bodies, stored, strict=True))
        for seq in range(high, low - 1, -1):
            if walk.is_complete_at(seq, bodies.get(seq), messages.get(seq)):
                return walk.divergence
    return walk.divergence


class _Walk:
    """The state of a walk from the end of the stream to its beginning."""

    def __init__(self, bounds: Bounds) -> None:
        self.first = bounds.head + 1 if bounds.last > bounds.head else None
        self._last = bounds.last
        self._has_agreed = False
        self._text = f"the stream is at {bounds.last}, the log only at {bounds.head}" if self.first else ""

    @property
    def divergence(self) -> Divergence | None:
        if self.first is None:
            return None
        return Divergence(self.first, self._last, self._has_agreed, self._text)

    def is_complete_at(self, seq: int, in_log: bytes | None, in_stream: bytes | None) -> bool:
        """Take the next lower sequence. True if the run ends above it."""
        if in_log is None or in_stream is None:
            return self._has_agreed and self.first is not None
        if is_same_record(in_log, in_stream):
            self._has_agreed = self._has_agreed or self.first is None
            return self.first is not None
        if self.first is None:
            self._last = seq if self._has_agreed else self._last
            self._text = (
                f"the stream has {identity_text(in_stream)} at {seq}, the log has {identity_text(in_log)}"
            )
        self.first = seq
        return False


async def _read_message(js: JetStreamContext, settings: Settings, seq: int) -> bytes | None:
    try:
        message = await js.get_msg(settings.stream, seq=seq)
    except NotFoundError:
        return None
    return message.data or b""

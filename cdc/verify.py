"""Verify: the whole of a range, log against stream: ids, order, subjects and bodies.

Guarantee: every sequence of the range is looked at on both sides; memory is bounded by a chunk, whatever
the range. It only reads, and may run beside everything else: what expires or is dropped from the beginning
while it runs is not a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nats.aio.client import Client

from cdc.compare import Stored, difference
from cdc.log_reader import Gap, LogReader, Record
from cdc.messages import message_of
from cdc.read_stream import read_stored
from cdc.stream import find_stream
from tocsin.core.errors import InvalidInput, Refused
from tocsin.core.settings import Settings

_CHUNK = 500
_KEPT = 20


@dataclass(frozen=True)
class Difference:
    seq: int
    what: str


@dataclass
class Verified:
    first: int
    last: int
    compared: int = 0
    accepted: int = 0
    """Sequences of recorded gaps: the log has nothing to compare with."""
    different: int = 0
    differences: list[Difference] = field(default_factory=list)
    """The first ones."""

    def note(self, wrong: dict[int, str]) -> None:
        self.different += len(wrong)
        found = [Difference(seq, what) for seq, what in wrong.items()]
        self.differences += found[: _KEPT - len(self.differences)]


async def common_range(
    bus: Client, settings: Settings, reader: LogReader, first: int | None, last: int | None
) -> tuple[int, int]:
    """What was asked for, or all that both have; `(1, 0)` if that is nothing."""
    info = await find_stream(bus.jetstream(), settings)
    if info is None:
        raise Refused(
            f"there is no stream {settings.stream!r}", remedy="`tocsin run cdc` makes it from the log"
        )
    # The head after the stream: see Publisher.resume.
    stream_last, head = int(info.state.last_seq), await reader.head()
    if stream_last > head:
        raise Refused(
            f"the stream {settings.stream!r} is at {stream_last}, the log only at {head}",
            remedy="restore a newer backup of postgres, or accept the loss with `tocsin cdc adopt`",
        )
    lowest, highest = max(1, int(info.state.first_seq), await reader.horizon()), stream_last
    if first is not None and last is not None and first > last:
        raise InvalidInput(f"from {first} until {last} is not a range", remedy="give the smaller one first")
    if lowest > highest:
        if first is None and last is None:
            return 1, 0
        raise InvalidInput("log and stream have nothing in common yet", remedy="give no range")
    for given in (first, last):
        if given is not None and not lowest <= given <= highest:
            raise InvalidInput(
                f"both have {lowest} to {highest}, and not {given}", remedy="give a part of that"
            )
    return first or lowest, last or highest


async def verify(
    bus: Client,
    settings: Settings,
    reader: LogReader,
    ends: tuple[int, int],
    progress: Callable[[int], None] = lambda _: None,
) -> Verified:
    """`progress` is told the last seq that was compared."""
    first, last = ends
    verified = Verified(first, last)
    gaps = await reader.gaps()
    stored = read_stored(bus, settings.stream, first, last)
    found = await anext(stored, None)
    for after in range(first - 1, last, _CHUNK):
        count = min(_CHUNK, last - after)
        records = {record.seq: record for record in await reader.read_range(after, count)}
        wrong: dict[int, str] = {}
        for seq in range(after + 1, after + count + 1):
            message = found if found is not None and found.seq == seq else None
            if message is not None:
                found = await anext(stored, None)
            what = _compare(bus, settings, records.get(seq), message)
            if message is not None and seq not in records and _is_accepted(gaps, seq):
                verified.accepted += 1
            elif what is not None:
                wrong[seq] = what
        if wrong:
            kept_from = await _lowest(bus, settings, reader)
            verified.note({seq: what for seq, what in wrong.items() if seq >= kept_from})
        verified.compared += count
        progress(after + count)
    return verified


def _compare(bus: Client, settings: Settings, record: Record | None, message: Stored | None) -> str | None:
    expected = None
    if record is not None:
        source = f"tocsin/{settings.namespace}"
        expected = message_of(record, settings.subjects, source, bus.max_payload)
    return difference(expected, message)


def _is_accepted(gaps: Sequence[Gap], seq: int) -> bool:
    return any(gap.from_seq <= seq <= gap.until_seq for gap in gaps)


async def _lowest(bus: Client, settings: Settings, reader: LogReader) -> int:
    """The first sequence that both still keep: what was before it has gone in the ordinary way."""
    info = await find_stream(bus.jetstream(), settings)
    return max(int(info.state.first_seq) if info else 1, await reader.horizon())

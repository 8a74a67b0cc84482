"""Compares a range of the log with the stream for `tocsin cdc verify`.

Guarantee: every sequence of the range is compared: id, order, subject and body. Memory is bounded
by a chunk, for any range. It only reads, and may run at any time: records that expire or are
dropped from the beginning while it runs are not differences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from nats.aio.client import Client

from cdc.compare import StoredMessage, difference
from cdc.log_reader import Gap, LogReader, Record, is_erased
from cdc.messages import message_of
from cdc.read_stream import read_messages
from cdc.stream import find_stream
from tocsin.core.errors import InvalidInput, Refused
from tocsin.core.settings import Settings

_CHUNK = 500
_MAX_SHOWN = 20


@dataclass(frozen=True)
class RecordDifference:
    seq: int
    what: str


@dataclass
class VerifyResult:
    first: int
    last: int
    compared: int = 0
    accepted: int = 0
    """Sequences of recorded gaps, where the log has nothing to compare with."""
    different: int = 0
    differences: list[RecordDifference] = field(default_factory=list)
    """The first differences."""

    def note(self, wrong: dict[int, str]) -> None:
        self.different += len(wrong)
        differences = [RecordDifference(seq, what) for seq, what in wrong.items()]
        self.differences += differences[: _MAX_SHOWN - len(self.differences)]


async def common_range(
    bus: Client, settings: Settings, reader: LogReader, first: int | None, last: int | None
) -> tuple[int, int]:
    """The requested range, or all that log and stream have in common.

    `(1, 0)` if that is nothing.
    """
    info = await find_stream(bus.jetstream(), settings)
    if info is None:
        raise Refused(
            f"there is no stream {settings.stream!r}",
            remedy="start `tocsin run cdc`, which creates it from the log",
        )
    # The head is read after the stream, as in `Publisher.resume`.
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
    for end in (first, last):
        if end is not None and not lowest <= end <= highest:
            raise InvalidInput(
                f"log and stream have {lowest} to {highest} in common, not {end}",
                remedy="give a part of that",
            )
    return first or lowest, last or highest


async def verify(
    bus: Client,
    settings: Settings,
    reader: LogReader,
    ends: tuple[int, int],
    progress: Callable[[int], None] = lambda _: None,
) -> VerifyResult:
    """Compare the range. `progress` gets the last seq that was compared."""
    first, last = ends
    verified = VerifyResult(first, last)
    gaps, erased = await reader.gaps(), await reader.erased_owners()
    stored_messages = read_messages(bus, settings.stream, first, last)
    next_message = await anext(stored_messages, None)
    for after in range(first - 1, last, _CHUNK):
        count = min(_CHUNK, last - after)
        records = {record.seq: record for record in await reader.read_range(after, count)}
        wrong: dict[int, str] = {}
        for seq in range(after + 1, after + count + 1):
            message = next_message if next_message is not None and next_message.seq == seq else None
            if message is not None:
                next_message = await anext(stored_messages, None)
            difference_text = _compare(bus, settings, records.get(seq), message, erased)
            if message is not None and seq not in records and _is_accepted(gaps, seq):
                verified.accepted += 1
            elif difference_text is not None:
                wrong[seq] = difference_text
        if wrong:
            kept_from = await _lowest(bus, settings, reader)
            verified.note({seq: what for seq, what in wrong.items() if seq >= kept_from})
        verified.compared += count
        progress(after + count)
    return verified


def _compare(
    bus: Client,
    settings: Settings,
    record: Record | None,
    message: StoredMessage | None,
    erased: Mapping[str, int],
) -> str | None:
    if record is None:
        return difference(None, message)
    expected = message_of(record, settings.subjects, settings.source, bus.max_payload)
    return difference(expected, message, is_erased=is_erased(record, erased))


def _is_accepted(gaps: Sequence[Gap], seq: int) -> bool:
    return any(gap.from_seq <= seq <= gap.until_seq for gap in gaps)


async def _lowest(bus: Client, settings: Settings, reader: LogReader) -> int:
    """The first sequence that both still keep: earlier ones have expired or were dropped."""
    info = await find_stream(bus.jetstream(), settings)
    return max(int(info.state.first_seq) if info else 1, await reader.horizon())

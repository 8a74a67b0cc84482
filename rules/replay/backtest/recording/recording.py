"""A recording as a file of JSON lines, written owner by owner and read without a database.

Guarantee: the values that are read are those that were written. A file that is truncated, damaged,
of another version or not a recording is rejected: every group of owners must hold what the index
counts.

The format, version 4 (docs/backtest.md): a header, lines about the rules, then for each owner a
line that names it and lines with its datapoints, events and calculated changes, then the index of
the groups. Instants are microseconds since 1970 UTC.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rules.engine import Arrival
from rules.replay.backtest.recording.codec import (
    FORMAT,
    HEADER_DECODERS,
    VERSION,
    calculated_line,
    datapoints_line,
    decode_item,
    encoded,
    event_line,
    header_lines,
    owner_line,
)
from rules.replay.backtest.recording.container import MemberReader, MemberWriter, index_range
from rules.replay.backtest.recording.model import (
    Arrivals,
    CalculatedChanges,
    OwnerHeader,
    RecordedEvents,
    Recording,
    RecordingHeader,
    RecordingItem,
)
from tocsin.core.files import written_whole
from tocsin.core.instant import instant_of

_SMALLEST_GROUP = 1024 * 1024
"""In uncompressed bytes. All items of an owner are in one group, so a group may be much larger."""
_FULL_LINE = 4 * 1024 * 1024


@dataclass(kw_only=True)
class Counts:
    """The numbers of items of some owners."""

    owners: int = 0
    datapoints: int = 0
    events: int = 0
    calculated: int = 0

    def count(self, item: RecordingItem) -> None:
        if isinstance(item, OwnerHeader):
            self.owners += 1
        elif isinstance(item, Arrivals):
            self.datapoints += len(item.rows)
        elif isinstance(item, RecordedEvents):
            self.events += len(item.rows)
        else:
            self.calculated += len(item.rows)

    @staticmethod
    def total(groups: Iterable[Counts]) -> dict[str, int]:
        totals = dict.fromkeys(("owners", "datapoints", "events", "calculated"), 0)
        for group in groups:
            for name in totals:
                totals[name] += getattr(group, name)
        return totals


@dataclass(kw_only=True)
class MemberCounts(Counts):
    """The counts of one member of the file, with its offset and the number of its first line."""

    offset: int
    line: int


async def write_recording(
    source: Recording, path: Path, report: Callable[[float], None] = lambda done: None
) -> dict[str, int]:
    """Write a recording; return how many owners and items of each kind it holds."""
    groups: list[MemberCounts] = []
    with written_whole(path) as being_written, being_written.open("wb") as file:
        members = MemberWriter(file)
        for line in header_lines(await source.header()):
            members.write(encoded(line))
        async for done, item in source.items(0, 1):
            if isinstance(item, OwnerHeader):
                report(done)
                if not groups or members.size >= _SMALLEST_GROUP:
                    members.begin()
                    groups.append(MemberCounts(offset=members.offset, line=members.line))
            groups[-1].count(item)
            for text in _datapoint_lines(item.rows) if isinstance(item, Arrivals) else other_lines(item):
                members.write(text)
        members.begin()
        members.write(encoded({"end": [asdict(group) for group in groups]}))
        members.close()
    return Counts.total(groups)


def other_lines(item: OwnerHeader | RecordedEvents | CalculatedChanges) -> Iterator[bytes]:
    """The lines of an item that is not about datapoints."""
    if isinstance(item, OwnerHeader):
        yield encoded(owner_line(item))
    elif isinstance(item, RecordedEvents):
        yield from (encoded(event_line(event)) for event in item.rows)
    else:
        yield from (encoded(calculated_line(change)) for change in item.rows)


def _datapoint_lines(rows: Sequence[Arrival]) -> Iterator[bytes]:
    line = encoded(datapoints_line(rows))
    if len(line) <= _FULL_LINE or len(rows) == 1:
        yield line
    else:
        half = len(rows) // 2
        yield from _datapoint_lines(rows[:half])
        yield from _datapoint_lines(rows[half:])


@dataclass(frozen=True)
class FileRecording:
    path: Path

    async def header(self) -> RecordingHeader:
        with MemberReader(self.path) as lines:
            return _read_header(lines)

    async def items(self, share: int, of: int) -> AsyncIterator[tuple[float, RecordingItem]]:
        groups, end = self._index()
        ends = [*(group.offset for group in groups[1:]), end]
        members = list(zip(groups, ends, strict=True))[share::of]
        for number, (group, until) in enumerate(members):
            with MemberReader(self.path, group.offset, until, group.line - 1) as lines:
                for item in _items(lines, group):
                    yield (number + lines.done) / len(members), item

    def _index(self) -> tuple[list[MemberCounts], int]:
        begin, end = index_range(self.path)
        with MemberReader(self.path, begin, end) as lines:
            lines.next()
            return lines.decode(lambda line: [MemberCounts(**counts) for counts in line["end"]]), begin


def _items(lines: MemberReader, indexed: MemberCounts) -> Iterator[RecordingItem]:
    counted = MemberCounts(offset=indexed.offset, line=indexed.line)
    owner = ""
    for _ in lines:
        item: RecordingItem = lines.decode(decode_item, owner)
        if isinstance(item, OwnerHeader):
            owner = item.owner
        elif not counted.owners:
            lines.reject("the line belongs to no owner")
        counted.count(item)
        yield item
    if counted != indexed:
        lines.reject(f"the index counts {indexed}, but the file holds {counted}")


def _read_header(lines: MemberReader) -> RecordingHeader:
    def decoded_lines() -> Iterator[Any]:
        while True:
            lines.next()
            yield lines.decode(lambda line: line)

    try:
        return decode_header(decoded_lines())
    except NotARecording as error:
        lines.reject(str(error))


class NotARecording(Exception):
    """A problem in the header of a file."""


def decode_header(lines: Iterator[Any]) -> RecordingHeader:
    """Decode the lines that `header_lines` made."""
    try:
        return _decode_header(lines)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise NotARecording("this is not a line of a recording") from None


def _decode_header(lines: Iterator[Any]) -> RecordingHeader:
    first = next(lines)
    if first["format"] != FORMAT:
        raise NotARecording("this is not a line of a recording")
    if first.get("version") != VERSION:
        version = first.get("version")
        raise NotARecording(f"the recording has version {version!r}, this Tocsin reads version {VERSION}")
    decoded: dict[str, list[Any]] = {name: [] for name in HEADER_DECODERS}
    for line in lines:
        name = next(iter(line), "")
        if name == "rules":
            break
        if name not in HEADER_DECODERS:
            raise NotARecording(f"unknown line {name!r}")
        decoded[name].append(HEADER_DECODERS[name](*line[name]))
    else:
        raise NotARecording("the file ends within its header")
    return RecordingHeader(
        instant_of(first["start"]),
        instant_of(first["since"]),
        instant_of(first["until"]),
        bool(first["whole"]),
        decoded["document"],
        decoded["apply"],
        decoded["cutover"],
        decoded["horizon"],
        dict(decoded["gaps"]),
    )

"""A recording as a file: lines of JSON, written owner by owner and read back without a database.

Guarantee: what is read back is what was written, value for value. A file that is cut short, damaged, of another version
or not ours at all is refused: every group of owners must hold what the index counts.

The format, version 2 (docs/backtest.md): a header, lines about the rules, then per owner a line that names it and
lines of its datapoints, events and verdicts, then the index of the groups. Instants are microseconds since 1970 UTC.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rules.engine import Arrival
from rules.replay.backtest.recording.codec import (
    FORMAT,
    STORY,
    VERSION,
    datapoints_line,
    encoded,
    event_line,
    owner_line,
    part_of,
    story_lines,
    verdict_line,
)
from rules.replay.backtest.recording.container import Lines, MemberWriter, index_place
from rules.replay.backtest.recording.model import Arrivals, Events, OwnerBegins, Part, Source, Story, Verdicts
from tocsin.core.files import written_whole
from tocsin.core.instant import instant_of

_SMALLEST_GROUP = 1024 * 1024
"""In plain bytes. An owner is in one group, so a group may be much larger."""
_FULL_LINE = 4 * 1024 * 1024


@dataclass(kw_only=True)
class Counts:
    """What some owners have."""

    owners: int = 0
    datapoints: int = 0
    events: int = 0
    verdicts: int = 0

    def count(self, part: Part) -> None:
        if isinstance(part, OwnerBegins):
            self.owners += 1
        elif isinstance(part, Arrivals):
            self.datapoints += len(part.rows)
        elif isinstance(part, Events):
            self.events += len(part.rows)
        else:
            self.verdicts += len(part.rows)

    @staticmethod
    def total(all: Iterable[Counts]) -> dict[str, int]:
        found = dict.fromkeys(("owners", "datapoints", "events", "verdicts"), 0)
        for one in all:
            for name in found:
                found[name] += getattr(one, name)
        return found


@dataclass(kw_only=True)
class Group(Counts):
    """The owners of one member of the file: where it begins, and the number of its first line."""

    offset: int
    line: int


async def write_recording(
    source: Source, path: Path, report: Callable[[float], None] = lambda done: None
) -> dict[str, int]:
    """How many owners, datapoints, events and verdicts were written."""
    groups: list[Group] = []
    with written_whole(path) as being_written, being_written.open("wb") as file:
        members = MemberWriter(file)
        for line in story_lines(await source.story()):
            members.write(encoded(line))
        async for done, part in source.parts(0, 1):
            if isinstance(part, OwnerBegins):
                report(done)
                if not groups or members.size >= _SMALLEST_GROUP:
                    members.begin()
                    groups.append(Group(offset=members.offset, line=members.line))
            groups[-1].count(part)
            for text in _datapoints(part.rows) if isinstance(part, Arrivals) else other_lines(part):
                members.write(text)
        members.begin()
        members.write(encoded({"end": [asdict(group) for group in groups]}))
        members.close()
    return Counts.total(groups)


def other_lines(part: OwnerBegins | Events | Verdicts) -> Iterator[bytes]:
    """Those beside datapoints."""
    if isinstance(part, OwnerBegins):
        yield encoded(owner_line(part))
    elif isinstance(part, Events):
        yield from (encoded(event_line(one)) for one in part.rows)
    else:
        yield from (encoded(verdict_line(one)) for one in part.rows)


def _datapoints(rows: Sequence[Arrival]) -> Iterator[bytes]:
    line = encoded(datapoints_line(rows))
    if len(line) <= _FULL_LINE or len(rows) == 1:
        yield line
    else:
        half = len(rows) // 2
        yield from _datapoints(rows[:half])
        yield from _datapoints(rows[half:])


@dataclass(frozen=True)
class RecordingSource:
    path: Path

    async def story(self) -> Story:
        with Lines(self.path) as lines:
            return _story(lines)

    async def parts(self, share: int, of: int) -> AsyncIterator[tuple[float, Part]]:
        groups, end = self._index()
        ends = [*(group.offset for group in groups[1:]), end]
        mine = list(zip(groups, ends, strict=True))[share::of]
        for place, (group, until) in enumerate(mine):
            with Lines(self.path, group.offset, until, group.line - 1) as lines:
                for part in _parts(lines, group):
                    yield (place + lines.done) / len(mine), part

    def _index(self) -> tuple[list[Group], int]:
        begin, end = index_place(self.path)
        with Lines(self.path, begin, end) as lines:
            lines.next()
            return lines.decoded(lambda line: [Group(**one) for one in line["end"]]), begin


def _parts(lines: Lines, told: Group) -> Iterator[Part]:
    found = Group(offset=told.offset, line=told.line)
    owner = ""
    for _ in lines:
        part: Part = lines.decoded(part_of, owner)
        if isinstance(part, OwnerBegins):
            owner = part.owner
        elif not found.owners:
            lines.refuse("this is of no owner")
        found.count(part)
        yield part
    if found != told:
        lines.refuse(f"the index counts {told}, but the file holds {found}")


def _story(lines: Lines) -> Story:
    def told() -> Iterator[Any]:
        while True:
            lines.next()
            yield lines.decoded(lambda line: line)

    try:
        return story_of(told())
    except NotARecording as error:
        lines.refuse(str(error))


class NotARecording(Exception):
    """What is wrong with the lines about the rules."""


def story_of(lines: Iterator[Any]) -> Story:
    """From the lines about the rules, as `story_lines` made them."""
    try:
        return _told_story(lines)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise NotARecording("this is not a line of a recording") from None


def _told_story(lines: Iterator[Any]) -> Story:
    header = next(lines)
    if header["format"] != FORMAT:
        raise NotARecording("this is not a line of a recording")
    if header.get("version") != VERSION:
        found_version = header.get("version")
        raise NotARecording(
            f"the recording has version {found_version!r}, this Tocsin reads version {VERSION}"
        )
    found: dict[str, list[Any]] = {name: [] for name in STORY}
    for line in lines:
        name = next(iter(line), "")
        if name == "rules":
            break
        if name not in STORY:
            raise NotARecording(f"unknown line {name!r}")
        found[name].append(STORY[name](*line[name]))
    else:
        raise NotARecording("it ends before its rules do")
    return Story(
        instant_of(header["start"]),
        instant_of(header["since"]),
        instant_of(header["until"]),
        bool(header["whole"]),
        found["document"],
        found["apply"],
        found["switch"],
        found["horizon"],
    )

"""A recording as a file: gzipped lines of JSON, written owner by owner and read back without a database.

Guarantee: what is read back is what was written, value for value. A file that is cut short, damaged, of another version
or not ours at all is refused with the line: its last line must be there and count what came before.

The format, version 1 (docs/backtest.md): a header, lines about the rules, then per owner a line that names it and
lines of its datapoints, events and verdicts, then the end. Instants are microseconds since 1970 UTC. Every process
reads the whole file and decodes only the owners of its share: reading past a line costs little beside judging it.
"""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, NoReturn
from zlib import crc32

from rules.backtest.facts import Arrivals, Events, OwnerBegins, Part, Source, Story
from rules.backtest.recording_lines import (
    DECODERS,
    FORMAT,
    PARTS,
    STORY,
    VERSION,
    datapoint_line,
    encoded,
    event_line,
    instant,
    loads,
    owner_begins,
    owner_line,
    story_lines,
    verdict_line,
)
from tocsin.core.errors import InvalidInput

_ROWS_AT_ONCE = 5000
_LONGEST_LINE = 4 * 1024 * 1024
_WRONG = (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, AttributeError)
_KINDS = {b'{"ow': "owners", b'["d"': "datapoints", b'["e"': "events", b'["v"': "verdicts", b'{"en': "end"}
_CHUNK = 1024 * 1024


async def write_recording(
    source: Source, path: Path, report: Callable[[float], None] = lambda done: None
) -> dict[str, int]:
    """How many owners, datapoints, events and verdicts were written."""
    counts: Counter[str] = Counter(owners=0, datapoints=0, events=0, verdicts=0)
    with gzip.open(path, "wb", compresslevel=6) as file:
        for line in story_lines(await source.story()):
            file.write(encoded(line))
        async for done, part in source.parts(0, 1):
            if isinstance(part, OwnerBegins):
                counts["owners"] += 1
                file.write(encoded(owner_line(part)))
                report(done)
            elif isinstance(part, Arrivals):
                counts["datapoints"] += len(part.rows)
                file.write(b"".join(encoded(datapoint_line(one)) for one in part.rows))
            elif isinstance(part, Events):
                counts["events"] += len(part.rows)
                file.write(b"".join(encoded(event_line(one)) for one in part.rows))
            else:
                counts["verdicts"] += len(part.rows)
                file.write(b"".join(encoded(verdict_line(one)) for one in part.rows))
        file.write(encoded({"end": dict(counts)}))
    return dict(counts)


@dataclass(frozen=True)
class RecordingSource:
    path: Path

    async def story(self) -> Story:
        with _Lines(self.path) as lines:
            return _story(lines)

    async def parts(self, share: int, of: int) -> AsyncIterator[tuple[float, Part]]:
        with _Lines(self.path) as lines:
            _story(lines)
            owner, is_ours, last = "", False, ""
            counts = dict.fromkeys(PARTS, 0) | {"owners": 0}
            waiting: list[bytes] = []
            for line in lines:
                kind = _KINDS.get(line[:4], "")
                if waiting and (kind != last or len(waiting) >= _ROWS_AT_ONCE):
                    yield lines.done, PARTS[last](lines.decoded_all(last, waiting, owner))
                    waiting = []
                last = kind
                if kind == "end":
                    break
                if kind not in counts:
                    lines.refuse("this is not a line of a recording")
                counts[kind] += 1
                if kind == "owners":
                    begins = lines.decoded(owner_begins)
                    owner = begins.owner
                    is_ours = crc32(owner.encode()) % of == share
                    if is_ours:
                        yield lines.done, begins
                elif is_ours:
                    waiting.append(line)
            lines.refuse_unless_ended(counts)


class _Lines:
    """The lines of a file with their numbers, for what is wrong with one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = 0
        self._line = b""
        self._rest = b""
        self._ready: Iterator[bytes] = iter(())
        try:
            self._size = path.stat().st_size
            self._raw: BinaryIO = path.open("rb")
        except OSError as error:
            raise InvalidInput(f"cannot read {path}: {error.strerror}") from None
        self._file = gzip.GzipFile(fileobj=self._raw)

    def __enter__(self) -> _Lines:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()
        self._raw.close()

    @property
    def done(self) -> float:
        return self._raw.tell() / self._size if self._size else 1.0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            for line in self._ready:
                self._line = line
                self._number += 1
                yield line
            if not self._read():
                return

    def _read(self) -> bool:
        """Some more lines, cut from a chunk of bounded size."""
        try:
            chunk = self._file.read(_CHUNK)
        except (EOFError, zlib.error):
            self.refuse("the file is cut short or damaged here")
        except gzip.BadGzipFile:
            self.refuse("the file is not gzip, or is damaged here")
        if not chunk and not self._rest:
            return False
        found = (self._rest + chunk).split(b"\n")
        self._rest = found.pop() if chunk else b""
        if len(self._rest) > _LONGEST_LINE:
            self.refuse(f"the line is longer than {_LONGEST_LINE:,} bytes")
        self._ready = iter(found)
        return True

    def next(self) -> bytes:
        line = next(iter(self), b"")
        if not line:
            self.refuse("the file ends before its rules do")
        return line

    def decoded(self, decode: Callable[..., Any], *more: Any) -> Any:
        try:
            return decode(loads(self._line.decode()), *more)
        except (*_WRONG, InvalidInput):
            self.refuse("this is not a line of a recording")

    def decoded_all(self, kind: str, lines: list[bytes], owner: str) -> list[Any]:
        """The lines before the current one, at once: that takes half the time."""
        decode = DECODERS[kind]
        try:
            found = [decode(row, owner) for row in loads(f"[{b','.join(lines).decode()}]")]
        except (*_WRONG, InvalidInput):
            found = []
        if len(found) != len(lines):
            self._refuse_one_of(lines, decode, owner)
        return found

    def _refuse_one_of(self, lines: list[bytes], decode: Callable[..., Any], owner: str) -> NoReturn:
        self._number -= len(lines) + 1
        for self._line in lines:
            self._number += 1
            self.decoded(decode, owner)
        self.refuse("this is not a line of a recording")

    def refuse_unless_ended(self, counts: dict[str, int]) -> None:
        told = self.decoded(lambda line: line["end"]) if self._line.startswith(b'{"en') else None
        if told is None:
            self.refuse("the file ends without its last line: it was cut short")
        if told != counts:
            self.refuse(f"the last line counts {told}, but the file holds {counts}")
        for _ in self:
            self.refuse("there is something behind the end")

    def refuse(self, why: str) -> NoReturn:
        raise InvalidInput(f"{self._path}:{self._number}: {why}: export the recording again")


def _story(lines: _Lines) -> Story:
    lines.next()
    header = lines.decoded(lambda line: line if line.get("format") == FORMAT else line["no recording"])
    if header.get("version") != VERSION:
        lines.refuse(
            f"the recording has version {header.get('version')!r}, this Tocsin reads version {VERSION}"
        )
    found: dict[str, list[Any]] = {name: [] for name in STORY}
    while True:
        lines.next()
        line = lines.decoded(dict)
        name = next(iter(line), "")
        if name == "rules":
            break
        if name not in STORY:
            lines.refuse(f"unknown line {name!r}")
        found[name].append(lines.decoded(lambda line: STORY[name](*line[name])))  # noqa: B023
    instants = _window(lines, header)
    return Story(*instants, found["document"], found["apply"], found["switch"], found["horizon"])


def _window(lines: _Lines, header: dict[str, Any]) -> tuple[datetime, datetime, datetime, bool]:
    try:
        return (
            instant(header["start"]),
            instant(header["since"]),
            instant(header["until"]),
            bool(header["whole"]),
        )
    except (KeyError, TypeError, OverflowError):
        lines.refuse("the header names no window")

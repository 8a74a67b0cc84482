"""The container of a recording: gzip members that can be read each on its own, and an index of them at the end.

Guarantee: the whole is a gzip file, so that any tool can read its lines. A member holds the owners of one group, so
that processes share the work by groups, and none reads past what is another's. A cut, an addition or damage is refused,
with the line where there is one: a member must match its checksum and end where the next begins.

Why the index is at the end: a recording can be written to a pipe. The last 34 bytes are an empty member whose extra
field `TS` says where the member of the index begins.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from pydantic_core import from_json

from tocsin.core.errors import InvalidInput

_LONGEST_LINE = 64 * 1024 * 1024
"""What may be one line whatever its length: the last datapoints of all series of an owner, and the index."""
_GZIP = 31
_LEVEL = 6
_CHUNK = 1024 * 1024
_RAW = 64 * 1024
_BEFORE_OFFSET = bytes.fromhex("1f8b0804 00000000 00ff 0c00 5453 0800")
_BEHIND_OFFSET = bytes.fromhex("0300 00000000 00000000")
_LAST = len(_BEFORE_OFFSET) + 8 + len(_BEHIND_OFFSET)
_WRONG = (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, AttributeError)


class MemberWriter:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._written = 0
        self.line = 1
        """The number of the next line."""
        self.offset = 0
        """Where the member begins."""
        self.size = 0
        """How much has been written to it, in plain bytes."""
        self._deflate = zlib.compressobj(_LEVEL, wbits=_GZIP)

    def write(self, lines: bytes) -> None:
        self.line += lines.count(b"\n")
        self.size += len(lines)
        self._put(self._deflate.compress(lines))

    def begin(self) -> None:
        """What is written next is in another member."""
        self._put(self._deflate.flush())
        self.offset, self.size = self._written, 0
        self._deflate = zlib.compressobj(_LEVEL, wbits=_GZIP)

    def close(self) -> None:
        """The member that was begun last is the index."""
        self._put(self._deflate.flush())
        self._put(_BEFORE_OFFSET + self.offset.to_bytes(8, "little") + _BEHIND_OFFSET)

    def _put(self, data: bytes) -> None:
        self._written += len(data)
        self._file.write(data)


def index_place(path: Path) -> tuple[int, int]:
    """Where the member of the index begins and ends."""
    with path.open("rb") as file:
        end = max(file.seek(0, SEEK_END) - _LAST, 0)
        file.seek(end)
        last = file.read()
    offset = last.removeprefix(_BEFORE_OFFSET).removesuffix(_BEHIND_OFFSET)
    begin = int.from_bytes(offset, "little")
    # One of the offset's own bytes may be the wrong one.
    if len(last) != _LAST or len(offset) != 8 or begin >= end:
        refuse(path, None, "the file does not end as a recording does: it was cut short, or is none")
    return begin, end


class Lines:
    """The lines of one member with their numbers, for what is wrong with one."""

    def __init__(self, path: Path, begin: int = 0, end: int | None = None, number: int = 0) -> None:
        self._path = path
        self._begin = begin
        self._end = end
        self._number = number
        self._line = b""
        self._rest = b""
        self._ready: Iterator[bytes] = iter(())
        self._deflate = zlib.decompressobj(wbits=_GZIP)
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise InvalidInput(f"cannot read {path}: {error.strerror}") from None
        self._file.seek(begin)

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    @property
    def done(self) -> float:
        """How much of it has been read."""
        return (self._file.tell() - self._begin) / (self._end - self._begin) if self._end else 0.0

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
        chunk = self._decompress()
        if not chunk and not self._rest:
            return False
        found = (self._rest + chunk).split(b"\n")
        self._rest = found.pop() if chunk else b""
        if len(self._rest) > _LONGEST_LINE:
            self.refuse(f"the line is longer than {_LONGEST_LINE:,} bytes")
        self._ready = iter(found)
        return True

    def _decompress(self) -> bytes:
        chunk = b""
        while not chunk and not self._deflate.eof:
            raw = self._deflate.unconsumed_tail or self._file.read(_RAW)
            if not raw:
                self.refuse("the file is cut short here")
            try:
                chunk = self._deflate.decompress(raw, _CHUNK)
            except zlib.error:
                self.refuse("the file is not gzip, or is damaged here")
        if self._deflate.eof and self._end not in (None, self._file.tell() - len(self._deflate.unused_data)):
            self.refuse("the file is damaged here: what follows is not where the index says")
        return chunk

    def next(self) -> bytes:
        line = next(iter(self), b"")
        if not line:
            self.refuse("the file ends before its rules do")
        return line

    def decoded(self, decode: Callable[..., Any], *more: Any) -> Any:
        """The current line."""
        try:
            return decode(from_json(self._line, allow_inf_nan=False), *more)
        except (*_WRONG, InvalidInput):
            self.refuse("this is not a line of a recording")

    def refuse(self, why: str) -> NoReturn:
        refuse(self._path, self._number, why)


def refuse(path: Path, line: int | None, why: str) -> NoReturn:
    place = path if line is None else f"{path}:{line}"
    raise InvalidInput(f"{place}: {why}", remedy="export the recording again")

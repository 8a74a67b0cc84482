"""The container of a recording: independent gzip members, with an index in the last one.

Guarantee: the file is a valid gzip file, so any tool can read its lines. Each member holds one
group of whole owners, so processes divide the work by members and read nothing of each other's. A
truncated, extended or damaged file is rejected, with the number of the line where one is known: a
member must match its checksum and end at the offset where the next one begins.

Why the index is at the end: a recording can be written to a pipe. The last 34 bytes are an empty
member whose extra field `TS` holds the offset of the index.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from pydantic_core import from_json

from tocsin.core.errors import InvalidInput

_MAX_LINE_BYTES = 64 * 1024 * 1024
"""Bounds the memory for a line. The longest lines are the last datapoints of all series of an
owner, and the index."""
_GZIP = 31
_LEVEL = 6
_CHUNK = 1024 * 1024
_RAW = 64 * 1024
_TRAILER_START = bytes.fromhex("1f8b0804 00000000 00ff 0c00 5453 0800")
_TRAILER_END = bytes.fromhex("0300 00000000 00000000")
_TRAILER_BYTES = len(_TRAILER_START) + 8 + len(_TRAILER_END)
_DECODING_ERRORS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    OverflowError,
    RecursionError,
    AttributeError,
)


class MemberWriter:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._written = 0
        self.line = 1
        """The number of the next line."""
        self.offset = 0
        """The offset of the current member."""
        self.size = 0
        """The uncompressed bytes written to the current member."""
        self._deflate = zlib.compressobj(_LEVEL, wbits=_GZIP)

    def write(self, lines: bytes) -> None:
        self.line += lines.count(b"\n")
        self.size += len(lines)
        self._put(self._deflate.compress(lines))

    def begin(self) -> None:
        """End the current member and begin the next."""
        self._put(self._deflate.flush())
        self.offset, self.size = self._written, 0
        self._deflate = zlib.compressobj(_LEVEL, wbits=_GZIP)

    def close(self) -> None:
        """End the file. The current member is the index."""
        self._put(self._deflate.flush())
        self._put(_TRAILER_START + self.offset.to_bytes(8, "little") + _TRAILER_END)

    def _put(self, data: bytes) -> None:
        self._written += len(data)
        self._file.write(data)


def index_range(path: Path) -> tuple[int, int]:
    """The offsets at which the member of the index begins and ends."""
    with path.open("rb") as file:
        end = max(file.seek(0, SEEK_END) - _TRAILER_BYTES, 0)
        file.seek(end)
        trailer = file.read()
    offset = trailer.removeprefix(_TRAILER_START).removesuffix(_TRAILER_END)
    begin = int.from_bytes(offset, "little")
    # Damage in the bytes of the offset itself gives an offset outside of the file.
    if len(trailer) != _TRAILER_BYTES or len(offset) != 8 or begin >= end:
        reject(path, None, "the file has no recording trailer: it was cut short, or is not a recording")
    return begin, end


class MemberReader:
    """The lines of one member. It counts them, so that an error names the line."""

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

    def __enter__(self) -> MemberReader:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    @property
    def done(self) -> float:
        """The fraction of the member that has been read."""
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
        """Read more lines, from a chunk of bounded size; false at the end."""
        chunk = self._decompress()
        if not chunk and not self._rest:
            return False
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop() if chunk else b""
        if len(self._rest) > _MAX_LINE_BYTES:
            self.reject(f"the line is longer than {_MAX_LINE_BYTES:,} bytes")
        self._ready = iter(lines)
        return True

    def _decompress(self) -> bytes:
        chunk = b""
        while not chunk and not self._deflate.eof:
            raw = self._deflate.unconsumed_tail or self._file.read(_RAW)
            if not raw:
                self.reject("the file is cut short here")
            try:
                chunk = self._deflate.decompress(raw, _CHUNK)
            except zlib.error:
                self.reject("the file is not gzip, or is damaged here")
        if self._deflate.eof and self._end not in (None, self._file.tell() - len(self._deflate.unused_data)):
            self.reject("the file is damaged here: the next member does not begin where the index says")
        return chunk

    def next(self) -> bytes:
        line = next(iter(self), b"")
        if not line:
            self.reject("the file ends within its header")
        return line

    def decode(self, decode: Callable[..., Any], *more: Any) -> Any:
        """Decode the current line; `more` is passed to `decode`."""
        try:
            return decode(from_json(self._line, allow_inf_nan=False), *more)
        except (*_DECODING_ERRORS, InvalidInput):
            self.reject("this is not a line of a recording")

    def reject(self, problem: str) -> NoReturn:
        reject(self._path, self._number, problem)


def reject(path: Path, line: int | None, problem: str) -> NoReturn:
    location = path if line is None else f"{path}:{line}"
    raise InvalidInput(f"{location}: {problem}", remedy="export the recording again")

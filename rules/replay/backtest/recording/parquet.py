"""A recording as a Parquet file, for those who also look at it with other tools: the same rows, the same reader.

Guarantee: what is read back is what was written, value for value. A datapoint is a row with columns of its own; every
other line of a recording is a row with that line. The rules are in the metadata, and so is the index: which row groups
have whole owners, and what they hold. Processes share those. Columns must match their checksums and the index; Parquet
has none for its own footer, so to keep a recording for long, the other format is the better one.

On failure: `InvalidInput`, also where pyarrow is not installed: it is an extra, because it is large (170 MB).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic_core import from_json

from rules.engine import Arrival
from rules.replay.backtest.recording.codec import arrival_rows, encoded, part_of, story_lines
from rules.replay.backtest.recording.model import Arrivals, OwnerBegins, Part, Source, Story
from rules.replay.backtest.recording.recording import (
    Counts,
    NotARecording,
    RecordingSource,
    other_lines,
    story_of,
)
from tocsin.core.errors import InvalidInput
from tocsin.core.files import written_whole
from tocsin.core.instant import microseconds_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_MAGIC = b"PAR1"
_RULES = b"tocsin-recording"
_INDEX = b"tocsin-groups"
_SMALLEST_GROUP = 50_000
_ROWS_PER_ROW_GROUP = 100_000
_ROWS_AT_ONCE = 5_000
_WRONG = (ValueError, TypeError, KeyError, IndexError, OverflowError, OSError, AttributeError)


@dataclass
class RowGroups(Counts):
    """Of whole owners."""

    first: int = 0
    behind: int = 0
    """The first that is not one of them."""


async def write_parquet(
    source: Source, path: Path, report: Callable[[float], None] = lambda done: None
) -> dict[str, int]:
    """As `write_recording`."""
    rules = b"".join(encoded(line) for line in story_lines(await source.story()))
    with written_whole(path) as being_written, _Writer(being_written, rules) as writer:
        async for done, part in source.parts(0, 1):
            report(done)
            writer.write(part)
        return writer.counts()


class _Writer:
    def __init__(self, path: Path, rules: bytes) -> None:
        pa, pq = _pyarrow()
        text, instant = pa.string(), pa.timestamp("us", tz="UTC")
        columns = {
            "owner": text,
            "line": text,
            "arrived_at": instant,
            "stream_seq": pa.int64(),
            "key": text,
            "number": pa.float64(),
            "integer": pa.int64(),
            "text": text,
            "flag": pa.bool_(),
            "ts": instant,
            "labels": pa.map_(text, text),
        }
        self._schema = pa.schema(columns, metadata={_RULES: rules})
        self._pa = pa
        self._file = pq.ParquetWriter(path, self._schema, compression="zstd", write_page_checksum=True)
        self._groups: list[RowGroups] = []
        self._waiting: list[RecordBatch] = []
        self._owner = ""
        self._written = 0

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, failure: type[BaseException] | None, *exc: object) -> None:
        """What was not written to its end has no index, and is refused."""
        if failure is None:
            self._flush()
            self._file.add_key_value_metadata({_INDEX: json.dumps([asdict(one) for one in self._groups])})
        self._file.close()

    def write(self, part: Part) -> None:
        if isinstance(part, OwnerBegins):
            self._owner = part.owner
            if not self._groups or self._groups[-1].datapoints >= _SMALLEST_GROUP:
                self._flush()
                self._groups.append(RowGroups(first=self._written, behind=self._written))
        self._groups[-1].count(part)
        if isinstance(part, Arrivals):
            rows = [self._datapoint(one) for one in part.rows]
        else:
            rows = [{"owner": self._owner, "line": line.decode()} for line in other_lines(part)]
        self._waiting.append(self._pa.RecordBatch.from_pylist(rows, schema=self._schema))
        if sum(batch.num_rows for batch in self._waiting) >= _ROWS_PER_ROW_GROUP:
            self._flush()

    def _datapoint(self, one: Arrival) -> dict[str, Any]:
        return {
            "owner": one.owner,
            "arrived_at": microseconds_of(one.at),
            "stream_seq": one.seq,
            "key": one.key,
            _COLUMN[type(one.value)]: one.value,
            "ts": microseconds_of(one.ts),
            "labels": list(one.labels.items()),
        }

    def _flush(self) -> None:
        if self._waiting:
            self._file.write_table(self._pa.Table.from_batches(self._waiting))
            self._written += 1
            self._groups[-1].behind = self._written
            self._waiting = []

    def counts(self) -> dict[str, int]:
        return Counts.total(self._groups)


_COLUMN: dict[type, str] = {float: "number", int: "integer", str: "text", bool: "flag"}


@dataclass(frozen=True)
class ParquetSource:
    path: Path

    async def story(self) -> Story:
        lines = self._metadata(_RULES).splitlines()
        try:
            return story_of(map(from_json, lines))
        except NotARecording as error:
            self._refuse(str(error))

    async def parts(self, share: int, of: int) -> AsyncIterator[tuple[float, Part]]:
        try:
            groups = [RowGroups(**one) for one in from_json(self._metadata(_INDEX))]
        except _WRONG:
            self._refuse("its index cannot be read")
        mine = groups[share::of]
        for place, group in enumerate(mine):
            found = RowGroups(first=group.first, behind=group.behind)
            for part in self._parts(group):
                found.count(part)
                yield place / len(mine), part
            if found != group:
                self._refuse(f"the index counts {group}, but the file holds {found}")

    def _metadata(self, name: bytes) -> bytes:
        _, pq = _pyarrow()
        try:
            found = (pq.read_metadata(self.path).metadata or {}).get(name)
        except _WRONG as error:
            self._refuse(f"it is no Parquet file, or is damaged ({error})")
        if found is None:
            self._refuse("it is not a recording, or was cut short")
        return bytes(found)

    def _parts(self, group: RowGroups) -> Iterator[Part]:
        _, pq = _pyarrow()
        owner = ""
        try:
            with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
                for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=range(group.first, group.behind)):
                    for part in _parts_of(batch, owner):
                        owner = part.owner if isinstance(part, OwnerBegins) else owner
                        yield part
        except _WRONG as error:
            self._refuse(f"it is damaged, or not a recording ({error})")

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidInput(f"{self.path}: {why}", remedy="export the recording again") from None


def _parts_of(batch: RecordBatch, owner: str) -> Iterator[Part]:
    lines = batch["line"].to_pylist()
    begin = 0
    for is_datapoint, run in groupby(lines, key=lambda line: line is None):
        count = len(list(run))
        if is_datapoint:
            yield Arrivals(_arrivals(batch.slice(begin, count)))
        else:
            for line in lines[begin : begin + count]:
                part = part_of(from_json(line), owner)
                owner = part.owner if isinstance(part, OwnerBegins) else owner
                yield part
        begin += count


def _arrivals(rows: RecordBatch) -> Sequence[Arrival]:
    values = zip(*(rows[name].to_pylist() for name in _COLUMN.values()), strict=True)
    return arrival_rows(
        rows["arrived_at"].cast("int64").to_pylist(),
        rows["stream_seq"].to_pylist(),
        rows["owner"].to_pylist(),
        rows["key"].to_pylist(),
        [next(value for value in row if value is not None) for row in values],
        rows["ts"].cast("int64").to_pylist(),
        list(map(dict, rows["labels"].to_pylist())),
    )


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InvalidInput(
            "a recording as Parquet needs pyarrow", remedy="pip install 'tocsin[parquet]'"
        ) from None
    return pyarrow, pyarrow.parquet


def open_recording(path: Path) -> ParquetSource | RecordingSource:
    """Whichever of the two it is."""
    try:
        with path.open("rb") as file:
            is_parquet = file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from None
    return ParquetSource(path) if is_parquet else RecordingSource(path)

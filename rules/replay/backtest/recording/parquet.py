"""A recording as a Parquet file, for readers who also analyse it with other tools.

Guarantee: the values that are read are those that were written. A datapoint is a row with its own
columns; every other line of a recording is a row with that line. The metadata hold the header and
the index: which row groups hold whole owners, and their counts. Processes divide the work by those
groups. Columns must match their checksums and the index. Parquet has no checksum for its footer, so
the gzip format is the better one for long storage.

On failure: `InvalidInput`, including the case that pyarrow is not installed. It is an extra because
of its size (170 MB).
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
from rules.replay.backtest.recording.codec import (
    arrival_rows,
    decode_item,
    encoded,
    header_lines,
)
from rules.replay.backtest.recording.model import (
    Arrivals,
    OwnerHeader,
    Recording,
    RecordingHeader,
    RecordingItem,
)
from rules.replay.backtest.recording.recording import (
    Counts,
    FileRecording,
    NotARecording,
    decode_header,
    other_lines,
)
from tocsin.core.errors import InvalidInput
from tocsin.core.extras import install_remedy
from tocsin.core.files import written_whole
from tocsin.core.instant import microseconds_of

if TYPE_CHECKING:
    from pyarrow import RecordBatch

_MAGIC = b"PAR1"
_HEADER = b"tocsin-recording"
_INDEX = b"tocsin-groups"
_SMALLEST_GROUP = 50_000
_ROWS_PER_ROW_GROUP = 100_000
_ROWS_AT_ONCE = 5_000
_READING_ERRORS = (ValueError, TypeError, KeyError, IndexError, OverflowError, OSError, AttributeError)


@dataclass
class RowGroupCounts(Counts):
    """The counts of the row groups from `first` to before `end`, which hold whole owners."""

    first: int = 0
    end: int = 0


async def write_parquet(
    source: Recording, path: Path, report: Callable[[float], None] = lambda done: None
) -> dict[str, int]:
    """Write a recording; return the same counts as `write_recording`."""
    header = b"".join(encoded(line) for line in header_lines(await source.header()))
    with written_whole(path) as being_written, _Writer(being_written, header) as writer:
        async for done, item in source.items(0, 1):
            report(done)
            writer.write(item)
        return writer.counts()


class _Writer:
    def __init__(self, path: Path, header: bytes) -> None:
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
        self._schema = pa.schema(columns, metadata={_HEADER: header})
        self._pa = pa
        self._file = pq.ParquetWriter(path, self._schema, compression="zstd", write_page_checksum=True)
        self._groups: list[RowGroupCounts] = []
        self._batches: list[RecordBatch] = []
        self._owner = ""
        self._written = 0

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, failure: type[BaseException] | None, *exc: object) -> None:
        """Close the file. After a failure it has no index, and readers reject it."""
        if failure is None:
            self._flush()
            self._file.add_key_value_metadata({_INDEX: json.dumps([asdict(group) for group in self._groups])})
        self._file.close()

    def write(self, item: RecordingItem) -> None:
        if isinstance(item, OwnerHeader):
            self._owner = item.owner
            if not self._groups or self._groups[-1].datapoints >= _SMALLEST_GROUP:
                self._flush()
                self._groups.append(RowGroupCounts(first=self._written, end=self._written))
        self._groups[-1].count(item)
        if isinstance(item, Arrivals):
            rows = [self._datapoint(row) for row in item.rows]
        else:
            rows = [{"owner": self._owner, "line": line.decode()} for line in other_lines(item)]
        self._batches.append(self._pa.RecordBatch.from_pylist(rows, schema=self._schema))
        if sum(batch.num_rows for batch in self._batches) >= _ROWS_PER_ROW_GROUP:
            self._flush()

    def _datapoint(self, row: Arrival) -> dict[str, Any]:
        return {
            "owner": row.owner,
            "arrived_at": microseconds_of(row.at),
            "stream_seq": row.seq,
            "key": row.key,
            _COLUMN[type(row.value)]: row.value,
            "ts": microseconds_of(row.ts),
            "labels": list(row.labels.items()),
        }

    def _flush(self) -> None:
        if self._batches:
            self._file.write_table(self._pa.Table.from_batches(self._batches))
            self._written += 1
            self._groups[-1].end = self._written
            self._batches = []

    def counts(self) -> dict[str, int]:
        return Counts.total(self._groups)


_COLUMN: dict[type, str] = {float: "number", int: "integer", str: "text", bool: "flag"}


@dataclass(frozen=True)
class ParquetRecording:
    path: Path

    async def header(self) -> RecordingHeader:
        lines = self._metadata(_HEADER).splitlines()
        try:
            return decode_header(map(from_json, lines))
        except NotARecording as error:
            self._reject(str(error))

    async def items(self, share: int, of: int) -> AsyncIterator[tuple[float, RecordingItem]]:
        try:
            groups = [RowGroupCounts(**counts) for counts in from_json(self._metadata(_INDEX))]
        except _READING_ERRORS:
            self._reject("its index cannot be read")
        own_groups = groups[share::of]
        for number, group in enumerate(own_groups):
            counted = RowGroupCounts(first=group.first, end=group.end)
            for item in self._items(group):
                counted.count(item)
                yield number / len(own_groups), item
            if counted != group:
                self._reject(f"the index counts {group}, but the file holds {counted}")

    def _metadata(self, name: bytes) -> bytes:
        _, pq = _pyarrow()
        try:
            value = (pq.read_metadata(self.path).metadata or {}).get(name)
        except _READING_ERRORS as error:
            self._reject(f"it is not a Parquet file, or is damaged ({error})")
        if value is None:
            self._reject("it is not a recording, or was cut short")
        return bytes(value)

    def _items(self, group: RowGroupCounts) -> Iterator[RecordingItem]:
        _, pq = _pyarrow()
        owner = ""
        try:
            with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
                for batch in file.iter_batches(_ROWS_AT_ONCE, row_groups=range(group.first, group.end)):
                    for item in _batch_items(batch, owner):
                        owner = item.owner if isinstance(item, OwnerHeader) else owner
                        yield item
        except _READING_ERRORS as error:
            self._reject(f"it is damaged, or not a recording ({error})")

    def _reject(self, problem: str) -> NoReturn:
        raise InvalidInput(f"{self.path}: {problem}", remedy="export the recording again") from None


def _batch_items(batch: RecordBatch, owner: str) -> Iterator[RecordingItem]:
    lines = batch["line"].to_pylist()
    begin = 0
    for is_datapoint, run in groupby(lines, key=lambda line: line is None):
        count = len(list(run))
        if is_datapoint:
            yield Arrivals(_arrivals(batch.slice(begin, count)))
        else:
            for line in lines[begin : begin + count]:
                item = decode_item(from_json(line), owner)
                owner = item.owner if isinstance(item, OwnerHeader) else owner
                yield item
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
        raise InvalidInput("a recording as Parquet needs pyarrow", remedy=install_remedy("parquet")) from None
    return pyarrow, pyarrow.parquet


def open_recording(path: Path) -> ParquetRecording | FileRecording:
    """Open a recording in either format."""
    try:
        with path.open("rb") as file:
            is_parquet = file.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from None
    return ParquetRecording(path) if is_parquet else FileRecording(path)

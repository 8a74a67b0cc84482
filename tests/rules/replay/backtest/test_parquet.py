"""A Parquet recording reads as it was written, in shares of whole owners, and is rejected if damaged."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet
import pytest

from rules.engine import Alarm, Arrival, Value
from rules.lanes.arrival_gap import ArrivalGap
from rules.replay.backtest.recording import parquet
from rules.replay.backtest.recording.model import (
    Arrivals,
    CalculatedChange,
    CalculatedChanges,
    DocumentVersion,
    Horizon,
    InitialAlarm,
    LaneCutover,
    LastDatapoint,
    OwnerHeader,
    RecordedApply,
    RecordedEvent,
    RecordedEvents,
    RecordingHeader,
    RecordingItem,
)
from rules.replay.backtest.recording.parquet import ParquetRecording, open_recording, write_parquet
from rules.replay.backtest.recording.recording import FileRecording, write_recording
from tests.clock.clock_setup import at
from tests.rules.replay.backtest.recorded_instance import flat
from tocsin.core.errors import InvalidInput

ID = UUID(int=7)
HEADER = RecordingHeader(
    at(0),
    at(10),
    at(99),
    False,
    [DocumentVersion("event_rule", "é", 2, {"name": "é", "above": 1}, 3, None)],
    [RecordedApply(3, at(1), at(1.5))],
    [LaneCutover("data", 0, 3, 17, None)],
    [Horizon("data", 0, at(98))],
    {0: [ArrivalGap(at(2), at(5)), ArrivalGap(at(30), at(31.5))], 3: [ArrivalGap(at(2), at(5))]},
)
VALUES: list[Value] = [1.5, -0.0, 3, 2**63 - 1, "text é", "", True, False, 1e300]


@dataclass
class GivenSource:
    owners: list[str] = field(default_factory=lambda: ["a", "b", "c"])
    breaks: bool = False

    async def header(self) -> RecordingHeader:
        return HEADER

    async def items(self, share: int, of: int) -> AsyncIterator[tuple[float, RecordingItem]]:
        for owner in self.owners:
            operator_events = (
                RecordedEvent(
                    *(2, ID, at(-9), at(-8), "caused", "alarm-snoozed", "", "hot", "", owner, ID, 3, ID),
                    payload={"until": "é"},
                ),
            )
            alarm = Alarm(ID, "hot", owner, 3, at(0), {"key": "k", "deep": [None]})
            initial = InitialAlarm(alarm, at(1), operator_events)
            yield 0.0, OwnerHeader(owner, 1, [initial], [LastDatapoint("k", at(-5), "x", at(-6), {})])
            for begin in (1, 50):
                yield 0.0, Arrivals([arrival(owner, begin + n, value) for n, value in enumerate(VALUES)])
            if self.breaks:
                raise ConnectionError("postgres went away")
            event = RecordedEvent(
                9, ID, at(3), at(4), "external", "trip", "", "", "", owner, None, None, ID, {"x": 1.0}
            )
            yield 0.0, RecordedEvents([event, event._replace(seq=10, alarm_id=ID, severity=2)])
            yield 0.0, CalculatedChanges([CalculatedChange(owner, "k", "stale", at(5), 1.5)])


def arrival(owner: str, seq: int, value: Value) -> Arrival:
    labels = {"zone": "é", "line": ""} if seq % 2 else {}
    at_ = at(seq) + timedelta(microseconds=seq)
    return Arrival(at_, seq, owner, f"k.{seq % 3}", value, at_ - timedelta(microseconds=seq % 2), labels)


@pytest.fixture
async def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(parquet, "_SMALLEST_GROUP", 0)
    monkeypatch.setattr(parquet, "_ROWS_PER_ROW_GROUP", 10)
    path = tmp_path / "recording.parquet"
    counts = await write_parquet(GivenSource(), path)
    assert counts == {"owners": 3, "datapoints": 54, "events": 6, "calculated": 3}
    return path


async def read(path: Path) -> list[Any]:
    source = open_recording(path)
    return [await source.header(), *flat([item async for _, item in source.items(0, 1)])]


async def test_both_formats_read_as_they_were_written(file: Path, tmp_path: Path) -> None:
    lines = tmp_path / "recording.ndjson.gz"
    await write_recording(GivenSource(), lines)
    assert isinstance(open_recording(file), ParquetRecording)
    assert isinstance(open_recording(lines), FileRecording)
    expected = [HEADER, *flat([item async for _, item in GivenSource().items(0, 1)])]
    assert repr(await read(file)) == repr(await read(lines)) == repr(expected)


async def test_shares_have_whole_owners_and_together_everything(file: Path) -> None:
    source = ParquetRecording(file)
    shares = [[item async for _, item in source.items(share, 2)] for share in (0, 1)]
    names = [[item.owner for item in share if isinstance(item, OwnerHeader)] for share in shares]
    assert names == [["a", "c"], ["b"]]
    assert sum(len(flat(share)) for share in shares) == len(await read(file)) - 1


async def test_a_recording_that_is_not_completed_does_not_replace_another(file: Path) -> None:
    """The error is that of the source."""
    before = await read(file)
    with pytest.raises(ConnectionError):
        await write_parquet(GivenSource(breaks=True), file)
    assert await read(file) == before
    assert [path.name for path in await asyncio.to_thread(lambda: list(file.parent.iterdir()))] == [file.name]


async def test_a_damaged_column_is_rejected(file: Path) -> None:
    """Parquet has checksums for columns, and none for its footer."""
    column = pyarrow.parquet.read_metadata(file).row_group(0).column(3)
    assert column.path_in_schema == "stream_seq"
    whole = bytearray(await asyncio.to_thread(file.read_bytes))
    whole[column.dictionary_page_offset + column.total_compressed_size - 3] ^= 0x55
    await asyncio.to_thread(file.write_bytes, whole)
    with pytest.raises(InvalidInput, match=r"recording.parquet: it is damaged"):
        await read(file)


@pytest.mark.parametrize(
    "damage", [lambda whole: whole[:-1], lambda whole: whole[:50], lambda whole: b"PAR1"]
)
async def test_a_truncated_file_is_rejected(file: Path, damage: Callable[[bytes], bytes]) -> None:
    whole = await asyncio.to_thread(file.read_bytes)
    await asyncio.to_thread(file.write_bytes, damage(whole))
    with pytest.raises(InvalidInput, match=r"recording.parquet: .* export the recording again"):
        await read(file)


async def test_other_tools_can_read_it(file: Path) -> None:
    rows = pyarrow.parquet.read_table(
        file, columns=["owner", "key", "number"], filters=[("number", ">", 1.0)]
    )
    assert rows.num_rows == 3 * 2 * 2
    assert rows.to_pylist()[0] == {"owner": "a", "key": "k.1", "number": 1.5}


async def test_without_the_extra_the_remedy_is_named(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        InvalidInput, match=r"needs pyarrow: install the extra 'parquet' .*requirements/parquet.txt"
    ):
        await read(file)
    with pytest.raises(
        InvalidInput, match=r"needs pyarrow: install the extra 'parquet' .*requirements/parquet.txt"
    ):
        await write_parquet(GivenSource(), tmp_path / "other.parquet")

"""A recording as Parquet is read back as it was written, shared by groups of owners, and refused if it is not whole."""

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
from rules.replay.backtest.recording.parquet import ParquetSource, open_recording, write_parquet
from rules.replay.backtest.recording.recording import RecordingSource, write_recording
from tests.clock.clock_setup import at
from tests.rules.replay.backtest.recorded_instance import flat
from tocsin.core.errors import InvalidInput

ID = UUID(int=7)
STORY = RecordingHeader(
    at(0),
    at(10),
    at(99),
    False,
    [DocumentVersion("event_rule", "é", 2, {"name": "é", "above": 1}, 3, None)],
    [RecordedApply(3, at(1), at(1.5))],
    [LaneCutover("data", 0, 3, 17, None)],
    [Horizon("data", 0, at(98))],
)
VALUES: list[Value] = [1.5, -0.0, 3, 2**63 - 1, "text é", "", True, False, 1e300]


@dataclass
class Given:
    owners: list[str] = field(default_factory=lambda: ["a", "b", "c"])
    breaks: bool = False

    async def header(self) -> RecordingHeader:
        return STORY

    async def items(self, share: int, of: int) -> AsyncIterator[tuple[float, RecordingItem]]:
        for owner in self.owners:
            acts = (
                RecordedEvent(
                    *(2, ID, at(-9), at(-8), "caused", "alarm-snoozed", "", "hot", "", owner, ID, 3, ID),
                    payload={"until": "é"},
                ),
            )
            alarm = Alarm(ID, "hot", owner, 3, at(0), {"key": "k", "deep": [None]})
            held = InitialAlarm(alarm, at(1), acts)
            yield 0.0, OwnerHeader(owner, 1, [held], [LastDatapoint("k", at(-5), "x", at(-6), {})])
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
    counted = await write_parquet(Given(), path)
    assert counted == {"owners": 3, "datapoints": 54, "events": 6, "calculated": 3}
    return path


async def read(path: Path) -> list[Any]:
    source = open_recording(path)
    return [await source.header(), *flat([item async for _, item in source.items(0, 1)])]


async def test_what_is_read_is_what_was_written_in_either_format(file: Path, tmp_path: Path) -> None:
    lines = tmp_path / "recording.ndjson.gz"
    await write_recording(Given(), lines)
    assert isinstance(open_recording(file), ParquetSource)
    assert isinstance(open_recording(lines), RecordingSource)
    told = [STORY, *flat([item async for _, item in Given().items(0, 1)])]
    assert repr(await read(file)) == repr(await read(lines)) == repr(told)


async def test_shares_have_whole_owners_and_together_everything(file: Path) -> None:
    source = ParquetSource(file)
    shares = [[item async for _, item in source.items(share, 2)] for share in (0, 1)]
    names = [[item.owner for item in share if isinstance(item, OwnerHeader)] for share in shares]
    assert names == [["a", "c"], ["b"]]
    assert sum(len(flat(share)) for share in shares) == len(await read(file)) - 1


async def test_what_was_not_written_to_its_end_takes_no_place(file: Path) -> None:
    """And that the source went away is not said to be the file's fault."""
    before = await read(file)
    with pytest.raises(ConnectionError):
        await write_parquet(Given(breaks=True), file)
    assert await read(file) == before
    assert [one.name for one in await asyncio.to_thread(lambda: list(file.parent.iterdir()))] == [file.name]


async def test_a_damaged_page_is_refused(file: Path) -> None:
    """What Parquet has checksums of: the columns, not its own footer."""
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
async def test_a_file_that_was_cut_is_refused(file: Path, damage: Callable[[bytes], bytes]) -> None:
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
    with pytest.raises(InvalidInput, match=r"needs pyarrow: pip install 'tocsin\[parquet\]'"):
        await read(file)
    with pytest.raises(InvalidInput, match=r"needs pyarrow: pip install 'tocsin\[parquet\]'"):
        await write_parquet(Given(), tmp_path / "other.parquet")

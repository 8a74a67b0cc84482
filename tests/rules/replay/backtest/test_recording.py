"""A recording reads as it was written, replays like the database, and is rejected if it is damaged."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from rules.engine import Arrival
from rules.replay.backtest.parallel import backtest
from rules.replay.backtest.recording import container, recording
from rules.replay.backtest.recording.codec import datapoints_line, decode_item, encoded
from rules.replay.backtest.recording.container import MemberWriter
from rules.replay.backtest.recording.database import open_database_recording
from rules.replay.backtest.recording.model import (
    Arrivals,
    LastDatapoint,
    OwnerHeader,
    Recording,
    RecordingHeader,
    RecordingItem,
)
from rules.replay.backtest.recording.parquet import write_parquet
from rules.replay.backtest.recording.recording import FileRecording, write_recording
from tests.clock.clock_setup import at
from tests.rules.apply.apply_setup import note
from tests.rules.replay.backtest.recorded_instance import RecordedInstance, flat
from tests.rules.replay.backtest.series_rules import HOT, QUIET, TYPE
from tests.sessions import Sessions
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput
from tocsin.core.settings import Settings

CHANNEL = '---\nchannel: {name: ops, webhook: {url: "https://hooks.example.com/1"}}\n'
RULES = TYPE.format("4s") + HOT + "  for: 3s\n  notify: [ops]\n" + QUIET + CHANNEL


@pytest.fixture
async def instance(settings: Settings, connection: Connection, sessions: Sessions) -> RecordedInstance:
    recorded_instance = RecordedInstance(settings, sessions)
    await recorded_instance.begin()
    await recorded_instance.apply_only(RULES, 0)
    for second in range(0, 60, 3):
        value = 50.0 + second % 30
        await recorded_instance.set_time(second)
        await recorded_instance.arrive(
            [recorded_instance.arrival(second, value, "dsp.a", f"plant-{n}", zone="é") for n in (1, 2, 3)]
        )
    await note(connection, owner="plant-2", payload={"deep": [1, {"x": None}]})
    await recorded_instance.settle(200)
    return recorded_instance


@pytest.fixture
async def file(instance: RecordedInstance, settings: Settings, tmp_path: Path) -> Path:
    path = tmp_path / "recording.ndjson.gz"
    async with open_database_recording(settings, at(0), at(200)) as source:
        await write_recording(source, path)
    return path


async def test_a_file_holds_the_recording_of_the_database(settings: Settings, file: Path) -> None:
    async with open_database_recording(settings, at(0), at(200)) as source:
        assert await FileRecording(file).header() == await source.header()
        from_database = [item async for _, item in source.items(0, 1)]
    from_file = [item async for _, item in FileRecording(file).items(0, 1)]
    assert flat(from_file) == flat(from_database)


async def test_file_and_database_replay_alike_in_any_number_of_processes(
    settings: Settings, instance: RecordedInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_SMALLEST_GROUP", 0)
    source = FileRecording(tmp_path / "in-groups.ndjson.gz")
    async with open_database_recording(settings, at(0), at(200)) as database:
        await write_recording(database, source.path)
    header = await source.header()
    alone = await backtest(source, header)
    shares = [[item async for _, item in source.items(share, 2)] for share in (0, 1)]
    assert [sum(isinstance(item, OwnerHeader) for item in share) for share in shares] == [2, 2]
    assert alone.mismatches == []
    assert alone.datapoints == 60
    assert len(alone.recorded_transitions) >= 6
    assert alone.replayed_notifications["notify:hot:ops", "hot"] >= 6
    assert await backtest(source, header, jobs=2) == alone
    async with open_database_recording(settings, at(0), at(200)) as database:
        assert await backtest(database, header, jobs=2) == alone


INSTANTS = st.datetimes(timezones=st.just(UTC)) | st.just(at(0))
ARRIVALS = st.builds(
    Arrival,
    at=INSTANTS,
    seq=st.integers(0, 2**63 - 1),
    owner=st.just("plant"),
    key=st.sampled_from(["a", "a.b", "é"]),
    value=st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
    | st.booleans(),
    ts=INSTANTS,
    labels=st.dictionaries(st.sampled_from(["zone", "line"]), st.text("abé", max_size=3)),
    is_late=st.just(False),
)


@given(st.lists(ARRIVALS, min_size=1, max_size=30), st.booleans())
def test_datapoints_are_read_as_they_were_written(rows: list[Arrival], is_measured_at_arrival: bool) -> None:
    if is_measured_at_arrival:
        rows = [row._replace(ts=row.at) for row in rows]
    item = decode_item(from_json(encoded(datapoints_line(rows))), "plant")
    assert isinstance(item, Arrivals)
    assert item.rows == rows
    assert [type(row.value) for row in item.rows] == [type(row.value) for row in rows]


def members(file: Path) -> list[bytes]:
    """The members of the file: the header, the only group, and the index."""
    whole, texts = file.read_bytes(), []
    while whole:
        member = zlib.decompressobj(wbits=31)
        texts.append(member.decompress(whole))
        whole = member.unused_data
    assert texts.pop() == b""
    return texts


def change_lines(file: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Change the lines of a file, in a container that is not damaged."""
    rules, owners, index = members(file)
    lines = change((rules + owners).splitlines(keepends=True))
    assert lines != (rules + owners).splitlines(keepends=True)
    first = next((n for n, line in enumerate(lines) if line.startswith(b'{"owner"')), len(lines))
    with file.open("wb") as output:
        written = MemberWriter(output)
        written.write(b"".join(lines[:first]))
        written.begin()
        groups = json.loads(index)
        groups["end"][0]["offset"] = written.offset
        written.write(b"".join(lines[first:]))
        written.begin()
        written.write(encoded(groups))
        written.close()


def on_datapoints(before: bytes, after: bytes) -> Callable[[list[bytes]], list[bytes]]:
    return lambda lines: [
        line.replace(before, after, 1) if line.startswith(b'["d"') else line for line in lines
    ]


def without_datapoints(lines: list[bytes]) -> list[bytes]:
    index = next(n for n, line in enumerate(lines) if line.startswith(b'["d"'))
    return lines[:index] + lines[index + 1 :]


def of_newer_version(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b'"version":5', b'"version":6'), *lines[1:]]


def of_no_owner(lines: list[bytes]) -> list[bytes]:
    datapoints = next(line for line in lines if line.startswith(b'["d"'))
    return [line for line in lines if not line.startswith((b'{"owner"', b"["))] + [b'{"owner":1}', datapoints]


CHANGED: list[tuple[Callable[[list[bytes]], list[bytes]], str]] = [
    (without_datapoints, r"the index counts .*datapoints=60, .* holds .*datapoints=40, "),
    (of_newer_version, "version 6, this Tocsin reads version 5"),
    (on_datapoints(b"50.0", b"NaN"), "not a line of a recording"),
    (on_datapoints(b"50.0", b"1e999"), "not a line of a recording"),
    (on_datapoints(b"50.0", b"null"), "not a line of a recording"),
    (on_datapoints(b"[50.0,", b"["), "not a line of a recording"),
    (on_datapoints(b'"d"', b'"x"'), "not a line of a recording"),
    (of_no_owner, "not a line of a recording"),
    (lambda lines: [*lines, b'["c",' + b"[" * 100_000 + b"\n"], "not a line of a recording"),
    (lambda lines: [*lines, b"[]\n"], "not a line of a recording"),
    (lambda lines: [b"{}\n"], "not a line of a recording"),
    (lambda lines: lines[:1], "ends within its header"),
    (lambda lines: [*lines, b"x" * 5_000_000], "longer than"),
]
DAMAGED: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda whole: whole[:-1], "has no recording trailer"),
    (lambda whole: whole[:20], "cut short here"),
    (lambda whole: b"PK" + whole[2:], ":0: the file is not gzip"),
    (lambda whole: whole + whole, "is damaged here"),
    (lambda whole: whole + b"\n", "has no recording trailer"),
    (lambda whole: b"", "cut short here"),
]


async def read(file: Path) -> list[Any]:
    source = FileRecording(file)
    return [await source.header(), *flat([item async for _, item in source.items(0, 1)])]


async def test_a_damaged_file_is_rejected(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "_MAX_LINE_BYTES", 4 * 1024 * 1024)
    whole = await asyncio.to_thread(file.read_bytes)
    for change, error in CHANGED:
        change_lines(file, change)
        with pytest.raises(InvalidInput, match=error):
            await read(file)
        await asyncio.to_thread(file.write_bytes, whole)
    for damage, error in DAMAGED:
        await asyncio.to_thread(file.write_bytes, damage(whole))
        with pytest.raises(InvalidInput, match=error):
            await read(file)


class ManySeries:
    """A source of one owner with very many series, and a window that begins in the middle."""

    last = tuple(
        LastDatapoint(f"disk.{number}", at(0), 1.5, at(0), {"device": f"/dev/{number}" * 5})
        for number in range(60_000)
    )

    async def header(self) -> RecordingHeader:
        return RecordingHeader(at(0), at(0), at(0), False, [], [], [], [], {})

    async def items(self, share: int, of: int) -> AsyncIterator[tuple[float, RecordingItem]]:
        yield 0.0, OwnerHeader("plant", 0, (), self.last)


async def test_an_owner_may_have_very_many_series(tmp_path: Path) -> None:
    path = tmp_path / "recording.ndjson.gz"
    await write_recording(ManySeries(), path)
    _, header = await read(path)
    assert tuple(header.last_datapoints) == ManySeries.last


async def test_a_byte_that_changed_is_rejected_or_has_no_effect(file: Path) -> None:
    whole, expected = await asyncio.to_thread(file.read_bytes), await read(file)
    rejected = 0
    # The offsets at the end, where the trailer is, and every seventh of the others.
    for offset in {*range(0, len(whole), 7), *range(len(whole) - 40, len(whole))}:
        changed = bytes([whole[offset] ^ 0x55])
        await asyncio.to_thread(file.write_bytes, whole[:offset] + changed + whole[offset + 1 :])
        try:
            assert await read(file) == expected
        except InvalidInput:
            rejected += 1
    assert rejected > 100


class Interrupted(Exception):
    pass


def opened(source: Recording) -> AsyncGenerator[tuple[float, RecordingItem], None]:
    return cast(AsyncGenerator[tuple[float, RecordingItem], None], source.items(0, 1))


class OpenedSource(NamedTuple):
    """A source whose items the test closes, also when their reader fails."""

    opened_header: RecordingHeader
    opened_items: AsyncIterator[tuple[float, RecordingItem]]

    async def header(self) -> RecordingHeader:
        return self.opened_header

    def items(self, share: int, of: int) -> AsyncIterator[tuple[float, RecordingItem]]:
        return self.opened_items


@pytest.mark.parametrize("write", [write_recording, write_parquet])
async def test_an_interrupted_export_leaves_an_existing_recording_unchanged(
    settings: Settings, file: Path, write: Callable[..., Any]
) -> None:
    def interrupt(done: float) -> None:
        raise Interrupted

    def read_folder() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in file.parent.iterdir()}

    before = read_folder()

    async def export() -> None:
        async with (
            open_database_recording(settings, at(0), at(200)) as source,
            aclosing(opened(source)) as items,
        ):
            with pytest.raises(Interrupted):
                await write(OpenedSource(await source.header(), items), file, interrupt)

    await export()
    assert read_folder() == before


@pytest.mark.parametrize("version", [1, 2, 3])
async def test_a_recording_of_an_older_version_is_rejected_with_a_remedy(
    tmp_path: Path, version: int
) -> None:
    file = tmp_path / "old.ndjson.gz"
    file.write_bytes(
        gzip.compress(b'{"format":"tocsin-recording","version":%d,"start":0}\n["d",0]\n' % version)
    )
    error = rf"old.ndjson.gz:1: .* version {version}, this Tocsin reads version 5: export the recording again"
    with pytest.raises(InvalidInput, match=error):
        await FileRecording(file).header()


async def test_a_changed_value_is_a_mismatch(file: Path) -> None:
    """The comparison is effective: another value of one datapoint gives another alarm."""
    change_lines(file, on_datapoints(b",68.0,", b",64.0,"))
    source = FileRecording(file)
    result = await backtest(source, await source.header())
    assert {one.what for one in result.mismatches} == {"hot"}
    assert "the nearest one in the replay is at" in result.mismatches[0].cause

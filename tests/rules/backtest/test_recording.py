"""A recording is read back as it was written, replays as the database does, and is refused when anything is wrong."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from rules.backtest.database import recorded
from rules.backtest.recording import RecordingSource, write_recording
from rules.backtest.running import backtest
from tests.clock.beats import at
from tests.rules.applying import note
from tests.rules.backtest.living import Living
from tests.rules.backtest.test_identity import HOT, QUIET, TYPE
from tests.sessions import Sessions
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput
from tocsin.core.settings import Settings

RULES = TYPE.format("4s") + HOT + "  for: 3s\n" + QUIET


@pytest.fixture
async def lived(connection: Connection, sessions: Sessions) -> Living:
    live = Living(connection, await sessions("clock"))
    await live.begin()
    await live.only(RULES, 0)
    for second in range(0, 60, 3):
        value = 50.0 + second % 30
        await live.arrive([live.arrival(second, value, "dsp.a", f"plant-{n}", zone="é") for n in (1, 2, 3)])
    await note(connection, owner="plant-2", payload={"deep": [1, {"x": None}]})
    await live.come_to_rest(200, ["plant-1", "plant-2", "plant-3"])
    return live


@pytest.fixture
async def file(lived: Living, settings: Settings, tmp_path: Path) -> Path:
    path = tmp_path / "recording.ndjson.gz"
    async with recorded(settings, at(0), at(200)) as source:
        await write_recording(source, path)
    return path


async def test_a_file_holds_what_the_database_does(settings: Settings, file: Path) -> None:
    async with recorded(settings, at(0), at(200)) as source:
        assert await RecordingSource(file).story() == await source.story()
        from_database = [part async for _, part in source.parts(0, 1)]
    assert [part async for _, part in RecordingSource(file).parts(0, 1)] == from_database


async def test_both_replay_alike_in_any_number_of_processes(settings: Settings, file: Path) -> None:
    source = RecordingSource(file)
    story = await source.story()
    alone = await backtest(source, story)
    assert alone.differences == []
    assert alone.datapoints == 60
    assert len(alone.then) >= 6
    assert await backtest(source, story, jobs=3) == alone
    async with recorded(settings, at(0), at(200)) as database:
        assert await backtest(database, story, jobs=2) == alone


def read(file: Path) -> bytes:
    return file.read_bytes()


def spoil_lines(file: Path, spoil: Callable[[list[bytes]], list[bytes]]) -> None:
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    spoil_bytes(file, lambda _: gzip.compress(b"".join(spoil(lines))))


def spoil_bytes(file: Path, spoil: Callable[[bytes], bytes]) -> None:
    before = file.read_bytes()
    file.write_bytes(spoil(before))
    assert file.read_bytes() != before


def cut(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def one_less(lines: list[bytes]) -> list[bytes]:
    place = next(n for n, line in enumerate(lines) if line.startswith(b'["d"'))
    return lines[:place] + lines[place + 1 :]


def newer(lines: list[bytes]) -> list[bytes]:
    return [lines[0].replace(b'"version":1', b'"version":2'), *lines[1:]]


def not_a_number(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b",50.0,", b",NaN,") for line in lines]


def more(lines: list[bytes]) -> list[bytes]:
    return [*lines, lines[-1]]


def deep(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-1], b'["v",' + b"[" * 100_000 + b"\n", lines[-1]]


SPOILED: list[tuple[Callable[[list[bytes]], list[bytes]], str]] = [
    (cut, "ends without its last line"),
    (one_less, "the file holds"),
    (newer, "version 2, this Tocsin reads version 1"),
    (not_a_number, "not a line of a recording"),
    (more, "behind the end"),
    (deep, "not a line of a recording"),
    (lambda lines: [b"{}\n"], "not a line of a recording"),
    (lambda lines: lines[:1], "ends before its rules do"),
    (lambda lines: [b"x" * 5_000_000], "longer than"),
]
DAMAGED: list[Callable[[bytes], bytes]] = [
    lambda whole: whole[:-200],
    lambda whole: b"PK" + whole[2:],
    lambda whole: whole[:99] + b"~~~" + whole[102:],
]


async def test_a_file_that_is_not_whole_is_refused(file: Path) -> None:
    whole = read(file)
    for spoil, why in SPOILED:
        spoil_lines(file, spoil)
        source = RecordingSource(file)
        with pytest.raises(InvalidInput, match=why):
            await backtest(source, await source.story())
        spoil_bytes(file, lambda _: whole)
    for damage in DAMAGED:
        spoil_bytes(file, damage)
        with pytest.raises(InvalidInput, match=r"recording.ndjson.gz:\d+: the file is"):
            await backtest(source, await source.story())
        spoil_bytes(file, lambda _: whole)


async def test_a_changed_value_is_found(file: Path) -> None:
    """The identity is no formality: another value of one datapoint is another alarm."""
    spoil_lines(
        file,
        lambda lines: [one.replace(b",68.0,", b",64.0,") if one[:4] == b'["d"' else one for one in lines],
    )
    source = RecordingSource(file)
    found = await backtest(source, await source.story())
    assert {one.what for one in found.differences} == {"hot"}
    assert "the nearest that the replay has is at" in found.differences[0].cause

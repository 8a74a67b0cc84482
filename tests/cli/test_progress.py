"""The progress bar: shown while a command works, removed when it ends, and never in a pipe."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tests.cli.terminal import TOCSIN, Terminal
from tests.rules.replay.backtest.recorded_instance import RecordedInstance
from tests.sessions import open_sessions
from tests.wait import eventually_sync
from tocsin.core.settings import Settings

WINDOW = ("--since", "2026-03-02T08:00Z", "--until", "2026-03-02T08:03:20Z")


@pytest.fixture
async def lived(settings: Settings) -> AsyncIterator[RecordedInstance]:
    async with open_sessions(settings) as sessions:
        live = RecordedInstance(settings, sessions)
        await live.begin()
        await live.apply_only("event_rule: {name: hot, datapoint: dsp.*, above: 65}", 0)
        await live.arrive([live.arrival(1, 71.0, "dsp.a", "plant-1")])
        await live.settle(200)
        yield live


async def test_a_terminal_shows_a_bar_that_is_gone_at_the_end(
    lived: RecordedInstance, tocsin: CommandLine, tmp_path: Path
) -> None:
    file = str(tmp_path / "recording.ndjson.gz")
    for what, command, answer in (
        ("exporting", ("export", "-o", file, *WINDOW), "1 datapoints, "),
        ("replaying", ("backtest", "--recording", file, "--jobs", "1"), "the replay equals the recording"),
    ):
        with Terminal((*TOCSIN, *command), tocsin.environment) as terminal:
            assert await asyncio.to_thread(terminal.wait) == 0, terminal.written
        assert f"{what} " in terminal.written
        assert "100%" in terminal.written
        assert terminal.written.count("\x1b[?25l") == terminal.written.count("\x1b[?25h") == 1, "the cursor"
        assert what not in terminal.screen
        assert answer in terminal.screen.replace("\n", "")


async def test_a_pipe_has_no_bar(lived: RecordedInstance, tocsin: CommandLine, tmp_path: Path) -> None:
    file = str(tmp_path / "recording.ndjson.gz")
    for command in (("export", "-o", file, *WINDOW), ("backtest", "--recording", file, "--jobs", "1")):
        assert (await asyncio.to_thread(tocsin, *command)).err == ""


def test_ctrl_c_ends_all_processes_of_a_backtest_without_output() -> None:
    with Terminal((sys.executable, "-m", "tests.rules.replay.backtest.endless_backtest"), {}) as terminal:
        eventually_sync(lambda: terminal.read() and "12%" in terminal.written, "it has begun", 60)
        terminal.press(b"\x03")
        assert terminal.wait() == 130
    assert "Traceback" not in terminal.written
    assert "replaying" not in terminal.screen

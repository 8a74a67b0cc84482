"""`tocsin export` and `tocsin backtest`: recordings are replayed and compared, and nothing changes."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Answer, CommandLine
from tests.cli.terminal import TOCSIN
from tests.clock.clock_setup import at
from tests.rules.replay.backtest.recorded_instance import RecordedInstance
from tests.sessions import open_sessions
from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

RULES = """
datapoint_type:
  name: load
  key: dsp.*
  interval: 4s
---
event_rule:
  name: hot
  datapoint: dsp.*
  above: 65
  notify: [ops]
---
event_rule:
  name: quiet
  datapoint: dsp.*
  absent: true
---
channel:
  name: ops
  webhook: {url: "https://hooks.example.com/1"}
"""
STRICTER = "event_rule:\n  name: hot\n  datapoint: dsp.*\n  above: 60\n  notify: [ops]\n"
LOOSER = "event_rule:\n  name: hot\n  datapoint: dsp.*\n  above: 90\n"
LATER = "event_rule:\n  name: hot\n  datapoint: dsp.*\n  above: 65\n  for: 3s\n  notify: [ops]\n"
WINDOW = ("--since", "2026-03-02T08:00Z", "--until", "2026-03-02T08:03:20Z", "--jobs", "1")


@pytest.fixture
async def lived(settings: Settings) -> AsyncIterator[RecordedInstance]:
    async with open_sessions(settings) as sessions:
        live = RecordedInstance(settings, sessions)
        await live.begin()
        await live.apply_only(RULES, 0)
        for second in range(0, 60, 3):
            value = 50.0 + second % 30
            # The series becomes stale after the last one, and real times are not round numbers of milliseconds.
            seconds = second + (0.000_141 if second == 57 else 0)
            await live.set_time(seconds)
            await live.arrive([live.arrival(seconds, value, "dsp.a", f"<b>plant</b>-{n}") for n in (1, 2)])
        await live.settle(200)
        yield live


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return tmp_path / "try.yaml"


async def typed(tocsin: CommandLine, *words: str, exit_code: int = 0) -> Answer:
    return await asyncio.to_thread(tocsin, *words, exit_code=exit_code)


async def tried(tocsin: CommandLine, rules: Path, text: str) -> Any:
    rules.write_text(text)  # noqa: ASYNC240
    return (await typed(tocsin, "backtest", "--rules", str(rules), "--json", *WINDOW)).json


async def test_a_historical_replay_equals_the_recording_and_sends_nothing(
    tocsin: CommandLine, lived: RecordedInstance, connection: Connection
) -> None:
    answer = await typed(tocsin, "backtest", "--historical", *WINDOW)
    assert "nothing was sent" in answer.lines[0]
    assert answer.lines[-1] == ("the replay equals the recording: 8 alarm transitions, 2 staleness changes")
    assert re.search(r"^hot +4 +4 +0 +0 +0 +0 +5m28s +5m28s", answer.out, re.MULTILINE)
    assert re.search(r"^quiet +2 +2 +0 +0 +0 +0 +4m25s +4m25s", answer.out, re.MULTILINE)
    report = (await typed(tocsin, "backtest", "--json", *WINDOW)).json
    assert report["mismatches"] == []
    assert {rule["rule"]: rule["time_then_s"] for rule in report["rules"]} == {
        "hot": 328.0,
        "quiet": 265.999718,
    }
    assert report["notifications"] == [{"action_rule": "notify:hot:ops", "rule": "hot", "then": 6, "now": 6}]
    assert await all_rows(connection, "select * from tocsin.action") == []


async def test_a_window_that_starts_before_the_retention_is_reported(
    tocsin: CommandLine, lived: RecordedInstance, connection: Connection, tmp_path: Path
) -> None:
    await connection.execute(
        "insert into tocsin.datapoint_kept (owner, key, arrived_at, ts, value)"
        " select owner, key, arrived_at, ts, value from tocsin.datapoint order by arrived_at limit 1"
    )
    said = (
        "retention has removed data from before 2026-03-03 00:00:00Z, so alarms of that time may be missing"
    )
    for words in (
        ("backtest", "--historical", *WINDOW),
        ("export", *WINDOW[:4], "-o", str(tmp_path / "x.gz")),
    ):
        answer = await typed(tocsin, *words)
        assert f"{said}: choose a later --since" in answer.err
    await connection.execute("delete from tocsin.datapoint_kept")
    assert "retention" not in (await typed(tocsin, "backtest", "--historical", *WINDOW)).err


async def test_a_mismatch_is_printed_with_its_cause_and_fails(
    tocsin: CommandLine, lived: RecordedInstance, connection: Connection
) -> None:
    await connection.execute("delete from tocsin.datapoint where arrived_at = %s", (at(18),))
    answer = await typed(tocsin, "backtest", "--historical", *WINDOW, exit_code=1)
    assert "mismatches between the replay and the recording" in answer.out
    assert "the nearest one in the replay is at 2026-03-02T08:00:21Z" in answer.out


async def test_candidate_rules_are_compared_with_the_recording(
    tocsin: CommandLine, lived: RecordedInstance, rules: Path
) -> None:
    stricter = await tried(tocsin, rules, STRICTER)
    assert stricter["alarms"] == {"then": 6, "now": 6, "earlier": 4, "same": 2}
    looser = await tried(tocsin, rules, LOOSER)
    assert looser["alarms"] == {"then": 6, "now": 2, "lost": 4, "same": 2}
    assert looser["notifications"] == [{"action_rule": "notify:hot:ops", "rule": "hot", "then": 6, "now": 0}]
    later = await tried(tocsin, rules, LATER)
    assert later["alarms"] == {"then": 6, "now": 6, "later": 4, "same": 2}
    assert later["noisiest"][0] == {"owner": "<b>plant</b>-1", "key": "dsp.a", "alarms": 3}
    gained = await tried(tocsin, rules, STRICTER.replace("name: hot", "name: warm"))
    assert gained["alarms"] == {"then": 6, "now": 10, "gained": 4, "same": 6}


async def test_a_recording_replays_without_a_database_and_draws_a_page(
    tocsin: CommandLine, alone: CommandLine, lived: RecordedInstance, rules: Path, tmp_path: Path
) -> None:
    file, page = tmp_path / "recording.ndjson.gz", tmp_path / "report.html"
    answer = await typed(tocsin, "export", "-o", str(file), *WINDOW[:4])
    assert "3 owners, 40 datapoints" in answer.out
    rules.write_text(LATER)  # noqa: ASYNC240
    options = ("--recording", str(file), "--html", str(page))
    answer = await typed(alone, "backtest", "--rules", str(rules), *options)
    assert re.search(
        r"^later +hot +<b>plant</b>-1 +2026-03-02 08:00:18Z +2026-03-02 08:00:21Z", answer.out, re.M
    )
    text = page.read_text()
    seen = Page()
    seen.feed(text)
    assert seen.classes >= {"then", "now", "stale"}
    assert seen.open == []
    assert "<b>plant" not in text
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"https?://|<script|@import|url\(", text)


async def test_a_recording_may_be_parquet(
    tocsin: CommandLine, lived: RecordedInstance, tmp_path: Path
) -> None:
    report = []
    for name in ("recording.parquet", "recording.ndjson.gz"):
        file = str(tmp_path / name)
        answer = await typed(tocsin, "export", "-o", file, *WINDOW[:4])
        assert "3 owners, 40 datapoints" in answer.out
        report.append((await typed(tocsin, "backtest", "--recording", file, "--jobs", "1", "--json")).json)
    assert report[0] == report[1]
    assert report[0]["datapoints"] == 40


@pytest.mark.parametrize("jobs", ["1", "2"])
async def test_warnings_of_every_process_go_to_stderr(
    tocsin: CommandLine, lived: RecordedInstance, rules: Path, tmp_path: Path, jobs: str
) -> None:
    """A message template that names a label which the datapoints lack logs a warning."""
    file = str(tmp_path / "recording.ndjson.gz")
    await typed(tocsin, "export", "-o", file, *WINDOW[:4])
    rules.write_text(f"{STRICTER}  message: 'in {{{{ labels.site }}}}'\n")  # noqa: ASYNC240
    words = ("backtest", "--rules", str(rules), "--recording", file, "--jobs", jobs, "--json")
    process = await asyncio.create_subprocess_exec(
        *TOCSIN, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    assert json.loads(out)["datapoints"] == 40
    logged = [json.loads(line) for line in err.decode().splitlines()]
    assert {line["level"] for line in logged} == {"warning"}


class Page(HTMLParser):
    """Tags that were opened and not closed, and the classes of what is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.classes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        if tag == "rect":
            self.classes.add(str(dict(attrs).get("class")))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--historical", "--rules", "x.yaml"), "uses the rules of the time"),
        (("--recording", "x", "--since", "1d"), "has its own window"),
        (("--recording", "missing.gz"), "cannot read missing.gz"),
        (("--recording", "missing.gz", "--html", "no/such.html"), "--html no/such.html cannot be written"),
    ],
)
def test_contradicting_options_are_refused(alone: CommandLine, words: tuple[str, ...], why: str) -> None:
    assert why in alone("backtest", *words, exit_code=1).err


def test_an_export_that_cannot_be_written_is_refused_before_it_begins(alone: CommandLine) -> None:
    assert "--output no/such.gz cannot be written" in alone("export", "-o", "no/such.gz", exit_code=1).err

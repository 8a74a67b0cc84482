"""`tocsin forget`: the contents of an owner are gone everywhere, nothing else is, and every check still passes."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Answer, CommandLine
from tests.cli.service_processes import running_services
from tests.sql import all_rows, one_row
from tests.wait import eventually
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

PLANTED = "Ada-Lovelace-1815"
RULES = """
event_rule:
  name: hot
  datapoint: dsp.*
  above: 65
---
action_rule: {name: ship, on: event, when: 'type == "order-placed"', action: note}
---
action:
  name: note
  log: {message: "order of {{ payload.name }}"}
"""
Typed = Callable[..., Any]


async def contents(connection: Connection) -> dict[str, str]:
    """Every row of every table, as text."""
    tables = await all_rows(
        connection,
        "select c.relname as name from pg_class c where c.relnamespace = 'tocsin'::regnamespace"
        " and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> 'migration'",
    )
    texts = {}
    for table in (row["name"] for row in tables):
        row = await one_row(connection, f"select string_agg(t::text, E'\\n') as rows from tocsin.{table} t")
        texts[table] = row["rows"] or ""
    return texts


async def messages(settings: Settings, stream: str) -> list[bytes]:
    bus = await connect_bus(settings, "test")
    js = bus.jetstream()
    state = (await js.stream_info(stream)).state
    found = []
    for seq in range(max(1, state.first_seq), state.last_seq + 1):
        try:
            message = await js.get_msg(stream, seq)
        except Exception:  # noqa: S112 a removed message
            continue
        found.append((message.subject or "").encode() + b" " + (message.data or b""))
    await bus.close()
    return found


@pytest.fixture
def typed(tocsin: CommandLine) -> Typed:
    async def run(*words: str, exit_code: int = 0) -> Answer:
        return await asyncio.to_thread(tocsin, *words, exit_code=exit_code)

    return run


@pytest.fixture
async def lived(
    settings: Settings, tocsin: CommandLine, connection: Connection, typed: Typed, tmp_path: Path
) -> AsyncIterator[None]:
    """Two owners with datapoints, alarms, events, runs, ended schedules and dead letters."""
    (tmp_path / "rules.yaml").write_text(RULES)
    await typed("streams", "create")
    await typed("apply", str(tmp_path / "rules.yaml"), "--yes")
    with running_services(tocsin.environment, "clock", "cdc", "worker"):
        for owner in ("ada", "bob"):
            text = PLANTED if owner == "ada" else "Bob"
            for value in ("70", "50"):
                await typed("send", owner, "dsp.a", value, "--label", f"who={text}")
            event = ("--payload", json.dumps({"name": text}), "--key", f"order/{owner}", "--owner", owner)
            await typed("emit", "order-placed", *event)
            other = (
                "--payload",
                json.dumps({"name": f"{text}!"}),
                "--key",
                f"order/{owner}",
                "--owner",
                owner,
            )
            await typed("emit", "order-placed", *other)
            payload = ("--payload", json.dumps({"name": text}))
            await typed("schedule", "add", "later", "--owner", owner, "--at", "2035-01-01T00:00Z", *payload)
            await typed("schedule", "cancel", "later", "--owner", owner)

        async def has_settled() -> bool:
            row = await one_row(
                connection,
                "select (select count(*) from tocsin.action where state = 'completed') as runs,"
                " (select count(*) from tocsin.alarm where state = 'resolved') as alarms",
            )
            return (
                row == {"runs": 2, "alarms": 2} and len(await messages(settings, settings.dead_stream)) == 2
            )

        await eventually(has_settled, "both owners have a run, an alarm and a dead letter", 60)
        yield


async def test_the_contents_of_an_owner_are_gone_and_every_check_still_passes(
    settings: Settings, connection: Connection, typed: Typed, lived: None, tmp_path: Path
) -> None:
    before = await contents(connection)
    found_in = {table for table, text in before.items() if PLANTED in text}
    assert found_in >= {"event", "datapoint", "current_value", "schedule", "audit"}
    recording = str(tmp_path / "recording.ndjson.gz")
    await typed("export", "--since", "1h", "-o", recording)

    answer = (await typed("forget", "ada", "--yes", "--json")).json

    assert answer["left"] == []
    assert {"records", "datapoints", "series", settings.dead_stream} <= {
        what for what, count in answer["erased"].items() if count
    }
    after = await contents(connection)
    assert {table for table, text in after.items() if PLANTED in text} == set()
    assert {"event", "datapoint", "audit"} <= {table for table, text in after.items() if "Bob" in text}
    dead = await messages(settings, settings.dead_stream)
    assert [b"Bob" in letter for letter in dead] == [True]
    data = [each for each in await messages(settings, settings.data_stream) if b".ada." in each]
    assert len(data) <= 1, "the last message that was read may stay"
    assert any(b".bob." in each for each in await messages(settings, settings.data_stream))

    # The records keep their place and identity, so every comparison still holds.
    await typed("cdc", "verify")
    await typed("audit", "verify")
    replay = await typed("backtest", "--historical", "--since", "1h", "--jobs", "1")
    assert "left out, because their data was erased: ada" in replay.err
    rows = await all_rows(
        connection, "select type, payload from tocsin.event where owner = 'ada' order by seq"
    )
    assert rows[-1]["type"] == "owner-forgotten"
    assert [row["payload"] for row in rows[:-1]] == [{}] * (len(rows) - 1) != []

    # The stream has the contents until it is written again.
    assert any(PLANTED.encode() in each for each in await messages(settings, settings.stream))
    await typed("cdc", "rebuild", "--yes")
    assert not any(PLANTED.encode() in each for each in await messages(settings, settings.stream))
    await typed("cdc", "verify")

    # A recording is written again without the owner, and is still a recording.
    await typed("forget", "ada", "--recording", recording)
    await typed("backtest", "--historical", "--recording", recording, "--jobs", "1")
    with gzip.open(recording) as file:
        text = file.read()
    assert (PLANTED.encode() in text, b"Bob" in text) == (False, True)


async def test_a_forgotten_owner_can_begin_again(connection: Connection, typed: Typed, lived: None) -> None:
    await typed("forget", "ada", "--yes")
    await typed("send", "ada", "dsp.a", "70")

    async def is_alarm_open() -> bool:
        row = await one_row(
            connection, "select count(*) as n from tocsin.alarm where owner = 'ada' and state = 'open'"
        )
        return bool(row["n"] == 1)

    await eventually(is_alarm_open, "the new datapoint opens an alarm", 30)
    answer = await typed("forget", "ada", "--yes", exit_code=1)
    assert "still has 1 alarm, such as 'hot'" in answer.err


@pytest.mark.parametrize("owner", ["", "tocsin:silences"])
def test_what_belongs_to_no_owner_is_not_erased(tocsin: CommandLine, owner: str) -> None:
    assert "is not an owner of data" in tocsin("forget", owner, "--yes", exit_code=1).err

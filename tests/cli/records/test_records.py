"""`events`, `tail`, `doctor`, `migrate` and `run`, against a house in which things have happened."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Self

from cdc.publisher import Publisher
from clock.service import Clock
from tests.cdc.publishing import patient
from tests.cli.conftest import Answer, CommandLine, environment_of
from tests.cli.terminal import TOCSIN
from tests.conftest import with_database
from tests.rules.lanes.lane_setup import jetstream
from tests.streams import read_stream
from tests.waiting import eventually, eventually_sync
from tocsin.cli.up.feed import Feed
from tocsin.cli.up.lines import Line
from tocsin.cli.up.view import State
from tocsin.core.db import connect
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


def _fire(settings: Settings, records: int) -> None:
    """Let the clock fire and the publisher publish until the stream has that many records."""

    async def until_published() -> None:
        services = Service("clock", Clock(settings).run), Service("cdc", Publisher(settings).run)
        async with running(*services):
            await read_stream(settings, records)

    asyncio.run(until_published())


def test_events_and_tail_show_what_fired(tocsin: CommandLine, settings: Settings) -> None:
    tocsin("schedule", "add", "now", "--in", "1s", "--owner", "a b", "--payload", '{"n": 1}')
    tocsin("schedule", "add", "then", "--in", "1s", "--type", "reminder")
    _fire(settings, 2)
    header, first, second = tocsin("events").lines
    assert header.split()[:3] == ["SEQ", "NOMINAL", "TIME"]
    assert [first.split()[0], second.split()[0]] == ["1", "2"]
    assert " ms " in first
    by_name = {row["schedule"]: row for row in tocsin("events", "--json").json}
    assert by_name["now"]["payload"] == {"n": 1}
    assert by_name["now"]["origin"] == "scheduled"
    assert [row["seq"] for row in tocsin("events", "--since-seq", "1", "--json").json] == [2]
    assert [row["seq"] for row in tocsin("events", "--limit", "1", "--json").json] == [2]
    assert [row["schedule"] for row in tocsin("events", "--type", "reminder", "--json").json] == ["then"]
    assert [row["schedule"] for row in tocsin("events", "--schedule", "now", "--json").json] == ["now"]
    assert tocsin("events", "--origin", "external").out == "no such events\n"
    assert tocsin("events", "--origin", "thrown", exit_code=1).err == (
        "tocsin: unknown origin 'thrown': use one of caused, derived, external, scheduled\n"
    )
    streamed = [
        json.loads(line) for line in tocsin("tail", "--from-seq", "1", "--count", "2", "--json").lines
    ]
    assert [one["id"] for one in streamed] == [row["id"] for row in tocsin("events", "--json").json]
    shown = tocsin("tail", "--from-seq", "2", "--count", "1")
    assert shown.err == f"following '{settings.namespace}' from seq 2 (its last is 2)\n"
    assert shown.out.split()[0] == "2"
    assert tocsin("schedule", "show", "now", "--owner", "a b", "--json").json["status"] == "fired"


class _Shown:
    """A screen that keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        return None

    def say(self, text: str) -> None:
        raise NotImplementedError

    def show(self, line: Line) -> None:
        self.lines.append(line.plain())

    def refresh(self, state: State) -> None:
        raise NotImplementedError


def test_a_message_that_is_no_record_is_said_to_be_none_and_passed(
    tocsin: CommandLine, settings: Settings
) -> None:
    """Left behind by somebody who may publish to the stream; `tocsin cdc adopt` keeps it."""
    tocsin("schedule", "add", "first", "--in", "1s")
    _fire(settings, 1)
    screen = _Shown()

    async def leave_behind_and_follow() -> None:
        async with jetstream(settings) as js:
            subject = f"{settings.subjects}.staleness.plant.flow"
            for body in (b'{"value": "stale"}', b"\xff", b'{"type": "late", "data": {}}'):
                await js.publish(subject, body)
        feed = Feed(settings, screen, State("1", "", "", "", ""), after=0)
        async with running(Service("follow", feed.follow_stream)):

            async def all_shown() -> bool:
                return len(screen.lines) >= 4

            await eventually(all_shown, "everything is shown", 10.0)

    asyncio.run(leave_behind_and_follow())
    assert screen.lines[1:] == [
        'event   not a record of tocsin: {"value": "stale"}  seq 2',
        "event   not a record of tocsin: \ufffd  seq 3",
        "event   late  seq 4",
    ]
    assert tocsin("tail", "--from-seq", "2", "--count", "3").lines == [
        '2  not a record of tocsin: {"value": "stale"}',
        "3  not a record of tocsin: \ufffd",
        "4  action  late  {}",
    ]


def test_doctor_names_what_is_missing_and_what_to_do(tocsin: CommandLine) -> None:
    tocsin("schedule", "add", "one", "--every", "1h")
    answer = tocsin("doctor", exit_code=1)
    found = {one["subject"]: one for one in tocsin("doctor", "--json", exit_code=1).json}
    assert {name for name, one in found.items() if one["state"] == "red"} == {
        *("clock", "cdc", "lane record", "lane data", "worker perform", "worker ingest"),
    }
    assert all(one["remedy"] for one in found.values() if one["state"] == "red")
    assert "-> start one with `tocsin run clock`, or `tocsin up`" in answer.out
    for subject in ("tocsin", "postgres", "migrations", "clocks", "nats", "timers"):
        assert found[subject]["state"] == "ok", found[subject]
    assert found["log"]["state"] == "info"


def test_doctor_names_leader_epoch_and_lag_while_services_run(
    settings: Settings, tocsin: CommandLine
) -> None:
    tocsin("schedule", "add", "now", "--in", "1s")
    command = [*TOCSIN, "run"]
    environment = {**os.environ, **{key: value or "" for key, value in environment_of(settings).items()}}
    roles = ("clock", "cdc", "worker")
    services = [
        subprocess.Popen([*command, role], env=environment, stderr=subprocess.PIPE, text=True)
        for role in roles
    ]
    try:
        answers: list[Answer] = []
        log = f"head at seq 1, stream '{settings.namespace}' at 1, lag 0"

        def healthy() -> bool:
            answers.append(tocsin.answer("doctor"))
            return answers[-1].exit_code == 0 and log in answers[-1].out

        eventually_sync(healthy, "the doctor finds nothing wrong after the fire", within=60)
        lines = answers[-1].lines
        clock = next(line for line in lines if " clock " in line)
        assert re.search(rf"led by .*/{services[0].pid}/.*, epoch [0-9]+ since ", clock)
        assert f"/{services[1].pid}/" in next(line for line in lines if " cdc " in line)
    finally:
        for service in services:
            service.send_signal(signal.SIGTERM)
        logs = [service.communicate(timeout=30)[1] for service in services]
    assert [service.returncode for service in services] == [0, 0, 0]
    assert "Traceback" not in "".join(logs)


def test_doctor_goes_on_when_no_server_answers(alone: CommandLine) -> None:
    found = {one["subject"]: one for one in alone("doctor", "--json", exit_code=1).json}
    assert found["postgres"]["state"] == found["nats"]["state"] == "red"
    assert found["postgres"]["remedy"].startswith("set TOCSIN_POSTGRES")
    assert found["tocsin"]["state"] == "ok"


def test_doctor_reports_an_unmigrated_database(tocsin: CommandLine, settings: Settings) -> None:
    tocsin.environment["TOCSIN_POSTGRES"] = with_database(settings.postgres, "template1")
    found = {one["subject"]: one for one in tocsin("doctor", "--json", exit_code=1).json}
    assert (found["migrations"]["state"], found["migrations"]["remedy"]) == ("red", "run `tocsin migrate`")


def test_migrate_brings_an_empty_database_up_to_date_once(tocsin: CommandLine, settings: Settings) -> None:
    name = f"{settings.namespace}_empty"

    async def statement(text: bytes) -> None:
        connection = await connect(patient(settings), "test")
        await connection.execute(text)
        await connection.close()

    asyncio.run(statement(f"create database {name}".encode()))
    try:
        tocsin.environment["TOCSIN_POSTGRES"] = with_database(settings.postgres, name)
        applied = tocsin("migrate", "--json").json
        assert applied["applied"][0] == "0001_time_settings_and_audit"
        assert applied["applied"][-1] == applied["at"]
        assert tocsin("migrate").out == f"nothing to do: the database is at {applied['at']}\n"
        assert tocsin("schedules").exit_code == 0
    finally:
        asyncio.run(statement(f"drop database {name} with (force)".encode()))


def test_run_refuses_to_start_without_its_servers(alone: CommandLine, tmp_path: Path) -> None:
    assert alone("run", "cdc", exit_code=2).err.startswith("tocsin: no postgres is named: ")
    assert "'clock', 'cdc', 'worker'" in alone("run", "api", exit_code=2).err

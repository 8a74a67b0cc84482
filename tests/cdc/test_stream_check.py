"""The stream check reports a problem once when it begins, and once when it is fixed."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from nats.aio.client import Client

from cdc.adopt import adopt, find_loss
from cdc.log_reader import LogReader
from cdc.publisher import Publisher
from cdc.report import read_report, report_problem
from cdc.status import read_status
from cdc.stream import record_stream_config
from cdc.stream_check import StreamCheck
from cdc.verify import common_range
from tests.cdc.published_records import (
    T0,
    append,
    append_steps,
    forget_after,
    head,
    last_sequence,
    publish_all,
    publish_all_but,
    published,
    smaller,
    with_long_timeouts,
)
from tests.records import events
from tests.wait import eventually
from tocsin.core.audit import Actor
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection, connect
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


class Chosen(random.Random):
    """A random source whose sample the test chooses."""

    def __init__(self, *seqs: int) -> None:
        super().__init__(0)
        self.seqs = seqs

    def sample(self, population: Sequence[Any], k: int, **_: Any) -> list[Any]:
        return [seq for seq in population if seq in self.seqs][:k]


class RepeatedCheck:
    def __init__(self, settings: Settings, connection: Connection, bus: Any) -> None:
        self._given = settings, connection, bus, "tester"

    async def __call__(self, *seqs: int) -> str | None:
        problem = await StreamCheck(*self._given, random_source=Chosen(*seqs) if seqs else None).run_once()
        return None if problem is None else f"{problem.kind} {problem.detail}"


@pytest.fixture
async def check(settings: Settings, connection: Connection) -> AsyncIterator[RepeatedCheck]:
    async with connected(settings) as bus:
        yield RepeatedCheck(settings, connection, bus)


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[Client]:
    bus = await connect_bus(settings, "test")
    try:
        yield bus
    finally:
        await bus.close()


async def reported_problems(connection: Connection) -> list[tuple[str, str]]:
    return [
        (row["type"], row["payload"]["problem"])
        for row in await events(connection)
        if row["type"].startswith("cdc-")
    ]


async def test_a_sound_stream_is_reported_in_numbers(
    settings: Settings, connection: Connection, check: RepeatedCheck
) -> None:
    await append(connection, 30)
    await append_steps(connection, 10)
    await publish_all(settings)
    assert await check() is None
    report = await read_report(connection)
    assert (report.holder, report.head, report.first_seq, report.last_seq) == ("tester", 40, 1, 40)
    assert (report.lag_s, report.problem) == (0.0, None)
    assert 8 <= (report.compared or 0) <= 16
    assert report.age_s is not None
    assert await reported_problems(connection) == []


async def test_an_empty_log_has_nothing_to_compare(
    settings: Settings, connection: Connection, check: RepeatedCheck
) -> None:
    assert await check() is None
    await publish_all(settings)
    assert await check() is None
    report = await read_report(connection)
    assert (report.head, report.last_seq, report.compared) == (0, 0, 0)


async def test_lag_counts_from_the_oldest_record_that_is_not_published(
    settings: Settings, connection: Connection, check: RepeatedCheck
) -> None:
    await append(connection, 3)
    await publish_all(settings)
    for seconds in (0, 20):
        await connection.execute(f"set tocsin.now = '{T0 + timedelta(seconds=seconds)}'")
        await append(connection, 1)
    await connection.execute(f"set tocsin.now = '{T0 + timedelta(seconds=90)}'")
    assert await check() is None
    report = await read_report(connection)
    assert (report.head, report.last_seq, report.lag_s) == (5, 3, 90.0)


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("update tocsin.event set payload = '{}' where seq = 5", "at 5, the body differs in data"),
        (
            "update tocsin.event set id = gen_random_uuid() where seq = 5",
            "at 5, the log has .*, the stream has",
        ),
        (
            "update tocsin.event set owner = 'other' where seq = 5",
            "at 5, the subject is .*noted._._', not .*other",
        ),
        (
            "update tocsin.event set epoch = 9, ts = '2020-01-01Z' where seq = 5",
            "at 5, the body differs in time",
        ),
        ("delete from tocsin.event where seq = 5", "at 5, the log has no record, the stream has"),
    ],
)
async def test_a_difference_is_reported_once_and_stays_until_that_record_is_right(
    settings: Settings, connection: Connection, check: RepeatedCheck, damage: str, what: str
) -> None:
    await append(connection, 9)
    await publish_all(settings)
    await connection.execute("create table kept as select * from tocsin.event where seq = 5")
    await connection.execute(damage.encode())
    assert await check(1, 2, 3) is None
    for sample in ((5,), (1, 2), (7,), ()):
        found = await check(*sample)
        assert found is not None
        assert re.match(f"record-differs {what}", found)
    assert await reported_problems(connection) == [("cdc-differed", "record-differs")]
    report = await read_report(connection)
    assert (report.problem, report.seq, report.since is not None) == ("record-differs", 5, True)
    await connection.execute("delete from tocsin.event where seq = 5")
    await connection.execute("insert into tocsin.event select * from kept")
    assert await check(1, 2) is None
    assert await reported_problems(connection) == [
        ("cdc-differed", "record-differs"),
        ("cdc-recovered", "record-differs"),
    ]
    assert (await read_report(connection)).problem is None


async def test_messages_of_an_earlier_version_may_lack_fields(
    settings: Settings, connection: Connection, check: RepeatedCheck
) -> None:
    await append(connection, 2)
    await publish_all(settings)
    # As if this version had begun to send a field.
    await connection.execute("update tocsin.event set severity = 3, fire_at = ts where seq = 1")
    assert await check(1, 2) is None


async def test_tombstones_and_recorded_gaps_are_not_differences(
    settings: Settings, connection: Connection, check: RepeatedCheck
) -> None:
    await append(connection, 4)
    await connection.execute("update tocsin.event set ts = 'infinity' where seq = 2")
    await publish_all(settings)
    await connection.execute("update tocsin.event set ts = '2026-03-02Z' where seq = 2")
    await connection.execute("delete from tocsin.event where seq = 3")
    await connection.execute("select tocsin.record_gap(3, 3, 'lost', 'ann')")
    assert await check(1, 2, 3, 4) is None


async def test_messages_missing_from_the_stream_are_reported(
    settings: Settings, connection: Connection, check: RepeatedCheck
) -> None:
    await append(connection, 5)
    await publish_all_but(settings, connection, 3)
    for _ in range(2):
        assert "stream-hole " in str(await check())
    assert await reported_problems(connection) == [("cdc-differed", "stream-hole")]


async def test_a_stream_ahead_and_a_hole_ahead_are_found_without_the_publisher(
    settings: Settings, connection: Connection, check: RepeatedCheck
) -> None:
    await append(connection, 4)
    await append(connection, 1)
    await publish_all(settings)
    await forget_after(connection, 4)
    assert str(await check(1)).startswith("diverged the stream")
    # The event about it takes the seq that the stream has already used, so the numbers agree again.
    assert await head(connection) == 5
    assert str(await check(5)).startswith("record-differs at 5, the log has")
    await append(connection, 3)
    await connection.execute("delete from tocsin.event where seq = 6")
    assert str(await check(1)).startswith("log-hole record 6 is missing")


async def test_a_record_published_between_two_reads_is_not_a_stream_ahead(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comparison reads the stream before the log."""
    await publish_all(settings)
    other = await connect(with_long_timeouts(settings), "test")
    head_of = LogReader.head

    async def busy_head(self: LogReader) -> int:
        found = await head_of(self)
        monkeypatch.setattr(LogReader, "head", head_of)
        await append(other, 1)
        await publish_all(settings)
        monkeypatch.setattr(LogReader, "head", busy_head)
        return found

    async with connected(settings) as bus:
        monkeypatch.setattr(LogReader, "head", busy_head)
        assert await StreamCheck(settings, connection, bus, "tester").run_once() is None
        assert await find_loss(bus.jetstream(), settings, LogReader(connection)) is None
        assert (await read_status(bus, settings, LogReader(connection))).lag == 0
        first, last = await common_range(bus, settings, LogReader(connection), None, None)
        assert (first, last) == (1, 3)
        monkeypatch.undo()
    await other.close()


async def test_expired_messages_and_dropped_records_are_not_differences(
    settings: Settings, connection: Connection, check: RepeatedCheck
) -> None:
    bus = await connect_bus(settings, "test")
    js = bus.jetstream()
    await js.add_stream(replace(record_stream_config(settings), max_age=0.2, duplicate_window=0.1))
    await append(connection, 5)
    await publish_all(settings)

    async def has_expired() -> bool:
        assert await check() is None
        return (await js.stream_info(settings.stream)).state.messages == 0

    await eventually(has_expired, "the messages expire")
    await bus.close()
    assert await check() is None
    await append(connection, 5)
    await connection.execute("delete from tocsin.event where seq < 8")
    assert await check() is None


async def test_a_publisher_that_stops_reports_it_once_however_often_it_is_started(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 6)
    await append(connection, 2)
    await publish_all(settings)
    await forget_after(connection, 6)
    services = [
        Service(f"cdc {number}", Publisher(smaller(settings, cdc_check_s=0.1)).run) for number in (1, 2)
    ]
    async with running(*services):

        async def has_stopped_often() -> bool:
            return min(service.restarts for service in services) >= 2

        await eventually(has_stopped_often, "both publishers stop again and again")
        assert await reported_problems(connection) == [("cdc-stopped", "diverged")]
        report = await read_report(connection)
        assert (report.problem, "`tocsin cdc adopt`" in (report.remedy or "")) == ("diverged", True)
        assert await last_sequence(settings) == 8
        async with connected(settings) as bus:
            loss = await find_loss(bus.jetstream(), settings, LogReader(connection))
        assert loss is not None
        await adopt(LogReader(connection), settings, loss, Actor("ann", "test", T0))

        async def has_recovered() -> bool:
            return await reported_problems(connection) == [
                ("cdc-stopped", "diverged"),
                ("cdc-recovered", "diverged"),
            ]

        await eventually(has_recovered, "the next check finds it fixed")

        async def is_published() -> bool:
            return await last_sequence(settings) == await head(connection)

        await eventually(is_published, "the rest is published")


async def test_a_hole_of_the_log_is_reported_until_it_is_accepted(
    settings: Settings, connection: Connection, check: RepeatedCheck
) -> None:
    await append(connection, 5)
    await connection.execute("delete from tocsin.event where seq = 3")
    service = Service("cdc", Publisher(smaller(settings, cdc_check_s=0.05)).run)
    async with running(service):

        async def has_stopped_often() -> bool:
            return service.restarts >= 3

        await eventually(has_stopped_often, "the publisher stops at the hole")
        # Between its starts it leads and checks: the hole ahead of it is not taken for fixed.
        assert await reported_problems(connection) == [("cdc-stopped", "log-hole")]
        await connection.execute("select tocsin.record_gap(3, 3, 'lost', 'ann')")

        async def has_recovered() -> bool:
            return ("cdc-recovered", "log-hole") in await reported_problems(connection)

        await eventually(has_recovered, "the gap is passed")


async def test_a_wrongly_configured_stream_is_reported_until_it_is_fixed(
    settings: Settings, connection: Connection
) -> None:
    async with connected(settings) as bus:
        js = bus.jetstream()
        await js.add_stream(replace(record_stream_config(settings), max_msgs=100))
        async with running(Service("cdc", Publisher(settings).run)):

            async def is_reported() -> bool:
                return await reported_problems(connection) == [("cdc-stopped", "stream-refused")]

            await eventually(is_reported, "the refusal is reported")
            assert "max_msgs=100, tocsin needs -1" in ((await read_report(connection)).detail or "")
            await js.update_stream(record_stream_config(settings))
            await published(settings, connection)

            async def is_fixed() -> bool:
                return (await read_report(connection)).problem is None

            await eventually(is_fixed, "the next leader finds it fixed")


async def test_a_problem_that_turns_into_another_is_reported_as_both(connection: Connection) -> None:
    for problem in ("diverged", "diverged", "log-hole", None, None, "diverged"):
        await report_problem(connection, problem, "detail")
    assert await reported_problems(connection) == [
        ("cdc-stopped", "diverged"),
        ("cdc-stopped", "log-hole"),
        ("cdc-recovered", "log-hole"),
        ("cdc-stopped", "diverged"),
    ]

"""Every committed record is in the stream, with the same id, at the sequence that is its seq."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import timedelta

import pytest

from cdc.chain import Chain, SentChunk
from cdc.log_reader import LogReader, Record
from cdc.publisher import Publisher
from clock.lease import hold_lease
from clock.term import begin_term
from tests.cancellation import swallow_one_cancellation
from tests.cdc.published_records import T0, append, append_steps, live, published, smaller, write
from tests.records import events
from tests.streams import read_stream
from timers.schedule_spec import ScheduleSpec
from timers.schedules import put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


async def test_a_fire_is_in_the_stream_with_the_id_of_its_row(
    settings: Settings, connection: Connection
) -> None:
    await put_schedule(connection, ScheduleSpec("beat", {"every": "10s"}), Actor("tester", "test", T0))
    term = await begin_term(connection, "test")
    for beat in range(1, 4):
        await term.run_once(T0 + timedelta(seconds=10 * beat))

    async with running(Service("cdc", Publisher(settings).run)):
        messages = await read_stream(settings, 3)

    rows = await events(connection)
    assert [message.seq for message in messages] == [row["seq"] for row in rows] == [1, 2, 3]
    assert [json.loads(message.data)["id"] for message in messages] == [str(row["id"]) for row in rows]
    assert messages[0].subject == f"{settings.namespace}.v1.event.scheduled.schedule-fired.beat._"


async def test_thousands_of_records_of_four_writers_that_roll_back_arrive_in_commit_order(
    settings: Settings, connection: Connection
) -> None:
    async with running(Service("cdc", Publisher(settings).run)):
        committed = await asyncio.gather(*(write(settings, seed, 250) for seed in range(4)))
        stored = await published(settings, connection)
    assert len(stored) == sum(committed) > 2000
    times = [row["recorded_at"] for row in await events(connection)]
    assert times == sorted(times)


async def test_events_and_steps_are_merged_into_one_sequence(
    settings: Settings, connection: Connection
) -> None:
    await append(connection, 2)
    await append_steps(connection, 3)
    await append(connection, 1)
    async with live(settings) as publisher:
        await publisher.drain()
    stored = await published(settings, connection)
    assert [".action." in message.subject for message in stored] == [False] * 2 + [True] * 3 + [False]


async def test_odd_names_and_owners_are_encoded_in_the_subject_and_whole_in_the_body(
    settings: Settings, connection: Connection
) -> None:
    odd = ["a b", "a.b", "*", ">", "_", "é鐘", "%2E", "\U0001f514" * 128]
    for text in odd:
        await append(connection, 1, owner=text, rule=text)
    async with live(settings) as publisher:
        await publisher.drain()
    stored = await published(settings, connection)
    assert [json.loads(message.data)["owner"] for message in stored] == odd
    assert {message.subject.count(".") for message in stored} == {6}


async def test_the_stream_is_created_for_an_empty_log(settings: Settings, connection: Connection) -> None:
    async with live(settings) as publisher:
        assert not await publisher.step()
        assert publisher.publisher.position == 0
        await append(connection, 1)
        await publisher.drain()
    assert [message.seq for message in await published(settings, connection)] == [1]


async def test_a_commit_wakes_the_publisher_long_before_it_polls(
    settings: Settings, connection: Connection
) -> None:
    rare = smaller(settings, cdc_poll_ms=60_000.0)
    async with running(Service("cdc", Publisher(rare).run)):
        await append(connection, 1)
        await published(settings, connection)
        for _ in range(3):
            await append(connection, 1)
            await published(settings, connection, within=25)


async def test_polling_suffices_when_notifications_are_lost(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def deaf(self: LogReader) -> None:
        pass

    monkeypatch.setattr(LogReader, "listen", deaf)
    async with running(Service("cdc", Publisher(smaller(settings, cdc_poll_ms=20.0)).run)):
        for _ in range(3):
            await append(connection, 1)
            await published(settings, connection)


class Watching(Chain):
    """Counts the unacknowledged records at every send."""

    outstanding = 0
    most = 0
    chunks: list[int]

    async def send(self, records: Sequence[Record]) -> SentChunk:
        sent = await super().send(records)
        self.chunks = [*getattr(self, "chunks", []), sent.count]
        self.outstanding += sent.count
        self.most = max(self.most, self.outstanding)
        return sent

    async def confirm(self, sent: SentChunk, timeout_s: float) -> None:
        await super().confirm(sent, timeout_s)
        self.outstanding -= sent.count


@pytest.mark.parametrize(
    ("chunk", "in_flight", "most"), [(4, 10, 8), (500, 1, 1), (7, 7, 7), (3, 4000, 60), (1, 5, 5)]
)
async def test_no_more_than_the_limit_is_ever_unacknowledged(
    settings: Settings, connection: Connection, chunk: int, in_flight: int, most: int
) -> None:
    await append(connection, 60)
    limited = smaller(settings, cdc_chunk=chunk, cdc_in_flight=in_flight)
    async with live(limited, Watching) as publisher:
        await publisher.drain()
        chain = publisher.chain
        assert isinstance(chain, Watching)
        assert (chain.most, chain.outstanding) == (most, 0)
        assert max(chain.chunks) == min(chunk, in_flight)
    await published(settings, connection)


async def test_large_records_make_short_chunks(settings: Settings, connection: Connection) -> None:
    for _ in range(45):
        await connection.execute(
            "select tocsin.append(array[row(gen_random_uuid(), %s, 'caused', 'noted', '', '', '', '', null,"
            " null, null, null, null, jsonb_build_object('text', repeat('x', 220000)))::tocsin.event_input])",
            (T0,),
        )
    await append(connection, 100)
    async with live(settings, Watching) as publisher:
        await publisher.drain()
        chain = publisher.chain
        assert isinstance(chain, Watching)
        # 19 of them fill 4 MiB; afterwards chunks grow again.
        assert chain.chunks[0] == 19
        assert sum(chain.chunks) == 145
        assert len(chain.chunks) <= 8
    await published(settings, connection)


async def test_a_publisher_ends_its_term_although_its_stream_check_swallows_a_cancellation(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.core.service._CANCEL_AGAIN_S", 0.01)
    monkeypatch.setattr("cdc.stream_check.StreamCheck.run", swallow_one_cancellation)
    async with hold_lease(settings, "cdc") as lease, asyncio.timeout(30):
        await lease.wait_until_held()
        leading = asyncio.create_task(Publisher(settings)._lead(lease))
        await append(connection, 1)
        await published(settings, connection)
        lease.resign()
        await leading

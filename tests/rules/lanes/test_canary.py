"""Canaries move the watermark of a quiet partition, and leave no other trace."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import pytest
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from rules.lanes import canary
from rules.lanes.canary import CanarySender
from rules.lanes.data_stream import canary_subject, ensure_data_stream
from rules.lanes.stream_pace import StreamPace
from tests.rules.lanes.lane_setup import (
    jetstream,
    lane_worker,
    make_stream,
    partitions,
    send,
    wait_for_rows,
    wait_for_shares,
)
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.service import end_tasks, running
from tocsin.core.settings import Settings


@pytest.mark.parametrize("count", [1, 3, 8, 256])
async def test_the_server_stores_each_canary_in_its_partition(settings: Settings, count: int) -> None:
    there = settings.model_copy(update={"data_partitions": count})
    async with jetstream(there) as js:
        await ensure_data_stream(js, there, 1)
        for partition in range(count):
            ack = await js.publish(canary_subject(there, partition))
            stored = await js.get_msg(there.data_stream, ack.seq)
            assert str(stored.subject).startswith(f"{there.subjects}.data.{partition}.~")


async def test_quiet_partitions_have_a_watermark_and_canaries_are_not_committed(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    async with running(lane_worker("worker", settings)):
        await wait_for_shares(connection, 8)

        async def watermarks() -> list[Any]:
            return [row["watermark"] for row in await partitions(connection)]

        async def are_there() -> bool:
            return None not in await watermarks()

        await eventually(are_there, "every partition has a watermark")
        before = await watermarks()

        async def have_moved() -> bool:
            return all(now > then for now, then in zip(await watermarks(), before, strict=True))

        await eventually(have_moved, "every watermark moves")
        committed = [row for row in await partitions(connection) if row["last_seq"] > 0]
        assert all(row["last_gap_at"] is not None for row in committed), "only the end of a gap is committed"
    for table in ("datapoint", "current_value", "timer"):
        assert await all_rows(connection, f"select * from tocsin.{table}") == [], table
    async with jetstream(settings) as js:
        dead = await js.stream_info(f"{settings.namespace}-dead")
        assert dead.state.messages == 0


@pytest.mark.parametrize("subject", ["plant.~canary", "~1.dsp.~canary", "~1.dsp", "~1.x~canary"])
async def test_a_message_that_only_resembles_a_canary_is_a_dead_letter(
    settings: Settings, connection: Connection, subject: str
) -> None:
    await make_stream(settings)
    async with running(lane_worker("worker", settings)), jetstream(settings) as js:
        await js.publish(f"{settings.subjects}.datapoint.{subject}", b'{"value": 1}')

        async def is_rejected() -> bool:
            try:
                return bool((await js.stream_info(f"{settings.namespace}-dead")).state.messages)
            except NotFoundError:
                return False

        await eventually(is_rejected, "it is a dead letter")


async def test_the_server_deletes_old_canaries(settings: Settings) -> None:
    await make_stream(settings)
    async with jetstream(settings) as js:
        ack = await js.publish(canary_subject(settings, 0), headers={"Nats-TTL": "1s"})

        async def is_deleted() -> bool:
            try:
                await js.get_msg(settings.data_stream, ack.seq)
            except NotFoundError:
                return True
            return False

        await eventually(is_deleted, "it is deleted")


async def test_datapoints_among_canaries_are_read_once(settings: Settings, connection: Connection) -> None:
    await make_stream(settings)
    async with running(lane_worker("worker", settings)):
        for number in range(5):
            await send(settings, [number])
            await wait_for_rows(connection, "tocsin.datapoint", 24 * (number + 1))
            await eventually(lambda: are_read(connection), "canaries of all partitions follow")
    async with running(lane_worker("another worker", settings)):
        await wait_for_shares(connection, 8)
        await send(settings, [9])
        await wait_for_rows(connection, "tocsin.datapoint", 24 * 6)
    rows = await all_rows(
        connection, "select owner, value, count(*) as n from tocsin.datapoint group by 1, 2"
    )
    assert {row["n"] for row in rows} == {1}


KEY = ("data", 0)


class QuietTarget:
    canary_subject = "canary"
    quiet_s = 60.0


class StandInStream:
    """Accepts one canary, or rejects it with an error, as soon as it may answer."""

    def __init__(self, error: Exception | None) -> None:
        self.error = error
        self.answered = 0
        self.may_answer = asyncio.Event()

    async def publish(self, *_: object, **__: object) -> None:
        await self.may_answer.wait()
        self.may_answer.clear()
        self.answered += 1
        if self.error is not None:
            raise self.error


async def pace_of_canaries(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch, *, is_blocked: bool = False
) -> StreamPace:
    """What a sender learns whose first canary has this outcome."""
    monkeypatch.setattr(canary, "INTERVAL_S", 0.01)
    monkeypatch.setattr(canary, "_BLOCKED_S", -1.0 if is_blocked else 60.0)
    stream, pace = StandInStream(error), StreamPace()
    pace.canary_read(time.monotonic())
    sender = CanarySender(cast(JetStreamContext, stream), {KEY: QuietTarget()}, pace)

    async def knows_its_loop() -> bool:
        return not is_blocked or sender._blocked_at_s > 0

    async def is_answered() -> bool:
        return stream.answered > 0

    sending = asyncio.create_task(sender.run())
    await eventually(knows_its_loop, "the sender has measured its loop")
    stream.may_answer.set()
    await eventually(is_answered, "the first canary has its outcome")
    await end_tasks([sending])
    return pace


@pytest.mark.parametrize(
    ("error", "is_slow"), [(NatsTimeoutError(), True), (NoRespondersError(), False), (None, False)]
)
async def test_a_stream_is_slow_if_it_acknowledges_late_and_not_if_it_rejects(
    error: Exception | None, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = await pace_of_canaries(error, monkeypatch)
    assert pace.is_slow(KEY, time.monotonic()) is is_slow


async def test_a_worker_that_is_late_itself_does_not_call_the_stream_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pace = await pace_of_canaries(NatsTimeoutError(), monkeypatch, is_blocked=True)
    assert not pace.is_slow(KEY, time.monotonic())


async def are_read(connection: Connection) -> bool:
    """Whether every partition was read beyond the last datapoint."""
    (row,) = await all_rows(
        connection,
        "select min(watermark) > (select max(arrived_at) from tocsin.current_value) as are_read"
        " from tocsin.lane_partition where lane = 'data'",
    )
    return bool(row["are_read"])


async def test_a_stream_that_refuses_canaries_is_reported_and_moves_no_watermark(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    async with running(lane_worker("worker", settings)):
        await wait_for_shares(connection, 8)
        async with jetstream(settings) as js:
            config = (await js.stream_info(settings.data_stream)).config
            config.max_msg_size = 1
            await js.update_stream(config)

            async def errors() -> set[str | None]:
                return {row["canary_error"] for row in await partitions(connection)}

            async def are_refused() -> bool:
                return None not in await errors()

            await eventually(are_refused, "the errors are stored")
            assert "maximum allowed" in str(await errors())
            config.max_msg_size = -1
            await js.update_stream(config)

            async def are_accepted() -> bool:
                return await errors() == {None}

            await eventually(are_accepted, "the errors are gone")

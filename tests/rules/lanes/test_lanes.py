"""Workers share the partitions, and each message has its effects once, in order, while workers join, leave and fail."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any

import pytest

from cdc.publisher import Publisher
from rules.lanes.batch import Writes
from rules.lanes.data_lane import DataBatch
from rules.worker import Worker
from schemas.wire.dead_letter import DeadLetter
from schemas.wire.subjects import datapoint_subject
from tests.cdc.published_records import smaller, with_long_timeouts
from tests.rules.lanes.counting_work import Counting, effects, make_effects
from tests.rules.lanes.lane_setup import (
    OWNERS,
    jetstream,
    lane_worker,
    make_stream,
    partitions,
    send,
    shares,
    wait_for_rows,
    wait_for_shares,
)
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.errors import Conflict
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


@pytest.fixture(autouse=True)
async def effect_table(connection: Connection) -> None:
    await make_effects(connection)


def assert_once_and_in_order(effects: list[dict[str, Any]], values: int) -> None:
    for owner in OWNERS:
        mine = [row for row in effects if row["owner"] == owner]
        assert [row["value"] for row in mine] == list(range(values)), owner
        assert len({row["partition"] for row in mine}) == 1, "one owner, one partition"
        assert all(earlier["seq"] < later["seq"] for earlier, later in pairwise(mine))
    assert len(effects) == len(OWNERS) * values


async def test_each_message_has_its_effects_once_and_in_order(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    async with running(lane_worker("one", settings, Counting())):
        sent = await send(settings, range(10))
        await wait_for_rows(connection, "public.effect", sent)
    assert_once_and_in_order(await effects(connection), 10)
    assert len({row["partition"] for row in await effects(connection)}) > 4


async def test_four_workers_take_a_fair_share_each_and_share_again_when_one_leaves(
    settings: Settings, connection: Connection
) -> None:
    workers = [lane_worker(str(number), settings, Counting()) for number in range(4)]
    async with AsyncExitStack() as stack:
        for number, worker in enumerate(workers):
            await stack.enter_async_context(running(worker))
            await wait_for_shares(connection, *[[8], [4, 4], [3, 3, 2], [2, 2, 2, 2]][number])
            await send(settings, [number])
        await workers[0].stop()
        await wait_for_shares(connection, 3, 3, 2)
        await send(settings, [4])
        await workers[2].stop()
        await wait_for_shares(connection, 4, 4)
        sent = await send(settings, [5])
        await wait_for_rows(connection, "public.effect", 6 * sent)
    assert_once_and_in_order(await effects(connection), 6)
    assert await shares(connection) == []


async def test_the_watermark_of_an_idle_partition_is_about_now(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    async with running(lane_worker("one", settings)):

        async def have_watermarks() -> bool:
            cursor = await connection.execute(
                "select count(*) from tocsin.lane_partition"
                " where watermark > tocsin.instant() - interval '2 seconds'"
            )
            row = await cursor.fetchone()
            return row == (8,)

        await eventually(have_watermarks, "all eight are complete")
        before = [row["watermark"] for row in await partitions(connection)]

        async def have_moved() -> bool:
            now = [row["watermark"] for row in await partitions(connection)]
            return all(later > earlier for earlier, later in zip(before, now, strict=True))

        await eventually(have_moved, "they go on")


class ConflictTwice(Writes):
    tries = 0

    async def plan(self, connection: Connection, batch: DataBatch) -> Writes:
        return self

    async def write_timers(self, connection: Connection) -> None:
        ConflictTwice.tries += 1
        if ConflictTwice.tries <= 2:
            raise Conflict("another transaction was faster")


async def test_a_plan_with_a_conflict_is_made_again(settings: Settings, connection: Connection) -> None:
    await make_stream(settings)
    worker = lane_worker("one", settings, Counting(), ConflictTwice())
    async with running(worker):
        sent = await send(settings, range(3), OWNERS[:1])
        await wait_for_rows(connection, "public.effect", sent)
        assert worker.restarts == 0
    assert [row["value"] for row in await effects(connection)] == [0, 1, 2]
    assert ConflictTwice.tries > 2


class AlwaysConflict(Writes):
    """Loses every conflict of one partition."""

    def __init__(self, partition: int | None = None) -> None:
        self.partition = partition

    async def plan(self, connection: Connection, batch: DataBatch) -> Writes:
        return self if batch.partition == self.partition else Writes()

    async def write_timers(self, connection: Connection) -> None:
        raise Conflict("another transaction was faster")


async def test_a_partition_that_loses_every_conflict_waits_alone(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rules.lanes.drain._TRIES", 2)
    await make_stream(settings)
    conflicts = AlwaysConflict()
    worker = lane_worker("one", settings, Counting(), conflicts)
    async with running(worker):
        sent = await send(settings, [0])
        await wait_for_rows(connection, "public.effect", sent)
        counted = Counter(row["partition"] for row in await effects(connection))
        conflicts.partition, hot = counted.most_common(1)[0]
        await send(settings, [1])
        await wait_for_rows(connection, "public.effect", 2 * sent - hot)

        async def is_reported() -> bool:
            return f"partition {conflicts.partition} of the data lane waits" in (worker.problem or "")

        await eventually(is_reported, "the worker reports the partition")
        assert worker.restarts == 0
        conflicts.partition = None
        await wait_for_rows(connection, "public.effect", 2 * sent)
    assert_once_and_in_order(await effects(connection), 2)


class FailOnThree:
    """Fails on the value 3, in Python or in Postgres."""

    def __init__(self, how: str) -> None:
        self._how = how

    async def plan(self, connection: Connection, batch: DataBatch) -> Writes:
        has_three = any(getattr(input, "value", 0) == 3 for input in batch.inputs)
        if has_three and self._how == "python":
            raise ZeroDivisionError("three")
        return _Divide(0 if has_three else 1)


class _Divide(Writes):
    def __init__(self, by: int) -> None:
        self._by = by

    async def write_entities(self, connection: Connection) -> None:
        await connection.execute("select 1 / %s", (self._by,))


@pytest.mark.parametrize("how", ["python", "postgres"])
async def test_only_the_message_that_fails_becomes_a_dead_letter(
    settings: Settings, connection: Connection, how: str
) -> None:
    await make_stream(settings)
    await send(settings, range(8), OWNERS[:1])
    there = with_long_timeouts(settings)
    async with running(lane_worker("one", there, FailOnThree(how), Counting())):
        await wait_for_rows(connection, "public.effect", 7)
        async with jetstream(settings) as js:
            message = await js.get_last_msg(settings.dead_stream, f"{settings.subjects}.dead.datapoint")
    assert [row["value"] for row in await effects(connection)] == [0, 1, 2, 4, 5, 6, 7]
    letter = DeadLetter.model_validate_json(message.data or b"")
    assert json.loads(letter.body) == {"value": 3}
    assert ("ZeroDivisionError: three" if how == "python" else "DivisionByZero") in letter.reason
    assert ".data." in letter.subject


async def test_a_batch_that_takes_longer_than_its_session_may_is_tried_again_in_smaller_parts(
    settings: Settings, connection: Connection
) -> None:
    """Postgres ends a transaction that is idle for too long: here, one with more than ten datapoints."""
    await connection.execute(
        "create function public.end_session() returns trigger language plpgsql as $$ begin"
        " if (select count(*) from added) > 10 then perform pg_terminate_backend(pg_backend_pid()); end if;"
        " return null; end $$"
    )
    await connection.execute(
        "create trigger too_long after insert on tocsin.datapoint referencing new table as added"
        " for each statement execute function public.end_session()"
    )
    await make_stream(settings)
    async with jetstream(settings) as js:
        batch = [{"key": f"text.{number}", "value": "x" * 4000} for number in range(3)]
        subject = datapoint_subject(settings.subjects, "plant", "_")
        for _ in range(40):
            await js.publish(subject, json.dumps({"batch": batch}).encode())
    async with running(Service("cdc", Publisher(settings).run), Service("worker", Worker(settings).run)):
        await wait_for_rows(connection, "tocsin.datapoint", 120, within=30.0)


async def test_another_number_of_partitions_is_rejected(settings: Settings, connection: Connection) -> None:
    await make_stream(settings)
    async with running(lane_worker("one", settings)):
        await wait_for_shares(connection, 8)
    other = smaller(settings, data_partitions=4)
    with pytest.raises(Exception, match="TOCSIN_DATA_PARTITIONS=4, but the data lane was created with 8"):
        await lane_worker("other", other)._run()
    assert Counter(row["lane"] for row in await partitions(connection)) == {"data": 8}

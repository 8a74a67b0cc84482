"""Faults of the server, the schema and our rights are waited out: no message becomes a dead letter for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdc.publisher import Publisher
from rules.alarms.over_series import SeriesAlarms
from rules.lanes.batch import Writes
from rules.lanes.data_lane import DataBatch
from rules.lanes.dead_letters import read_dead_letters
from rules.metrics import PARTITION_WAITS
from rules.worker import Worker
from schemas.wire.subjects import datapoint_subject
from tests.cdc.published_records import smaller
from tests.core.log_partitions import small_partitions
from tests.rules.apply.apply_setup import action, actions, put, rule
from tests.rules.lanes.lane_setup import OWNERS, jetstream, lane_worker, make_stream, send, wait_for_rows
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


async def letters(settings: Settings) -> list[dict[str, Any]]:
    async with jetstream(settings) as js:
        return await read_dead_letters(js, settings, None, 1000)


async def used_partitions(connection: Connection) -> list[int]:
    rows = await all_rows(connection, "select distinct partition from tocsin.current_value")
    return [row["partition"] for row in rows]


async def stops_or_rejects(settings: Settings, worker: Service, part: str) -> None:
    """The worker has met the fault: it waits because of it, or has wrongly rejected a message."""

    async def has_met_it() -> bool:
        return part in (worker.problem or "") or bool(await letters(settings))

    await eventually(has_met_it, f"the worker reports {part!r}")


async def test_a_revoked_right_delays_datapoints_and_rejects_none(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, "---\ndatapoint_type:\n  name: t\n  key: temperature\n  interval: 1s\n")
    await make_stream(settings)
    worker = lane_worker("one", settings, SeriesAlarms())
    async with running(worker):
        await send(settings, [0])
        await wait_for_rows(connection, "tocsin.datapoint", 24)
        await connection.execute("revoke insert, update on tocsin.current_value from tocsin_worker")
        await send(settings, range(1, 5))
        await stops_or_rejects(settings, worker, "permission denied for table current_value")
        (row,) = await all_rows(connection, "select tocsin.instant() as now")

        async def all_wait() -> bool:
            waiting = [labels for _, labels, value in PARTITION_WAITS.samples() if value == 1]
            return len(waiting) == len(await used_partitions(connection))

        await eventually(all_wait, "each partition waits")
        watermarks = await all_rows(
            connection, "select watermark from tocsin.lane_partition where last_seq > 0"
        )
        assert all(lane["watermark"] < row["now"] for lane in watermarks), "no deadline passes meanwhile"
        await connection.execute("grant insert, update on tocsin.current_value to tocsin_worker")
        await wait_for_rows(connection, "tocsin.datapoint", 24 * 5)

        async def is_healthy() -> bool:
            return worker.problem is None

        await eventually(is_healthy, "the worker reports no problem")
        assert worker.restarts == 0
    assert await letters(settings) == []
    current = await all_rows(connection, "select value from tocsin.current_value")
    assert [row["value"] for row in current] == [4] * 24


@pytest.mark.parametrize(
    ("breaking", "repairing", "part"),
    [
        (
            "alter table tocsin.current_value rename column arrived_at to came_at",
            "alter table tocsin.current_value rename column came_at to arrived_at",
            'column "arrived_at"',
        ),
        (
            "alter table tocsin.current_value rename to current_value_2",
            "alter table tocsin.current_value_2 rename to current_value",
            'relation "tocsin.current_value" does not exist',
        ),
        (
            "alter table tocsin.current_value add constraint late check (false) not valid",
            "alter table tocsin.current_value drop constraint late",
            'violates check constraint "late"',
        ),
    ],
)
async def test_a_changed_schema_delays_datapoints_and_rejects_none(
    settings: Settings, connection: Connection, breaking: str, repairing: str, part: str
) -> None:
    one_partition = smaller(settings, data_partitions=1)
    await make_stream(one_partition)
    await send(one_partition, range(3))
    await connection.execute(breaking.encode())
    worker = lane_worker("one", one_partition)
    async with running(worker):
        await stops_or_rejects(settings, worker, part)
        await send(one_partition, [3])
        await connection.execute(repairing.encode())
        await wait_for_rows(connection, "tocsin.datapoint", 24 * 4)
    assert await letters(settings) == []


async def test_messages_without_a_backlog_are_rejected_only_until_the_third_owner(
    settings: Settings, connection: Connection
) -> None:
    """A cause that looks like the message's own: the breaker opens at the third owner in a row."""
    one_partition = smaller(settings, data_partitions=1)
    await make_stream(one_partition)
    worker = lane_worker("one", one_partition)
    async with running(worker):
        await send(one_partition, [0], OWNERS[:1])
        await wait_for_rows(connection, "tocsin.datapoint", 1)
        await connection.execute(
            "alter table tocsin.current_value add constraint late check (false) not valid"
        )
        for number, owner in enumerate(OWNERS[:3]):
            await send(one_partition, [1], [owner])
            if number < 2:

                async def is_rejected(count: int = number + 1) -> bool:
                    return len(await letters(settings)) == count

                await eventually(is_rejected, f"{number + 1} letters")

        async def is_open() -> bool:
            return 'violates check constraint "late"' in (worker.problem or "")

        await eventually(is_open, "the partition waits")
        await send(one_partition, [1], OWNERS[3:10])
        await connection.execute("alter table tocsin.current_value drop constraint late")
        await wait_for_rows(connection, "tocsin.datapoint", 9)
    assert len(await letters(settings)) == 2


class FailOnOwners:
    """Fails in Postgres on datapoints of some owners."""

    def __init__(self, *owners: str) -> None:
        self._owners = owners

    async def plan(self, connection: Connection, batch: DataBatch) -> Writes:
        return _Divide(0 if any(getattr(input, "owner", "") in self._owners for input in batch.inputs) else 1)


class _Divide(Writes):
    def __init__(self, by: int) -> None:
        self._by = by

    async def write_entities(self, connection: Connection) -> None:
        await connection.execute("select 1 / %s", (self._by,))


async def test_bad_messages_of_many_owners_do_not_stop_the_good_ones_between_them(
    settings: Settings, connection: Connection
) -> None:
    one_partition = smaller(settings, data_partitions=1)
    await make_stream(one_partition)
    await send(one_partition, range(5))
    bad = OWNERS[:20]
    worker = lane_worker("one", one_partition, FailOnOwners(*bad))
    async with running(worker):
        await wait_for_rows(connection, "tocsin.datapoint", 4 * 5)

        async def are_rejected() -> bool:
            return len(await letters(settings)) == len(bad) * 5

        await eventually(are_rejected, "all bad messages are letters")
        assert worker.restarts == 0


async def test_bad_messages_of_one_owner_are_rejected_at_once(
    settings: Settings, connection: Connection
) -> None:
    await make_stream(settings)
    worker = lane_worker("one", settings, FailOnOwners(OWNERS[0]))
    async with running(worker):
        await send(settings, range(10), OWNERS[:1])

        async def are_rejected() -> bool:
            return len(await letters(settings)) == 10

        await eventually(are_rejected, "all bad messages are letters")
        assert worker.problem is None


async def test_a_log_without_a_partition_is_extended_by_the_worker(
    settings: Settings, connection: Connection
) -> None:
    """The clock that extends the log is away."""
    await small_partitions(connection, 4)
    await put(connection, action("tell") + rule("each", "tell"))
    worker = Service("worker", Worker(smaller(settings, worker_batch=2)).run)
    async with running(Service("cdc", Publisher(settings).run), worker):

        async def runs() -> bool:
            return worker.problem is None

        await eventually(runs, "the worker runs")
        async with jetstream(settings) as js:
            for number in range(40):
                body = {"id": str(number), "type": "noted", "payload": {}}
                await js.publish(f"{settings.subjects}.ingest.event", json.dumps(body).encode())

        async def are_started() -> bool:
            return len(await actions(connection)) == 40

        await eventually(are_started, "each event starts its action")
    assert await letters(settings) == []


async def test_a_message_that_postgres_cannot_be_sent_is_rejected(
    settings: Settings, connection: Connection
) -> None:
    """psycopg refuses it before it reaches the server: it would be refused again."""
    await make_stream(settings)
    worker = lane_worker("one", settings, FailInDriver())
    async with running(worker):
        async with jetstream(settings) as js:
            await js.publish(datapoint_subject(settings.subjects, OWNERS[0], "temperature"), b'{"value": 3}')
            await js.publish(datapoint_subject(settings.subjects, OWNERS[0], "temperature"), b'{"value": 4}')
        await wait_for_rows(connection, "tocsin.datapoint", 1)
    assert len(await letters(settings)) == 1


class FailInDriver:
    async def plan(self, connection: Connection, batch: DataBatch) -> Writes:
        if any(getattr(input, "value", 0) == 3 for input in batch.inputs):
            await connection.execute("select %s::text", ("\0",))
        return Writes()

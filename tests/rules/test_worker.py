"""A run starts once and its steps are performed at least once, also if workers die or the stream is created again."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc.publisher import Publisher
from rules import worker as worker_module
from rules.lanes.status import list_worker_problems
from rules.worker import Worker
from tests.cdc.published_records import head, live, published, smaller
from tests.rules.actions.message_receiver import receiver
from tests.rules.apply.apply_setup import actions, note, publish_action, put, rows, rule
from tests.rules.lanes.lane_setup import (
    lane_worker,
    make_stream,
    send,
    shares,
    wait_for_rows,
    wait_for_shares,
)
from tests.sessions import Sessions
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings
from tocsin.doctor.checks import check_worker_problems
from tocsin.embedded import Nats, embedded_nats
from tocsin.embedded.binaries import nats_binary


@pytest.fixture
def own_nats(tmp_path: Path) -> Iterator[Nats]:
    with embedded_nats(tmp_path) as started:
        yield started


def rules(settings: Settings) -> str:
    return publish_action("tell", f"received.{settings.namespace}.x", '{event: "{{ id }}"}') + rule(
        "each", "tell"
    )


async def wait_until_completed(connection: Connection, count: int) -> None:
    async def are_completed() -> bool:
        return [row["state"] for row in await actions(connection)] == ["completed"] * count

    await eventually(are_completed, f"{count} actions are completed", within=60)


async def test_a_worker_killed_between_effect_and_outcome_is_replaced_by_another(
    settings: Settings, short_lease: Settings, connection: Connection
) -> None:
    await put(connection, rules(settings))
    await note(connection)
    variables = short_lease.model_dump(
        include={"postgres", "nats", "namespace", "worker_ack_wait_s", "lease_ttl_s"}
    )
    environment = {f"TOCSIN_{name.upper()}": str(value) for name, value in variables.items()}
    async with receiver(settings) as world, running(Service("cdc", Publisher(settings).run)):
        await published(settings, connection)
        victim = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.rules.worker_process",
            env={**os.environ, **environment},
            stdout=PIPE,
        )
        try:
            assert victim.stdout is not None
            async with asyncio.timeout(60):
                while b"the effect is done" not in (line := await victim.stdout.readline()):
                    assert line, "the worker ended by itself"
        finally:
            victim.kill()
            await victim.wait()
        await world.wait_for(1)
        assert [row["state"] for row in await actions(connection)] == ["running"]
        async with running(Service("worker", Worker(short_lease).run)):
            await wait_until_completed(connection, 1)
            await world.wait_for(2)
    assert len(set(world.keys)) == 1
    assert [row["state"] for row in await rows(connection, "action_step")] == ["due", "completed"]


async def test_a_stream_that_is_created_again_under_a_worker_starts_nothing_twice(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, rules(settings))
    async with (
        receiver(settings) as world,
        running(Service("cdc", Publisher(settings).run), Service("worker", Worker(settings).run)),
    ):
        await note(connection)
        await note(connection)
        await wait_until_completed(connection, 2)
        async with live(settings) as other:
            await other.js.delete_stream(settings.stream)
        await note(connection)
        await wait_until_completed(connection, 3)
        await world.wait_for(3)
        await published(settings, connection)

        async def has_read_everything() -> bool:
            async with live(settings) as other:
                info = await other.js.consumer_info(settings.stream, "actions")
            (lane,) = [row for row in await rows(connection, "lane_partition") if row["lane"] == "record"]
            is_read: bool = lane["last_seq"] == await head(connection)
            return info.num_pending == 0 == info.num_ack_pending and is_read

        await eventually(has_read_everything, "the rebuilt stream is read to its end", within=60)
    assert len(world.keys) == len(set(world.keys)) == 3
    assert len(await actions(connection)) == 3


async def test_a_worker_stops_while_another_version_has_migrated_the_database(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rules.worker._CHECK_S", 0.1)
    worker = Service("worker", Worker(settings).run)
    async with running(Service("cdc", Publisher(settings).run), worker):
        await wait_for_shares(connection, 8)
        await connection.execute(
            "insert into public.tocsin_migration (number, name, checksum) values (9999, '9999_new', 'x')"
        )

        async def has_stopped() -> bool:
            problem = worker.problem or ""
            return "which this version of tocsin does not know" in problem and not await shares(connection)

        await eventually(has_stopped, "the worker has stopped and released its partitions")
        await send(settings, [1], ["plant"])
        await connection.execute("delete from public.tocsin_migration where number = 9999")
        await wait_for_rows(connection, "tocsin.datapoint", 1)


async def test_two_workers_share_the_work(settings: Settings, connection: Connection) -> None:
    await put(connection, rules(settings))
    async with (
        receiver(settings) as world,
        running(
            Service("cdc", Publisher(settings).run),
            Service("worker 1", Worker(settings).run),
            Service("worker 2", Worker(settings).run),
        ),
    ):
        for _ in range(30):
            await note(connection)
        await wait_until_completed(connection, 30)
        await world.wait_for(30)
    assert len(set(world.keys)) == 30
    assert len(await rows(connection, "action_step")) == 60


async def test_a_worker_that_stops_releases_its_partitions_even_if_it_has_to_wait(
    settings: Settings, connection: Connection, sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.core.service._CANCEL_AGAIN_S", 60.0)
    worker, locking = Service("worker", Worker(settings).run), await sessions("locking")

    async def waits_for_the_lock() -> bool:
        found = await all_rows(
            connection,
            "select from pg_stat_activity where application_name = 'tocsin worker lanes'"
            " and datname = current_database() and wait_event_type = 'Lock'",
        )
        return bool(found)

    async with running(Service("cdc", Publisher(settings).run)):
        worker.start()
        await wait_for_shares(connection, 8)
        async with locking.transaction():
            await locking.execute("select from tocsin.lane_partition for update")
            stopping = asyncio.create_task(worker.stop())
            await eventually(waits_for_the_lock, "the worker gives its partitions back")
            await asyncio.wait([stopping], timeout=0.5)
        await stopping
    assert await shares(connection) == []


async def test_a_worker_continues_after_an_outage_of_nats(
    settings: Settings, connection: Connection, own_nats: Nats
) -> None:
    there = smaller(settings, nats=own_nats.url, worker_ack_wait_s=1.0)
    await put(connection, rules(settings))
    async with running(Service("cdc", Publisher(there).run), Service("worker", Worker(there).run)):
        await note(connection)
        await wait_until_completed(connection, 1)
        own_nats.kill()
        await note(connection)
        own_nats.start()
        await note(connection)
        await wait_until_completed(connection, 3)
    assert len(await actions(connection)) == 3


async def test_a_worker_without_a_stream_reports_how_to_create_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.core.streams._PATIENCE_S", 0.0)
    worker = Service("worker", Worker(settings).run)

    async def is_reported() -> bool:
        return "does not exist yet: `tocsin run cdc` or `tocsin streams create` makes it" in (
            worker.problem or ""
        )

    async with running(worker):
        await eventually(is_reported, "the worker reports how to create the stream")


async def test_a_worker_is_unhealthy_without_a_break_while_jetstream_is_gone(
    settings: Settings, own_nats: Nats, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.core.streams._PATIENCE_S", 0.0)
    there = smaller(settings, nats=own_nats.url)
    worker = Service("worker", Worker(there).run)

    async def is_healthy() -> bool:
        return worker.problem is None

    async def is_unhealthy() -> bool:
        return worker.problem is not None

    async with running(Service("cdc", Publisher(there).run), worker):
        await eventually(is_healthy, "the worker runs")
        own_nats.stop()
        port = own_nats.url.rpartition(":")[2]
        plain = await asyncio.create_subprocess_exec(nats_binary(), "-p", port, "-a", "127.0.0.1")
        try:
            await eventually(is_unhealthy, "the worker reports a problem")
            restarts = worker.restarts
            problems: list[str | None] = []

            async def has_tried_again() -> bool:
                problems.append(worker.problem)
                return worker.restarts > restarts + 12

            await eventually(has_tried_again, "each part has tried again")
            assert None not in problems
        finally:
            plain.kill()
            await plain.wait()
        own_nats.start()
        await eventually(is_healthy, "the worker runs again")


async def test_lanes_that_lost_nats_are_unhealthy_before_they_give_up(
    settings: Settings, own_nats: Nats
) -> None:
    there = smaller(settings, nats=own_nats.url, lease_ttl_s=2.0)
    await make_stream(there)
    lanes = lane_worker("lanes", there)

    async def is_healthy() -> bool:
        return lanes.problem is None

    async def is_unhealthy() -> bool:
        return lanes.problem is not None

    async with running(lanes):
        await eventually(is_healthy, "the lanes run")
        restarts = lanes.restarts
        own_nats.stop()
        await eventually(is_unhealthy, "the lanes report a problem")
        assert (lanes.problem, lanes.restarts) == ("nats is unreachable", restarts)
        own_nats.start()
        await eventually(is_healthy, "the lanes run again")


async def test_a_condition_that_fails_is_reported_to_the_doctor(
    settings: Settings, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "_CHECK_S", 0.1)
    await put(connection, publish_action("tell", "x.y", "{}") + rule("each", "tell", 'payload.site == "ams"'))

    async def is_reported() -> bool:
        return any("payload.site" in reason for _, reason, _ in await list_worker_problems(connection))

    async with running(Service("cdc", Publisher(settings).run), Service("worker", Worker(settings).run)):
        await note(connection)
        await eventually(is_reported, "the failure is recorded", within=30)
        (problem,) = await list_worker_problems(connection)
    (finding,) = check_worker_problems([problem])
    assert finding.state == "red"
    assert "the condition 'payload.site == \"ams\"' of 'each' cannot be evaluated" in finding.text
    assert "has(payload.key)" in finding.remedy

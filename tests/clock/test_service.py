"""The clock as a service: takeovers and restarts neither lose nor double a fire."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from clock.kinds import AnyTimerKind
from clock.lease import hold_lease
from clock.registry import KINDS
from clock.service import Clock
from clock.ticks import ScheduleTicks
from migrations.roles.create import create_roles
from migrations.runner import migrate
from tests.cancellation import swallow_one_cancellation
from tests.cdc.published_records import with_long_timeouts
from tests.clock.plain_kind import Plain, arm_plain, fired_plain, release
from tests.sessions import Sessions
from tests.sql import all_rows, one_row
from tests.timers.tz_setup import apply_tz_data
from tests.wait import eventually
from timers.schedule_spec import ScheduleSpec
from timers.schedules import put_schedule
from timers.working_set import database_now
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, connect, statement
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings
from tocsin.embedded import embedded_nats, embedded_postgres

BEAT = ScheduleSpec("beat", {"every": "200ms"}, catch_up="all", max_catch_up=10_000)


class ObservedClock:
    """A clock service that records its epochs and signals when it leads."""

    def __init__(self, settings: Settings, kinds: Sequence[AnyTimerKind] = KINDS) -> None:
        self.clock = Clock(settings, kinds=kinds)
        self.epochs: list[int] = []
        self.leads = asyncio.Event()
        self.clock.on_leading = self._lead
        self.service = Service("clock", self.clock.run)

    def _lead(self, epoch: int) -> None:
        self.epochs.append(epoch)
        self.leads.set()


async def start_beat(connection: Connection) -> datetime:
    now = await database_now(connection)
    put = await put_schedule(connection, BEAT, Actor("tester", "test", now))
    assert put.next_at is not None
    return put.next_at


async def fires(connection: Connection) -> list[datetime]:
    rows = await all_rows(connection, "select ts from tocsin.event where origin = 'scheduled' order by seq")
    return [row["ts"] for row in rows]


async def wait_for_fires(connection: Connection, count: int) -> None:
    """Wait until there are `count` more fires."""
    before = len(await fires(connection))

    async def more() -> bool:
        return len(await fires(connection)) >= before + count

    await eventually(more, f"{count} more fires", within=60)


async def assert_each_once(connection: Connection, first: datetime) -> None:
    recorded = await fires(connection)
    assert recorded == [first + number * timedelta(milliseconds=200) for number in range(len(recorded))]
    missed = await all_rows(connection, "select * from tocsin.event where type = 'schedule-missed'")
    assert missed == []


async def test_one_leads_and_another_takes_over_when_it_stops(
    settings: Settings, connection: Connection
) -> None:
    first_at = await start_beat(connection)
    first, second = ObservedClock(settings), ObservedClock(settings)
    async with running(first.service):
        async with asyncio.timeout(30):
            await first.leads.wait()
        async with running(second.service):
            await wait_for_fires(connection, 3)
            await first.service.stop()
            async with asyncio.timeout(30):
                await second.leads.wait()
            await wait_for_fires(connection, 3)
    assert max(first.epochs) < min(second.epochs)
    await assert_each_once(connection, first_at)


async def test_a_deposed_clock_competes_again(settings: Settings, connection: Connection) -> None:
    first_at = await start_beat(connection)
    observed = ObservedClock(settings)
    async with running(observed.service):
        async with asyncio.timeout(30):
            await observed.leads.wait()
        observed.leads.clear()
        await connection.execute("update tocsin.log_head set epoch = epoch + 10")
        async with asyncio.timeout(30):
            await observed.leads.wait()
        await wait_for_fires(connection, 2)
        assert observed.service.restarts == 0, "it competed again without a restart"
    await assert_each_once(connection, first_at)


async def test_a_restart_of_postgres_loses_and_doubles_no_fire(tmp_path: Path) -> None:
    with embedded_nats(tmp_path / "nats") as nats:
        with embedded_postgres(tmp_path / "postgres") as postgres:
            settings = Settings(postgres=postgres.url, nats=nats.url, lease_ttl_s=1.0)
            connection = await connect(with_long_timeouts(settings), "test")
            await migrate(connection)
            await create_roles(connection)
            first_at = await start_beat(connection)
            observed = ObservedClock(settings)
            observed.service.start()
            await wait_for_fires(connection, 3)
            await connection.close()
        with embedded_postgres(tmp_path / "postgres") as postgres:
            assert postgres.url == settings.postgres
            connection = await connect(with_long_timeouts(settings), "test")
            await wait_for_fires(connection, 3)
            await observed.service.stop()
            await assert_each_once(connection, first_at)
            await connection.close()


async def test_a_tick_that_was_committed_late_is_found_while_the_clock_runs(
    settings: Settings, connection: Connection
) -> None:
    """It is older than the last two seconds, so only the backstop finds it."""
    await start_beat(connection)
    observed = ObservedClock(settings)
    async with running(observed.service):
        await wait_for_fires(connection, 2)
        asked_at = await database_now(connection) - timedelta(minutes=5)
        late = ScheduleSpec("late", {"at": (asked_at + timedelta(seconds=1)).isoformat()})
        await put_schedule(connection, late, Actor("tester", "test", asked_at))

        async def late_fired() -> bool:
            return bool(await all_rows(connection, "select 1 from tocsin.event where schedule = 'late'"))

        await eventually(late_fired, "the late tick fires", within=60)


async def test_held_timers_of_another_kind_delay_no_tick_and_fire_when_they_may(
    settings: Settings, connection: Connection
) -> None:
    first_at = await start_beat(connection)
    await arm_plain(connection, "watchdog", first_at, count=2500, held=True)
    observed = ObservedClock(settings, (Plain("watchdog"), ScheduleTicks()))
    async with running(observed.service):
        await wait_for_fires(connection, 5)
        assert await fired_plain(connection, "watchdog") == []
        await release(connection)

        async def all_fired() -> bool:
            return len(await fired_plain(connection, "watchdog")) == 2500

        await eventually(all_fired, "the held timers fire")
        assert observed.epochs == [1]
    await assert_each_once(connection, first_at)


async def test_a_backstop_that_fails_begins_a_new_term(settings: Settings, connection: Connection) -> None:
    """Its session is terminated. Without a backstop, the clock would never find late commits."""
    first_at = await start_beat(connection)
    observed = ObservedClock(settings)
    async with running(observed.service):
        async with asyncio.timeout(30):
            await observed.leads.wait()
        observed.leads.clear()
        ended = await one_row(
            connection,
            "select count(pg_terminate_backend(pid)) as n from pg_stat_activity"
            " where application_name = 'tocsin clock backstop' and datname = current_database()",
        )
        assert ended["n"] == 1
        async with asyncio.timeout(30):
            await observed.leads.wait()
        await wait_for_fires(connection, 2)
    await assert_each_once(connection, first_at)


async def test_a_log_that_is_locked_against_extending_does_not_stop_the_clock(settings: Settings) -> None:
    executed: list[Any] = []

    class LockedLog:
        async def execute(self, query: bytes) -> None:
            executed.append(query)
            raise psycopg.errors.LockNotAvailable("another transaction holds the log")

    await Clock(settings)._extend_log(LockedLog())  # type: ignore[arg-type]
    assert executed == [statement("tocsin.core/extend_log")]


async def test_an_unmigrated_database_is_refused_until_it_is_migrated(
    settings: Settings, connection: Connection
) -> None:
    await connection.execute("alter table public.tocsin_migration rename to hidden")
    observed = ObservedClock(settings)
    async with running(observed.service):

        async def refused() -> bool:
            return observed.service.restarts > 0

        await eventually(refused, "the service restarts", within=60)
        assert observed.epochs == []
        await connection.execute("alter table public.hidden rename to tocsin_migration")
        async with asyncio.timeout(60):
            await observed.leads.wait()


async def test_a_term_ends_although_its_pruning_swallows_a_cancellation(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.core.service._CANCEL_AGAIN_S", 0.01)
    async with hold_lease(settings, "clock") as lease, asyncio.timeout(30):

        async def resign_and_prune(_: Settings) -> None:
            lease.resign()
            await swallow_one_cancellation()

        monkeypatch.setattr("clock.service.prune_hourly", resign_and_prune)
        await lease.wait_until_held()
        await Clock(settings)._lead(lease)


async def test_new_tz_data_is_applied_while_the_clock_fires(
    settings: Settings, connection: Connection, sessions: Sessions
) -> None:
    """An unreadable schedule and a tick that a stranger holds stop neither fires nor the others."""
    await apply_tz_data(connection, "2000a")
    now = Actor("tester", "test", await database_now(connection))
    for name in ("free", "held", "unreadable"):
        await put_schedule(connection, ScheduleSpec(name, {"cron": "0 9 * * *", "tz": "Europe/Berlin"}), now)
    await connection.execute(
        """update tocsin.schedule set recurrence = '{"cron": 9, "tz": "US/Gone"}' where name = 'unreadable'"""
    )
    await connection.execute(
        "update tocsin.timer set fire_at = fire_at + interval '1 hour', nominal_at = nominal_at + interval '1 hour'"
    )
    await start_beat(connection)
    stranger = await sessions("stranger")

    async def off_by_an_hour() -> list[str]:
        rows = await all_rows(
            connection,
            "select s.name from tocsin.schedule s join tocsin.timer t on t.ref = s.id::text"
            " where t.nominal_at <> t.identity_at and s.name <> 'unreadable' order by s.name",
        )
        return [row["name"] for row in rows]

    async def only_the_held_one_is() -> bool:
        return await off_by_an_hour() == ["held"]

    async def none_is() -> bool:
        return await off_by_an_hour() == []

    assert await off_by_an_hour() == ["free", "held"]
    async with running(ObservedClock(settings).service):
        async with stranger.transaction(force_rollback=True):
            await stranger.execute("select tocsin.schedule_cancel('', 'held')")
            await eventually(only_the_held_one_is, "the free tick has moved")
            await wait_for_fires(connection, 3)
        await eventually(none_is, "the held tick has moved as well")


async def test_a_leader_whose_database_session_hangs_is_replaced(
    short_lease: Settings, connection: Connection
) -> None:
    """Its process runs and NATS answers it, so its lease would be renewed forever."""
    await start_beat(connection)
    first, second = ObservedClock(short_lease), ObservedClock(short_lease)
    async with running(first.service):
        await first.leads.wait()
        await wait_for_fires(connection, 1)
        (backend,) = await all_rows(connection, "select holder_pid from tocsin.log_head")
        os.kill(backend["holder_pid"], signal.SIGSTOP)
        try:
            async with running(second.service):
                async with asyncio.timeout(60):
                    await second.leads.wait()
                assert second.epochs[0] > first.epochs[-1]
                await wait_for_fires(connection, 3)
        finally:
            os.kill(backend["holder_pid"], signal.SIGCONT)

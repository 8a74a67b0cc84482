"""The working set: arming is idempotent, and a cancel and a fire of one timer have one winner."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.sessions import Sessions
from tests.sql import all_rows, blocked, one_row
from tests.wait import eventually
from timers.working_set import arm, cancel, cancel_all, database_now, list_timers
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
async def other(sessions: Sessions) -> Connection:
    return await sessions("other")


@pytest.fixture(autouse=True)
async def _virtual_now(connection: Connection) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (T0.isoformat(),))


async def test_arming_again_moves_the_one_timer(connection: Connection) -> None:
    assert await arm(connection, "watchdog", "pump", "level", T0 + HOUR, {"a": 1})
    await connection.execute("update tocsin.timer set attempts = 3, last_error = 'x', parked_at = %s", (T0,))
    assert not await arm(connection, "watchdog", "pump", "level", T0 + 2 * HOUR, {"b": 2}, generation=5)
    timer = await one_row(connection, "select * from tocsin.timer")
    assert (timer["fire_at"], timer["nominal_at"]) == (T0 + 2 * HOUR, T0 + 2 * HOUR)
    assert (timer["payload"], timer["generation"]) == ({"b": 2}, 5)
    assert (timer["attempts"], timer["last_error"], timer["parked_at"]) == (0, None, None)


async def test_kind_ref_and_key_each_name_another_timer(connection: Connection) -> None:
    for kind in ("watchdog", "for-sustain", "runbook-wait"):
        for ref in ("pump", "fan"):
            for key in ("", "level"):
                assert await arm(connection, kind, ref, key, T0 + HOUR)
    assert len(await all_rows(connection, "select * from tocsin.timer")) == 12


async def test_a_time_in_the_past_is_due_at_once_and_keeps_its_nominal_time(connection: Connection) -> None:
    await arm(connection, "watchdog", "pump", "", T0 - HOUR)
    timer = await one_row(connection, "select * from tocsin.timer")
    assert (timer["fire_at"], timer["nominal_at"]) == (T0, T0 - HOUR)
    await arm(connection, "watchdog", "pump", "", T0 - 2 * HOUR)
    timer = await one_row(connection, "select * from tocsin.timer")
    assert (timer["fire_at"], timer["nominal_at"]) == (T0, T0 - 2 * HOUR)


@pytest.mark.parametrize("instant", ["infinity", "-infinity", "0044-03-15 12:00Z BC", "10000-01-01 00:00Z"])
async def test_an_instant_that_no_client_can_read_is_refused(connection: Connection, instant: str) -> None:
    with pytest.raises(psycopg.DatabaseError, match="is not an instant of the years 1 to 9999") as refused:
        await connection.execute("select tocsin.arm('watchdog', 'pump', '', %s)", (instant,))
    assert refused.value.sqlstate == "TS002"
    with pytest.raises(psycopg.errors.CheckViolation):
        await connection.execute(
            "insert into tocsin.timer (kind, ref, fire_at, nominal_at) values ('watchdog', 'x', %s, %s)",
            (instant, instant),
        )


async def test_invalid_timers_are_refused_with_a_readable_error(connection: Connection) -> None:
    with pytest.raises(InvalidInput, match="schedule ticks are armed by their schedule only"):
        await arm(connection, "schedule-tick", "x", "", T0)
    with pytest.raises(InvalidInput, match="schedule ticks are cancelled with their schedule"):
        await cancel(connection, "schedule-tick", "x")
    with pytest.raises(InvalidInput, match="schedule ticks are cancelled with their schedule"):
        await cancel_all(connection, "x", "schedule-tick")
    with pytest.raises(InvalidInput, match="unknown timer kind 'alarm-clock': use one of schedule-tick"):
        await arm(connection, "alarm-clock", "x", "", T0)
    with pytest.raises(InvalidInput, match="unknown timer kind"):
        await list_timers(connection, kind="alarm-clock")
    with pytest.raises(InvalidInput, match="has no timezone"):
        await arm(connection, "watchdog", "x", "", datetime(2026, 3, 2))
    assert await all_rows(connection, "select * from tocsin.timer") == []


async def test_a_cancel_returns_whether_there_was_a_timer(connection: Connection) -> None:
    await arm(connection, "watchdog", "pump", "level", T0 + HOUR)
    assert not await cancel(connection, "watchdog", "pump")
    assert not await cancel(connection, "for-sustain", "pump", "level")
    assert await cancel(connection, "watchdog", "pump", "level")
    assert not await cancel(connection, "watchdog", "pump", "level")


async def test_cancelling_all_of_an_entity_spares_others_and_ticks(connection: Connection) -> None:
    for kind in ("watchdog", "for-sustain"):
        for ref in ("pump", "fan"):
            for key in ("a", "b"):
                await arm(connection, kind, ref, key, T0 + HOUR)
    await connection.execute(
        "insert into tocsin.timer (kind, ref, fire_at, nominal_at) values ('schedule-tick', 'pump', %s, %s)",
        (T0, T0),
    )
    assert await cancel_all(connection, "pump", "watchdog") == 2
    assert await cancel_all(connection, "pump") == 2
    assert await cancel_all(connection, "pump") == 0
    left = await all_rows(connection, "select kind, ref from tocsin.timer order by kind, ref, key")
    assert [(row["kind"], row["ref"]) for row in left] == [
        ("for-sustain", "fan"),
        ("for-sustain", "fan"),
        ("schedule-tick", "pump"),
        ("watchdog", "fan"),
        ("watchdog", "fan"),
    ]


async def test_a_rollback_removes_the_timers_that_the_transaction_armed(connection: Connection) -> None:
    async with connection.transaction(force_rollback=True):
        await arm(connection, "watchdog", "pump", "", T0 + HOUR)
    assert await list_timers(connection) == []


@pytest.mark.parametrize("fire_commits", [True, False])
async def test_a_cancel_waits_for_a_fire_in_progress_and_returns_which_of_them_won(
    connection: Connection, other: Connection, watch: Connection, fire_commits: bool
) -> None:
    await arm(connection, "watchdog", "pump", "", T0 + HOUR)
    async with connection.transaction(force_rollback=not fire_commits):
        await connection.execute("delete from tocsin.timer")
        loser = asyncio.create_task(cancel(other, "watchdog", "pump"))
        await eventually(lambda: blocked(watch, other), "the cancel waits for the fire")
    assert await loser is not fire_commits


async def test_timers_are_listed_next_first_and_the_parked_ones_apart(connection: Connection) -> None:
    await arm(connection, "watchdog", "late", "", T0 + 2 * HOUR)
    await arm(connection, "for-sustain", "soon", "", T0 + HOUR)
    assert [timer["ref"] for timer in await list_timers(connection)] == ["soon", "late"]
    assert [timer["ref"] for timer in await list_timers(connection, kind="watchdog")] == ["late"]
    assert [timer["ref"] for timer in await list_timers(connection, limit=1)] == ["soon"]
    await connection.execute("update tocsin.timer set parked_at = %s where ref = 'late'", (T0,))
    assert [timer["ref"] for timer in await list_timers(connection, parked=True)] == ["late"]


async def test_a_test_can_set_the_time_of_the_database(connection: Connection) -> None:
    assert await database_now(connection) == T0
    await connection.execute("select set_config('tocsin.now', '', false)")
    first = await database_now(connection)
    assert T0 < first <= await database_now(connection)


async def test_a_service_may_read_its_own_rows_as_dictionaries(connection: Connection) -> None:
    connection.row_factory = dict_row
    at = await database_now(connection) + timedelta(hours=1)
    assert await arm(connection, "runbook-wait", "order-17", "remind", at)
    assert not await arm(connection, "runbook-wait", "order-17", "remind", at)
    assert await cancel(connection, "runbook-wait", "order-17", "remind")
    assert await cancel_all(connection, "order-17") == 0

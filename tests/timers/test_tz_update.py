"""A new tz database moves the ticks it concerns, and nothing that is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg.pq import TransactionStatus

from clock.term import begin_term
from tests.records import events
from timers import tz_update
from timers.recurrence import Recurrence, parse_spec
from timers.schedule_spec import ScheduleSpec
from timers.schedules import find_schedule, put_schedule
from timers.tz_update import apply_tz_data
from tocsin.core.audit import Actor
from tocsin.core.db import Connection

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
ACTOR = Actor("tester", "test", T0)
HOUR = timedelta(hours=1)


async def pretend_the_zone_was_an_hour_ahead(connection: Connection) -> None:
    """Move ticks an hour back, as an older tz database would have computed them."""
    await connection.execute(
        "update tocsin.timer set fire_at = fire_at - interval '1 hour', nominal_at = nominal_at - interval '1 hour'"
    )


async def nominal(connection: Connection, name: str) -> datetime:
    row = await find_schedule(connection, "", name)
    assert row is not None
    at: datetime = row["nominal_at"]
    return at


@pytest.mark.parametrize(
    ("recurrence", "moves"),
    [
        ({"cron": "0 9 * * *", "tz": "America/Vancouver"}, True),
        ({"at": "2026-06-01T09:00:00", "tz": "America/Vancouver"}, True),
        ({"every": "1d", "tz": "America/Vancouver"}, False),
        ({"at": "2026-06-01T09:00:00Z", "tz": "America/Vancouver"}, False),
        ({"cron": "0 9 * * *", "tz": "UTC"}, False),
    ],
)
async def test_only_schedules_that_depend_on_a_zone_are_computed_again(
    connection: Connection, recurrence: dict[str, str], moves: bool
) -> None:
    await apply_tz_data(connection, "2098z")
    await put_schedule(connection, ScheduleSpec("s", recurrence), ACTOR)
    right = await nominal(connection, "s")
    await pretend_the_zone_was_an_hour_ahead(connection)
    assert await apply_tz_data(connection, "2099a") == (1 if moves else 0)
    assert await nominal(connection, "s") == (right if moves else right - HOUR)


async def test_the_same_version_is_applied_once(connection: Connection) -> None:
    await put_schedule(connection, ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/London"}), ACTOR)
    await apply_tz_data(connection, "2099a")
    await pretend_the_zone_was_an_hour_ahead(connection)
    assert await apply_tz_data(connection, "2099a") == 0
    assert await apply_tz_data(connection, "2099b") == 1


async def test_a_new_database_has_nothing_to_compare_with(connection: Connection) -> None:
    await put_schedule(connection, ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/London"}), ACTOR)
    await pretend_the_zone_was_an_hour_ahead(connection)
    before = await nominal(connection, "s")
    assert await apply_tz_data(connection, "2099a") == 0
    assert await nominal(connection, "s") == before


async def test_many_schedules_are_computed_outside_the_transaction(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await apply_tz_data(connection, "2098z")
    await put_schedule(connection, ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/London"}), ACTOR)
    await pretend_the_zone_was_an_hour_ahead(connection)
    states: list[TransactionStatus] = []

    def noting(spec: Mapping[str, object]) -> Recurrence:
        states.append(connection.info.transaction_status)
        return parse_spec(spec)

    monkeypatch.setattr("timers.tz_update.parse_spec", noting)
    assert await apply_tz_data(connection, "2099a") == 1
    assert states == [TransactionStatus.IDLE]


async def test_many_ticks_are_moved_in_chunks(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timers.tz_update._CHUNK", 2)
    await apply_tz_data(connection, "2098z")
    names = [f"s-{number}" for number in range(5)]
    for name in names:
        await put_schedule(
            connection, ScheduleSpec(name, {"cron": "0 9 * * *", "tz": "America/Vancouver"}), ACTOR
        )
    right = [await nominal(connection, name) for name in names]
    await pretend_the_zone_was_an_hour_ahead(connection)
    assert await apply_tz_data(connection, "2099a") == 5
    assert [await nominal(connection, name) for name in names] == right


async def test_a_tick_that_was_edited_meanwhile_is_left_alone(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await apply_tz_data(connection, "2098z")
    await put_schedule(connection, ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/London"}), ACTOR)
    await pretend_the_zone_was_an_hour_ahead(connection)
    edited = ScheduleSpec("s", {"cron": "0 11 * * *", "tz": "Europe/London"})
    monkeypatch.setattr(
        tz_update, "_moves", _after(tz_update._moves, lambda: put_schedule(connection, edited, ACTOR))
    )
    await apply_tz_data(connection, "2099a")
    assert (await nominal(connection, "s")).hour == 11


def _after(
    first: Callable[[Connection], Awaitable[Any]], then: Callable[[], Awaitable[Any]]
) -> Callable[[Connection], Awaitable[Any]]:
    async def both(connection: Connection) -> Any:
        result = await first(connection)
        await then()
        return result

    return both


async def test_a_wall_time_that_is_done_does_not_fire_again(connection: Connection) -> None:
    await put_schedule(connection, ScheduleSpec("s", {"cron": "0 9 * * *", "tz": "Europe/London"}), ACTOR)
    first = await nominal(connection, "s")
    await apply_tz_data(connection, "2098z")
    term = await begin_term(connection, "test")
    await term.run_once(first)
    await apply_tz_data(connection, "2099a")
    assert await nominal(connection, "s") == first + timedelta(days=1)
    assert (await term.run_once(first + HOUR)).timers == 0
    assert len(await events(connection)) == 1

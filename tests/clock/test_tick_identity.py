"""A tick stores the identity of its occurrence. A missing one is computed again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from clock.term import begin_term
from tests.clock.clock_setup import T0, drain, put, schedule
from tests.records import events
from tests.sql import one_row
from tests.timers.tz_setup import apply_tz_data
from timers.identity import event_id_text
from timers.recurrence import parse, parse_spec
from timers.schedule_spec import ScheduleSpec
from timers.schedules import put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection

DAILY = ScheduleSpec("daily", {"cron": "30 2 * * *", "tz": "America/New_York"})
# 02:30 does not exist on this day: it fires at 03:00, and its identity is 02:30.
IN_THE_GAP = datetime(2026, 3, 8, 7, 0, tzinfo=UTC)
DAY = timedelta(days=1)
EARLIER = Actor("tester", "test", IN_THE_GAP - timedelta(hours=20))


async def tick(connection: Connection) -> dict[str, Any]:
    return await one_row(connection, "select * from tocsin.timer")


async def stored_identity(connection: Connection) -> tuple[str, datetime]:
    row = await tick(connection)
    assert row["identity_at"] == row["nominal_at"]
    return row["identity"], row["nominal_at"]


async def test_each_tick_is_armed_with_the_identity_of_its_occurrence(connection: Connection) -> None:
    made = await put_schedule(connection, DAILY, EARLIER)
    assert await stored_identity(connection) == ("2026-03-08T02:30:00/0", IN_THE_GAP)
    await drain(await begin_term(connection, "test"), IN_THE_GAP)
    assert await stored_identity(connection) == (
        "2026-03-09T02:30:00/0",
        IN_THE_GAP + DAY - timedelta(minutes=30),
    )
    (event,) = await events(connection)
    assert event["id"].hex == event_id_text(str(made.id), 1, "2026-03-08T02:30:00/0")
    elapsed = ScheduleSpec("daily", {"cron": "*/5 * * * *", "tz": "America/New_York"})
    await put_schedule(connection, elapsed, Actor("tester", "test", IN_THE_GAP + DAY))
    assert await stored_identity(connection) == (
        "2026-03-09T07:05:00Z",
        IN_THE_GAP + DAY + timedelta(minutes=5),
    )


async def test_the_stored_identity_is_used_as_it_is(connection: Connection) -> None:
    made = await put(connection)
    await connection.execute("update tocsin.timer set identity = 'as armed'")
    term = await begin_term(connection, "test")
    await term.run_once(T0 + timedelta(seconds=57))
    missed, fire = await events(connection)
    assert missed["id"].hex == event_id_text(str(made.id), 1, "missed/as armed")
    assert fire["id"].hex == event_id_text(str(made.id), 1, "2026-03-02T08:00:50Z")
    await connection.execute("update tocsin.timer set identity = 'as armed too'")
    await term.run_once(T0 + timedelta(seconds=60))
    assert (await events(connection))[2]["id"].hex == event_id_text(str(made.id), 1, "as armed too")


@pytest.mark.parametrize(
    "change",
    [
        "update tocsin.timer set identity = null, identity_at = null",
        "update tocsin.timer set identity = 'of another one', identity_at = nominal_at - interval '1 day'",
        "update tocsin.timer set identity = 'of another one', identity_at = null",
    ],
)
async def test_a_missing_or_outdated_identity_is_computed_again(connection: Connection, change: str) -> None:
    made = await put_schedule(connection, DAILY, EARLIER)
    await connection.execute(change.encode())
    await drain(await begin_term(connection, "test"), IN_THE_GAP)
    (event,) = await events(connection)
    assert event["id"] == UUID(event_id_text(str(made.id), 1, "2026-03-08T02:30:00/0"))


async def test_ticks_that_differ_only_in_their_identity_are_decided_separately(
    connection: Connection,
) -> None:
    ids = [(await put(connection, name=name)).id for name in ("one", "two")]
    await connection.execute("update tocsin.timer set identity = ref")
    await drain(await begin_term(connection, "test"), T0 + timedelta(seconds=10))
    ids_of_events = {event["id"].hex for event in await events(connection)}
    assert ids_of_events == {event_id_text(str(id), 1, str(id)) for id in ids}


@pytest.mark.parametrize(
    "at",
    [
        datetime(2031, 3, 2, 8, 0, tzinfo=UTC),
        datetime(2031, 3, 2, 8, 0, 0, 250_000, tzinfo=UTC),
        datetime(2031, 3, 2, 8, 0, 59, 1, tzinfo=UTC),
        datetime(9999, 12, 29, 23, 59, 59, 999_999, tzinfo=UTC),
    ],
)
async def test_a_one_shot_made_in_sql_has_the_identity_of_one_made_in_python(
    connection: Connection, at: datetime
) -> None:
    await connection.execute("select * from tocsin.schedule_once('svc', 'remind', %s)", (at,))
    stored = await one_row(connection, "select recurrence from tocsin.schedule")
    for recurrence in (parse_spec(stored["recurrence"]), parse(at=at.isoformat())):
        occurrence = recurrence.occurrence_after(at - DAY)
        assert occurrence is not None
        assert await stored_identity(connection) == (recurrence.identity(occurrence), at)


async def test_new_tz_data_gives_a_moved_tick_its_new_identity(connection: Connection) -> None:
    await apply_tz_data(connection, "2000a")
    await put_schedule(connection, DAILY, EARLIER)
    await connection.execute(
        "update tocsin.timer set nominal_at = nominal_at - interval '1 hour', identity = 'by older data',"
        " identity_at = nominal_at - interval '1 hour'"
    )
    assert await apply_tz_data(connection, "2000b") == 1
    assert await stored_identity(connection) == ("2026-03-08T02:30:00/0", IN_THE_GAP)


async def test_a_tick_whose_instant_gets_another_wall_time_gets_its_identity(connection: Connection) -> None:
    """The zone moved by the hour between two times: the instant is now the other occurrence."""
    await apply_tz_data(connection, "2000a")
    twice = ScheduleSpec("twice", {"cron": "0 8,9 * * *", "tz": "America/New_York"})
    await put_schedule(connection, twice, Actor("tester", "test", T0))
    before = await stored_identity(connection)
    await connection.execute("update tocsin.timer set identity = '2026-03-02T09:00:00/0'")
    assert await apply_tz_data(connection, "2000b") == 1
    assert await stored_identity(connection) == before
    assert await apply_tz_data(connection, "2000c") == 0, "a tick that does not change is not touched"


async def test_new_tz_data_does_not_change_a_tick_without_an_identity(connection: Connection) -> None:
    await apply_tz_data(connection, "2000a")
    await put_schedule(connection, DAILY, EARLIER)
    await connection.execute("update tocsin.timer set identity = null, identity_at = null")
    assert await apply_tz_data(connection, "2000b") == 0
    assert (await schedule(connection, "daily"))["nominal_at"] == IN_THE_GAP

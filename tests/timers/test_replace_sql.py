"""Services replace, move, cancel and repeat schedules inside their own transactions, in SQL and in
Python."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from clock.term import begin_term
from tests.records import events
from tests.rules.apply.apply_setup import action, put
from tests.sql import all_rows
from timers.schedules import find_schedule
from tocsin.client import (
    get_schedule,
    schedule_cancel,
    schedule_move,
    schedule_once,
    schedule_recurring,
)
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput, Refused

A = datetime(2031, 3, 2, 8, 0, tzinfo=UTC)
B = datetime(2031, 3, 3, 8, 0, tzinfo=UTC)
NOW = datetime(2031, 3, 1, 8, 0, 0, 500_000, tzinfo=UTC)
KEY: dict[str, Any] = {"owner": "svc", "name": "remind"}


async def at(connection: Connection, instant: datetime) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (instant.isoformat(),))


async def fire(connection: Connection, instant: datetime) -> int:
    await at(connection, instant)
    term = await begin_term(connection, "test")
    return (await term.run_once(instant)).fires


async def call(connection: Connection, sql: str) -> dict[str, Any]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        row = await (await cursor.execute(sql)).fetchone()
    assert row is not None
    return row


async def test_a_pending_one_shot_is_replaced(connection: Connection) -> None:
    await at(connection, NOW)
    first = await schedule_once(connection, **KEY, at=A, payload={"n": 1})
    with pytest.raises(
        Refused, match=r"at is 2031-03-02T08:00:00Z, not 2031-03-03T08:00:00Z; schedule it with replace=True"
    ):
        await schedule_once(connection, **KEY, at=B, payload={"n": 1})
    second = await schedule_once(connection, **KEY, at=B, payload={"n": 2}, replace=True)
    assert (second.id, second.generation, second.fire_at, second.deduped) == (first.id, 2, B, False)
    again = await schedule_once(connection, **KEY, at=B, payload={"n": 2}, replace=True)
    assert (again.generation, again.deduped) == (2, True)
    assert await fire(connection, A) == 0
    assert await fire(connection, B) == 1
    assert [(row["ts"], row["payload"]) for row in await events(connection)] == [(B, {"n": 2})]


@pytest.mark.parametrize("ended", ["cancelled", "fired"])
async def test_a_one_shot_is_armed_again_after_it_has_ended(connection: Connection, ended: str) -> None:
    await at(connection, NOW)
    await schedule_once(connection, **KEY, at=A)
    if ended == "fired":
        assert await fire(connection, A) == 1
    else:
        assert await schedule_cancel(connection, **KEY)
    unchanged = await schedule_once(connection, **KEY, at=A)
    assert (unchanged.status, unchanged.deduped) == (ended, True)
    armed = await schedule_once(connection, **KEY, at=B, replace=True)
    assert (armed.status, armed.fire_at) == ("active", B)
    assert await fire(connection, B) == 1
    ids = [row["id"] for row in await events(connection)]
    assert len(ids) == len(set(ids)) == (2 if ended == "fired" else 1)


async def test_a_cancelled_one_shot_is_armed_again_at_the_same_instant(connection: Connection) -> None:
    await at(connection, NOW)
    await schedule_once(connection, **KEY, at=A)
    await schedule_cancel(connection, **KEY)
    assert (await schedule_once(connection, **KEY, at=A, replace=True)).status == "active"
    assert await fire(connection, A) == 1


async def test_an_occurrence_that_is_done_does_not_fire_again(connection: Connection) -> None:
    await at(connection, NOW)
    await schedule_once(connection, **KEY, at=A)
    await fire(connection, A)
    with pytest.raises(
        InvalidInput, match=r"is done up to 2031-03-02T08:00:00.000000Z: give a time after it"
    ):
        await schedule_once(connection, **KEY, at=A, replace=True)
    assert await fire(connection, A) == 0
    assert len(await events(connection)) == 1


async def test_a_one_shot_is_moved_and_keeps_its_content(connection: Connection) -> None:
    await at(connection, NOW)
    await schedule_once(connection, **KEY, at=A, payload={"n": 1}, title="Reminder")
    moved = await schedule_move(connection, **KEY, at="2031-03-03T08:00:00Z")
    assert (moved.generation, moved.fire_at) == (2, B)
    stored = await get_schedule(connection, **KEY)
    assert stored is not None
    assert (stored.payload, stored.title, stored.next_at) == ({"n": 1}, "Reminder", B)
    (row,) = await all_rows(connection, "select verb from tocsin.audit order by id desc limit 1")
    assert row["verb"] == "move"


async def test_a_move_of_nothing_pending_is_refused_with_what_to_do(connection: Connection) -> None:
    await at(connection, NOW)
    with pytest.raises(Refused, match="does not exist: schedule it"):
        await schedule_move(connection, **KEY, at=A)
    await schedule_once(connection, **KEY, at=A)
    await schedule_cancel(connection, **KEY)
    with pytest.raises(
        Refused, match="is cancelled, and only a pending one can be moved: schedule it with replace=True"
    ):
        await schedule_move(connection, **KEY, at=B)
    await schedule_recurring(connection, owner="svc", name="beat", every="1h")
    with pytest.raises(Refused, match="is recurring, and only a single fire can be moved"):
        await schedule_move(connection, owner="svc", name="beat", at=B)


async def test_changes_are_refused_at_another_generation(connection: Connection) -> None:
    await at(connection, NOW)
    await schedule_once(connection, **KEY, at=A)
    await schedule_once(connection, **KEY, at=B, if_generation=1)
    stale = "is at generation 2, not 1: read it again before you change it"
    with pytest.raises(Refused, match=stale):
        await schedule_once(connection, **KEY, at=A, if_generation=1)
    with pytest.raises(Refused, match=stale):
        await schedule_move(connection, **KEY, at=A, if_generation=1)
    with pytest.raises(Refused, match=stale):
        await schedule_cancel(connection, **KEY, if_generation=1)
    with pytest.raises(Refused, match="there is no schedule 'other'"):
        await schedule_once(connection, owner="svc", name="other", at=A, if_generation=1)
    assert await get_schedule(connection, "svc", "other") is None
    assert await schedule_cancel(connection, **KEY, if_generation=2)


async def test_a_schedule_is_cancelled_by_its_id(connection: Connection) -> None:
    await at(connection, NOW)
    scheduled = await schedule_once(connection, **KEY, at=A)
    assert await schedule_cancel(connection, id=scheduled.id)
    assert not await schedule_cancel(connection, id=scheduled.id)
    with pytest.raises(InvalidInput, match="by owner and name, or by its id"):
        await schedule_cancel(connection)


async def test_an_action_that_is_not_applied_is_refused(connection: Connection) -> None:
    await at(connection, NOW)
    with pytest.raises(InvalidInput, match="no action 'nope' is applied: apply it first"):
        await schedule_once(connection, **KEY, at=A, action="nope")
    with pytest.raises(InvalidInput, match="no action 'nope' is applied: apply it first"):
        await schedule_recurring(connection, **KEY, every="1h", action="nope")
    await put(connection, action("tell"))
    assert (await schedule_once(connection, **KEY, at=A, action="tell")).status == "active"


async def test_a_retry_that_is_not_understood_is_refused(connection: Connection) -> None:
    await put(connection, action("tell"))
    with pytest.raises(InvalidInput, match="attempts"):
        await schedule_once(connection, **KEY, at=A, action="tell", retry={"attempts": 0})
    for retry in ('{"attempts": 0}', '{"tries": 3}', '{"initial_interval": "soon"}', "[]"):
        with pytest.raises(psycopg.Error, match="is not understood"):
            await call(
                connection,
                "select * from tocsin.schedule_once('a', 'b', '2031-01-01Z', action => 'tell',"
                f" retry => '{retry}')",
            )


@pytest.mark.parametrize("given", ["1930204800", 1930204800, 1930204800.0, "in 1 day"])
async def test_a_time_may_be_a_unix_timestamp_or_a_phrase(connection: Connection, given: Any) -> None:
    await at(connection, A - timedelta(days=1))
    scheduled = await schedule_once(connection, **KEY, at=given)
    assert scheduled.fire_at == A


async def test_a_wall_time_is_read_in_its_timezone(connection: Connection) -> None:
    await at(connection, NOW)
    scheduled = await schedule_once(connection, **KEY, at="2031-03-02T09:00", tz="Europe/Paris")
    assert scheduled.fire_at == A


async def test_a_recurring_schedule_commits_with_the_work_of_the_service(connection: Connection) -> None:
    await at(connection, NOW)
    async with connection.transaction(force_rollback=True):
        await schedule_recurring(connection, **KEY, cron="0 8 * * *", tz="Europe/Paris")
    assert await get_schedule(connection, **KEY) is None
    async with connection.transaction():
        added = await schedule_recurring(
            connection, **KEY, cron="0 8 * * *", tz="Europe/Paris", payload={"n": 1}
        )
    assert added.fire_at == datetime(2031, 3, 2, 7, 0, tzinfo=UTC)
    assert (
        await schedule_recurring(connection, **KEY, cron="0 8 * * *", tz="Europe/Paris", payload={"n": 1})
    ).deduped
    with pytest.raises(Refused, match=r"other content \(recurrence\)"):
        await schedule_recurring(connection, **KEY, cron="0 9 * * *", tz="Europe/Paris", payload={"n": 1})
    replaced = await schedule_recurring(
        connection, **KEY, rrule="FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0", replace=True
    )
    assert (replaced.generation, replaced.fire_at) == (2, datetime(2031, 3, 1, 9, 0, tzinfo=UTC))
    with pytest.raises(InvalidInput, match="needs one of cron, rrule and every"):
        await schedule_recurring(connection, **KEY)


async def test_a_connection_without_autocommit_decides_about_the_commit(
    connection: Connection,
) -> None:
    await at(connection, NOW)
    await connection.set_autocommit(False)
    await schedule_recurring(connection, **KEY, every=timedelta(minutes=90))
    await connection.rollback()
    await connection.set_autocommit(True)
    assert await get_schedule(connection, **KEY) is None


EVERY = "select * from tocsin.schedule_recurring('svc', 'remind', every => '{}'{})"


async def test_an_interval_is_scheduled_in_sql(connection: Connection) -> None:
    await at(connection, NOW)
    row = await call(connection, EVERY.format("90 seconds", ""))
    first = NOW.replace(microsecond=0) + timedelta(seconds=90)
    assert (row["status"], row["fire_at"], row["deduped"]) == ("active", first, False)
    stored = await find_schedule(connection, "svc", "remind")
    assert stored is not None
    assert stored["recurrence"]["every"] == "1m30s"
    await at(connection, NOW + timedelta(seconds=30))
    assert (await call(connection, EVERY.format("90 seconds", "")))["deduped"]
    assert (await schedule_recurring(connection, **KEY, every="90s")).deduped
    assert await fire(connection, first) == 1
    assert await fire(connection, first + timedelta(seconds=90)) == 1
    assert [row["ts"] for row in await events(connection)] == [first, first + timedelta(seconds=90)]


async def test_an_interval_is_replaced_in_sql_and_fires_nothing_again(connection: Connection) -> None:
    await at(connection, NOW)
    await call(connection, EVERY.format("1 hour", ""))
    first = NOW.replace(microsecond=0) + timedelta(hours=1)
    await fire(connection, first)
    with pytest.raises(psycopg.Error, match="every is 1h, not 2h; schedule it with replace => true"):
        await call(connection, EVERY.format("2 hours", ""))
    row = await call(
        connection, EVERY.format("2 hours", ", replace => true, starts_at => '2031-03-01 00:00Z'")
    )
    assert row["fire_at"] == datetime(2031, 3, 1, 10, 0, tzinfo=UTC)
    assert await fire(connection, row["fire_at"]) == 1
    assert [event["ts"] for event in await events(connection)] == [first, row["fire_at"]]


@pytest.mark.parametrize("every", ["1 month", "10 milliseconds", "0.0005 seconds", "-1 hour", "1 year"])
async def test_an_interval_that_is_no_duration_is_refused_in_sql(connection: Connection, every: str) -> None:
    with pytest.raises(psycopg.Error, match="for calendar times use cron or rrule"):
        await call(connection, EVERY.format(every, ""))

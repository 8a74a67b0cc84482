"""A timer that fails alone is retried, parked in the end, and never stops the others."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from clock.registry import KINDS
from clock.term import Term, _TimerKey, begin_term
from tests.clock.clock_setup import at, drain, fired, put, schedule
from tests.sql import all_rows, one_row
from timers.schedule_spec import ScheduleSpec
from timers.schedules import put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import Deposed

BAD = "beat-3"
NAMES = [f"beat-{number}" for number in range(8)]


async def put_eight_beats(connection: Connection, damage: str) -> None:
    for name in NAMES:
        await put(connection, name=name)
    await connection.execute(damage.encode(), (BAD,))


async def bad_tick(connection: Connection) -> dict[str, Any]:
    return await one_row(
        connection,
        "select t.* from tocsin.timer t join tocsin.schedule s on s.id::text = t.ref where s.name = %s",
        (BAD,),
    )


# A recurrence that Python cannot parse, a payload that Postgres rejects, a grace that overflows.
DAMAGES = {
    "garbage": 'update tocsin.schedule set recurrence = \'{"cron": 5, "no": []}\' where name = %s',
    "no kind": "update tocsin.schedule set recurrence = '{}' where name = %s",
    "too large": (
        "with unchecked as (select %s as name) update tocsin.schedule s"
        " set payload = to_jsonb(repeat('x', 300000)) from unchecked u where s.name = u.name"
    ),
    "overflow": "update tocsin.schedule set grace = '170000000 years' where name = %s",
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("batch", [1, 3, 1000])
async def test_one_bad_row_is_delayed_while_the_others_fire(
    connection: Connection, damage: str, batch: int
) -> None:
    await connection.execute("alter table tocsin.schedule drop constraint schedule_payload_check")
    await put_eight_beats(connection, DAMAGES[damage])
    term = await begin_term(connection, "test", batch=batch)
    await drain(term, at(10))
    assert sorted(await fired(connection)) == [(name, at(10)) for name in NAMES if name != BAD]
    bad = await bad_tick(connection)
    assert (bad["attempts"], bad["nominal_at"], bad["fire_at"]) == (1, at(10), at(11))
    assert bad["last_error"]
    assert bad["parked_at"] is None


async def test_the_delay_of_a_bad_row_doubles_until_it_is_parked(connection: Connection) -> None:
    await put_eight_beats(connection, DAMAGES["garbage"])
    term = await begin_term(connection, "test", max_failures=4)
    waits = []
    now = at(10)
    for _ in range(4):
        await drain(term, now)
        bad = await bad_tick(connection)
        waits.append(bad["fire_at"] - now)
        now = bad["fire_at"]
    assert waits == [timedelta(seconds=seconds) for seconds in (1, 2, 4, 8)]
    assert (bad["attempts"], bad["parked_at"]) == (4, at(17))
    await drain(term, at(1000))
    assert await bad_tick(connection) == bad
    assert BAD not in {name for name, _ in await fired(connection)}


async def test_the_delay_grows_to_at_most_five_minutes(connection: Connection) -> None:
    await put_eight_beats(connection, DAMAGES["garbage"])
    await connection.execute("update tocsin.timer set attempts = 40")
    term = await begin_term(connection, "test", max_failures=100)
    await drain(term, at(10))
    assert (await bad_tick(connection))["fire_at"] == at(310)


async def test_a_repaired_row_fires_and_its_failures_are_reset(connection: Connection) -> None:
    await put_eight_beats(connection, DAMAGES["garbage"])
    good = (await schedule(connection, "beat-1"))["recurrence"]
    term = await begin_term(connection, "test")
    await drain(term, at(10))
    await connection.execute(
        "update tocsin.schedule set recurrence = %s where name = %s", (psycopg.types.json.Jsonb(good), BAD)
    )
    await drain(term, at(11))
    assert (BAD, at(10)) in await fired(connection)
    bad = await bad_tick(connection)
    assert (bad["attempts"], bad["last_error"], bad["nominal_at"]) == (0, None, at(20))


async def test_several_bad_rows_fail_alone_each(connection: Connection) -> None:
    await connection.execute("alter table tocsin.schedule drop constraint schedule_payload_check")
    for name in NAMES:
        await put(connection, name=name)
    await connection.execute(
        "update tocsin.schedule set payload = to_jsonb(repeat('x', 300000)) where name < 'beat-5'"
    )
    await connection.execute("update tocsin.schedule set recurrence = '{}' where name = 'beat-6'")
    term = await begin_term(connection, "test")
    await drain(term, at(10))
    assert sorted(await fired(connection)) == [("beat-5", at(10)), ("beat-7", at(10))]


async def test_an_edit_made_meanwhile_does_not_get_the_failure_of_the_version_before(
    connection: Connection,
) -> None:
    await put(connection)
    (row,) = await all_rows(connection, "select ref from tocsin.timer")
    term = await begin_term(connection, "test")
    edited = ScheduleSpec("beat", {"every": "10s"}, payload={"k": 1})
    await put_schedule(connection, edited, Actor("tester", "test", at(1)))
    await term._fail_alone(KINDS[0], _TimerKey(row["ref"], "", 1), "an error of generation 1", at(10))
    assert (await one_row(connection, "select * from tocsin.timer"))["attempts"] == 0


async def test_a_row_that_cannot_be_read_fails_alone(connection: Connection) -> None:
    await put(connection)
    await connection.execute(
        "insert into tocsin.timer (kind, ref, fire_at, nominal_at) values ('schedule-tick', 'no uuid', %s, %s)",
        (at(5), at(5)),
    )
    term = await begin_term(connection, "test")
    await drain(term, at(10))
    assert await fired(connection) == [("beat", at(10))]
    odd = await one_row(connection, "select * from tocsin.timer where ref = 'no uuid'")
    assert (odd["attempts"], odd["fire_at"]) == (1, at(11))


@pytest.mark.parametrize(
    "outage",
    [
        "alter table tocsin.event rename to event_away",
        "alter table tocsin.event_0 add constraint late check (false) not valid",
    ],
)
async def test_an_error_of_the_schema_is_raised_and_a_violated_check_fails_the_row(
    connection: Connection, outage: str
) -> None:
    """A missing table is no fault of a row. A violated CHECK counts as one."""
    await put(connection)
    term = await begin_term(connection, "test")
    await connection.execute(outage.encode())
    if "rename" in outage:
        with pytest.raises(psycopg.errors.UndefinedTable):
            await drain(term, at(10))
        assert (await one_row(connection, "select * from tocsin.timer"))["attempts"] == 0
    else:
        await drain(term, at(10))
        assert (await one_row(connection, "select * from tocsin.timer"))["attempts"] == 1


async def test_a_cause_that_all_rows_share_parks_none_of_them(connection: Connection) -> None:
    for name in NAMES:
        await put(connection, name=name)
    await connection.execute("alter table tocsin.event_0 add constraint late check (false) not valid")
    term = await begin_term(connection, "test", max_failures=3)
    for seconds in range(10, 130, 5):
        await drain(term, at(seconds))
    rows = await all_rows(connection, "select parked_at, attempts, fire_at from tocsin.timer")
    assert [row["parked_at"] for row in rows] == [None] * 8
    assert max(row["attempts"] for row in rows) == 1
    assert max(row["fire_at"] for row in rows) <= at(130)
    assert 'violates check constraint "late"' in term.problem
    await connection.execute("alter table tocsin.event_0 drop constraint late")
    await drain(term, at(130))
    assert {name for name, _ in await fired(connection)} == set(NAMES)
    assert term.problem == ""


async def test_a_bad_row_is_parked_after_a_cause_that_all_rows_shared(connection: Connection) -> None:
    await put_eight_beats(connection, DAMAGES["overflow"])
    await connection.execute("alter table tocsin.event_0 add constraint late check (false) not valid")
    term = await begin_term(connection, "test", max_failures=2)
    for seconds in range(10, 40, 5):
        await drain(term, at(seconds))
    await connection.execute("alter table tocsin.event_0 drop constraint late")
    for seconds in range(40, 400, 5):
        await drain(term, at(seconds))
    parked = await all_rows(
        connection,
        "select s.name from tocsin.timer t join tocsin.schedule s on s.id::text = t.ref"
        " where t.parked_at is not null",
    )
    assert [row["name"] for row in parked] == [BAD]


async def test_a_log_without_a_partition_is_extended_and_no_row_fails(connection: Connection) -> None:
    await put(connection)
    await connection.execute("drop table tocsin.event_0, tocsin.action_step_0")
    term = await begin_term(connection, "test")
    await drain(term, at(10))
    assert await fired(connection) == [("beat", at(10))]
    assert (await one_row(connection, "select * from tocsin.timer"))["attempts"] == 0


async def begin_superseded_term(connection: Connection, damage: str) -> Term:
    await connection.execute("alter table tocsin.schedule drop constraint schedule_payload_check")
    await put(connection, name=BAD)
    await connection.execute(damage.encode(), (BAD,))
    term = await begin_term(connection, "test", batch=1)
    await connection.execute("update tocsin.log_head set epoch = epoch + 1")
    return term


@pytest.mark.parametrize("damage", ["garbage", "overflow"])
async def test_a_deposed_clock_cannot_fail_a_row(connection: Connection, damage: str) -> None:
    term = await begin_superseded_term(connection, DAMAGES[damage])
    with pytest.raises(Deposed):
        await drain(term, at(10))
    bad = await bad_tick(connection)
    assert (bad["attempts"], bad["fire_at"]) == (0, at(10))


async def test_the_batch_is_halved_around_a_bad_row_and_grows_again(connection: Connection) -> None:
    await connection.execute("alter table tocsin.schedule drop constraint schedule_payload_check")
    for number in range(1, 9):
        await put(connection, name=f"every-{number}", recurrence={"every": f"{number}s"})
    await connection.execute(
        "update tocsin.schedule set payload = to_jsonb(repeat('x', 300000)) where name = 'every-8'"
    )
    term = await begin_term(connection, "test", batch=8)
    # A batch of 8 fails, 4 fire. 8 and 4 fail, 2 fire. 4 and 2 fail, 1 fires. The bad row is left.
    assert [batch.timers for batch in await drain(term, at(8))] == [0, 4, 0, 0, 2, 0, 0, 1, 0, 0, 0]

"""A wait that fires makes its step due if the run still waits. Races have one winner."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from clock.runbook_waits import RunbookWaits
from clock.term import Term, begin_term
from rules.actions.cancel import cancel_runs
from tests.clock.clock_setup import at, drain
from tests.sessions import Sessions
from tests.sql import all_rows, blocked, one_row
from tests.wait import eventually
from timers.working_set import arm
from tocsin.core.db import Connection
from tocsin.core.errors import Deposed

WAITING = {"2": {"attempt": 3, "state": "waiting"}}


async def put_run(
    connection: Connection, active: dict[str, Any] | None = None, state: str = "running", **columns: Any
) -> UUID:
    id = uuid4()
    await connection.execute(
        "insert into tocsin.action (id, name, action_rule, event_id, event_seq, document, state, active, started_at,"
        " correlation_id, group_key) values (%s, 'book', 'each', %s, 1, '{}', %s, %s, %s, %s, %s)",
        (
            id,
            uuid4(),
            state,
            Jsonb(WAITING if active is None else active),
            at(0),
            uuid4(),
            columns.get("group", ""),
        ),
    )
    return id


async def arm_wait(
    connection: Connection, id: UUID, step: int = 2, seconds: float = 10, **entry: Any
) -> None:
    payload = {"step": str(step), "attempt": 3, **entry}
    await arm(connection, "runbook-wait", str(id), str(step), at(seconds), payload)


async def arm_report(
    connection: Connection, id: UUID, state: str = "completed", step: int = 2, **fields: Any
) -> None:
    payload = {"step": str(step), "report": {"state": state, "result": {"k": 1}, **fields}}
    await arm(connection, "runbook-wait", str(id), f"{step}/report", at(1), payload)


@pytest.fixture(autouse=True)
async def virtual_start(connection: Connection) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(0).isoformat(),))


async def lead(connection: Connection, **options: Any) -> Term:
    return await begin_term(connection, "test", kinds=[RunbookWaits()], **options)


async def read_run(connection: Connection, id: UUID) -> tuple[str, dict[str, Any], int]:
    row = await one_row(connection, "select state, active, version from tocsin.action where id = %s", (id,))
    return row["state"], row["active"], row["version"]


async def steps(connection: Connection) -> list[tuple[int, int, str, dict[str, Any]]]:
    rows = await all_rows(connection, "select * from tocsin.action_step order by seq")
    return [(row["step"], row["attempt"], row["state"], row["result"]) for row in rows]


async def timers(connection: Connection) -> list[str]:
    return [row["key"] for row in await all_rows(connection, "select key from tocsin.timer order by key")]


async def test_a_wait_that_fires_makes_its_step_due(connection: Connection) -> None:
    id = await put_run(connection)
    await arm_wait(connection, id, lapsed=True)
    term = await lead(connection)
    await drain(term, at(9))
    assert await steps(connection) == []
    await drain(term, at(10))
    assert await read_run(connection, id) == (
        "running",
        {"2": {"attempt": 3, "state": "due", "lapsed": True}},
        2,
    )
    assert await steps(connection) == [(2, 3, "due", {"lapsed": True})]
    assert await timers(connection) == []
    (event,) = await all_rows(connection, "select epoch from tocsin.log_commit")
    assert event["epoch"] == term.epoch


async def test_a_backoff_that_fires_makes_the_attempt_due_and_keeps_the_other_fields(
    connection: Connection,
) -> None:
    id = await put_run(
        connection, {"2": {"attempt": 3, "state": "waiting", "last": 7}, "5": {"state": "due"}}
    )
    await arm_wait(connection, id)
    await drain(await lead(connection), at(10))
    assert (await read_run(connection, id))[1] == {
        "2": {"attempt": 3, "state": "due", "last": 7},
        "5": {"state": "due"},
    }
    assert await steps(connection) == [(2, 3, "due", {})]


async def test_several_steps_of_several_runs_fire_in_one_batch(
    connection: Connection,
) -> None:
    entry = {"attempt": 3, "state": "waiting"}
    first, second = [await put_run(connection, {"1": entry, "2": entry}) for _ in range(2)]
    for id in (first, second):
        for step in (1, 2):
            await arm_wait(connection, id, step)
    (batch,) = await drain(await lead(connection), at(10))
    assert batch.fires == 4
    for id in (first, second):
        assert {step["state"] for step in (await read_run(connection, id))[1].values()} == {"due"}
        assert (await read_run(connection, id))[2] == 2
    assert len(await steps(connection)) == 4


@pytest.mark.parametrize(
    ("state", "active"),
    [
        ("cancelled", {}),
        ("cancelled", WAITING),
        ("completed", {}),
        ("failed", {"2": {"attempt": 3, "state": "failed"}}),
        ("running", {"3": {"attempt": 1, "state": "due"}}),
        ("running", {"2": {"attempt": 4, "state": "waiting"}}),
        ("running", {"2": {"attempt": 3, "state": "due"}}),
    ],
)
async def test_a_run_that_no_longer_waits_ignores_the_fire(
    connection: Connection, state: str, active: dict[str, Any]
) -> None:
    id = await put_run(connection, active, state)
    await arm_wait(connection, id)
    await drain(await lead(connection), at(10))
    assert await read_run(connection, id) == (state, active, 1)
    assert await steps(connection) == []
    assert await timers(connection) == []


async def test_a_wait_of_a_run_that_does_not_exist_is_consumed(connection: Connection) -> None:
    await arm_wait(connection, uuid4())
    (batch,) = await drain(await lead(connection), at(10))
    assert batch.fires == 1
    assert await timers(connection) == []


async def test_a_gathering_run_begins_with_its_first_step(connection: Connection) -> None:
    gathering = await put_run(connection, {}, "gathering")
    other = await put_run(connection, {}, "cancelled", group="b")
    for id in (gathering, other):
        await arm(connection, "runbook-wait", str(id), "group", at(10))
    await drain(await lead(connection), at(10))
    assert await read_run(connection, gathering) == ("running", {"0": {"attempt": 1, "state": "due"}}, 2)
    assert await read_run(connection, other) == ("cancelled", {}, 1)
    assert await steps(connection) == [(0, 1, "due", {})]


async def test_a_report_makes_its_step_due_and_wins_over_a_deadline_at_the_same_moment(
    connection: Connection,
) -> None:
    id = await put_run(connection)
    await arm_wait(connection, id, seconds=1, lapsed=True)
    await arm_report(connection, id)
    await drain(await lead(connection), at(10))
    reported = {"state": "completed", "result": {"k": 1}}
    assert (await read_run(connection, id))[1] == {"2": {"attempt": 3, "state": "due", "report": reported}}
    assert await steps(connection) == [(2, 3, "due", {"reported": True})]
    assert await timers(connection) == []


async def test_a_failure_of_an_older_attempt_does_not_fail_the_newer_one(connection: Connection) -> None:
    id = await put_run(connection)
    await arm_report(connection, id, "failed", attempt=2)
    await drain(await lead(connection), at(10))
    assert await read_run(connection, id) == ("running", WAITING, 1)
    await arm_report(connection, id, "completed", attempt=2)
    await drain(await lead(connection), at(10))
    assert (await read_run(connection, id))[1]["2"]["state"] == "due"


@pytest.mark.parametrize("state", ["timed_out", "failed", "cancelled", "completed"])
async def test_a_report_that_comes_too_late_is_appended_and_kept_as_an_answer(
    connection: Connection, state: str
) -> None:
    id = await put_run(connection, {}, state)
    await arm_report(connection, id)
    await drain(await lead(connection), at(10))
    row = await one_row(connection, "select state, active, answers from tocsin.action where id = %s", (id,))
    late = {"state": "completed", "result": {"k": 1}, "late": True}
    assert row == {"state": state, "active": {}, "answers": {"2": late}}
    assert await steps(connection) == [(2, 1, "completed", late)]


async def test_a_wait_without_a_valid_run_id_fails_alone(connection: Connection) -> None:
    id = await put_run(connection)
    await arm_wait(connection, id)
    await arm(connection, "runbook-wait", "no uuid", "1", at(10), {"step": "1", "attempt": 1})
    await drain(await lead(connection, max_failures=1), at(10))
    assert (await read_run(connection, id))[1]["2"]["state"] == "due"
    (parked,) = await all_rows(
        connection, "select ref, last_error from tocsin.timer where parked_at is not null"
    )
    assert parked["ref"] == "no uuid"
    assert "uuid" in parked["last_error"]


async def test_a_deposed_clock_advances_nothing(connection: Connection) -> None:
    id = await put_run(connection)
    await arm_wait(connection, id)
    term = await lead(connection)
    await connection.execute("update tocsin.log_head set epoch = epoch + 1")
    with pytest.raises(Deposed):
        await term.run_once(at(10))
    assert (await read_run(connection, id))[1] == WAITING
    assert await timers(connection) == ["2"]


async def test_a_cancel_that_comes_during_a_fire_waits_and_cancels_the_step_that_is_due(
    connection: Connection, sessions: Sessions, watch: Connection
) -> None:
    id = await put_run(connection)
    await arm_wait(connection, id)
    other, reached, go_on = await sessions("canceller"), asyncio.Event(), asyncio.Event()

    async def stop(point: str) -> None:
        if point == "appended":
            reached.set()
            await go_on.wait()

    firing = asyncio.create_task(drain(await lead(connection, hook=stop), at(10)))
    async with asyncio.timeout(20):
        await reached.wait()
    cancelling = asyncio.create_task(cancel_runs(other, {id: "enough"}))

    async def waits() -> bool:
        return await blocked(watch, other)

    await eventually(waits, "the cancel waits for the fire")
    go_on.set()
    await firing
    assert await cancelling == [id]
    assert (await read_run(watch, id))[:2] == ("cancelled", {})
    assert await steps(watch) == [(2, 3, "due", {}), (2, 3, "cancelled", {"reason": "enough"})]
    assert await timers(watch) == []


async def test_a_fire_that_comes_during_a_cancel_skips_the_wait_and_then_finds_none(
    connection: Connection, sessions: Sessions, watch: Connection
) -> None:
    id = await put_run(connection)
    await arm_wait(connection, id)
    other = await sessions("canceller")
    term = await lead(connection)
    async with other.transaction():
        assert await cancel_runs(other, {id: "enough"}) == [id]
        (batch,) = await drain(term, at(10))
        assert (batch.fires, batch.held) == (0, 1)
    await drain(term, at(11))
    assert (await read_run(watch, id))[:2] == ("cancelled", {})
    assert await steps(watch) == [(2, 3, "cancelled", {"reason": "enough"})]


async def test_a_run_cannot_be_changed_during_a_fire(connection: Connection, sessions: Sessions) -> None:
    """The clock locks the row of the run until it commits, so other transactions wait."""
    id = await put_run(connection)
    await arm_wait(connection, id)
    other, refused = await sessions("worker"), []
    # The server has not executed the batch yet when the clock has sent it.
    skipping = "select 1 from tocsin.action where id = %s for update skip locked"

    async def locked() -> bool:
        return not await all_rows(other, skipping, (id,))

    async def look(point: str) -> None:
        if point == "appended":
            await eventually(locked, "the run is locked")
            await other.execute("set lock_timeout = '20ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                await other.execute("update tocsin.action set version = version + 1 where id = %s", (id,))
            refused.append(point)

    await drain(await lead(connection, hook=look), at(10))
    assert refused


async def test_a_fire_that_waited_for_a_result_reads_the_run_as_that_result_left_it(
    connection: Connection, sessions: Sessions, watch: Connection
) -> None:
    id = await put_run(connection)
    await arm_wait(connection, id)
    other = await sessions("worker")
    term = await lead(connection)
    moved = {"3": {"attempt": 1, "state": "due"}}
    async with other.transaction():
        await other.execute(
            "update tocsin.action set active = %s, version = 2 where id = %s", (Jsonb(moved), id)
        )
        firing = asyncio.create_task(drain(term, at(10)))

        async def waits() -> bool:
            return await blocked(watch, connection)

        await eventually(waits, "the fire waits for the outcome")
    await firing
    assert await read_run(watch, id) == ("running", moved, 2)
    assert await steps(watch) == []

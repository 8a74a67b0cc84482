"""Nothing commits under a superseded epoch (I2), and a frozen leader does not stop the next one."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from clock.term import begin_term
from clock.ticks import ScheduleTicks
from tests.clock.clock_setup import at, drain, fired, put, schedule
from tests.sessions import Sessions
from tests.sql import all_rows, one_row
from tests.wait import eventually
from tocsin.core.db import Connection, fetch_one, open_service_session, statement
from tocsin.core.errors import Deposed
from tocsin.core.settings import Settings


async def clear_holder(connection: Connection) -> None:
    """Make the takeover end no session, as behind a pooler. Only the epoch fences then."""
    await connection.execute("update tocsin.log_head set holder_pid = null")


async def test_each_term_has_a_higher_epoch_and_names_its_holder(connection: Connection) -> None:
    first = await begin_term(connection, "one")
    second = await begin_term(connection, "two")
    assert second.epoch == first.epoch + 1
    head = await one_row(connection, "select * from tocsin.log_head")
    assert (head["epoch"], head["holder"]) == (second.epoch, "two")
    assert head["holder_pid"] == connection.info.backend_pid


async def test_a_superseded_term_commits_nothing(connection: Connection, sessions: Sessions) -> None:
    await put(connection)
    zombie_session = await sessions("zombie")
    reached: list[str] = []

    async def hook(point: str) -> None:
        reached.append(point)

    zombie = await begin_term(zombie_session, "zombie", hook=hook)
    await clear_holder(connection)
    await begin_term(connection, "leader")
    before = await all_rows(connection, "select * from tocsin.timer")
    with pytest.raises(Deposed, match=f"deposed: epoch {zombie.epoch} was superseded by {zombie.epoch + 1}"):
        await zombie.run_once(at(10))
    assert reached[:1] == ["locked"], "it had locked the due row and was refused at the append"
    assert await fired(connection) == []
    assert await all_rows(connection, "select * from tocsin.timer") == before
    # Its session is usable and holds no lock that the leader needs.
    assert zombie_session.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


async def test_a_term_superseded_between_its_lock_and_its_append_is_refused(
    connection: Connection, sessions: Sessions
) -> None:
    await put(connection)
    other = await sessions("other")
    slow_session = await sessions("slow")

    async def hook(point: str) -> None:
        if point == "locked":
            await clear_holder(connection)
            await begin_term(other, "quick")

    slow = await begin_term(slow_session, "slow", hook=hook)
    with pytest.raises(Deposed):
        await slow.run_once(at(10))
    assert await fired(connection) == []


async def test_a_takeover_ends_a_leader_that_froze_between_append_and_commit(
    connection: Connection, sessions: Sessions
) -> None:
    await put(connection)
    frozen_session = await sessions("frozen")
    appended, thaw = asyncio.Event(), asyncio.Event()

    async def hook(point: str) -> None:
        if point == "appended":
            appended.set()
            await thaw.wait()

    frozen = await begin_term(frozen_session, "frozen", hook=hook)
    fire = asyncio.create_task(frozen.run_once(at(10)))
    await appended.wait()

    term = await begin_term(connection, "leader")
    assert await fired(connection) == [], "the append of the frozen leader was rolled back with its session"
    await drain(term, at(11))
    thaw.set()
    with pytest.raises(psycopg.OperationalError):
        await fire
    assert await fired(connection) == [("beat", at(10))]
    rows = await all_rows(connection, "select seq, epoch from tocsin.event")
    assert [(row["seq"], row["epoch"]) for row in rows] == [(1, term.epoch)]


async def test_a_takeover_ends_no_session_of_another_process(
    connection: Connection, sessions: Sessions
) -> None:
    """The pid of the last leader may belong to another process by now."""
    bystander = await sessions("bystander")
    await begin_term(connection, "one")
    await connection.execute(
        "update tocsin.log_head set holder_pid = %s, holder_backend_start = '2020-01-01Z'",
        (bystander.info.backend_pid,),
    )
    await begin_term(connection, "two")
    assert (await one_row(bystander, "select 1 as alive"))["alive"] == 1


async def test_only_one_of_two_candidates_takes_over_the_same_epoch(
    connection: Connection, sessions: Sessions
) -> None:
    parameters = {"epoch": 0, "holder": "x"}
    first = await fetch_one(connection, "clock/take_over", parameters)
    other = await sessions("other")
    second = await fetch_one(other, "clock/take_over", parameters)
    assert (first, second) == ((1,), (None,))
    assert not connection.closed
    assert (await one_row(connection, "select epoch from tocsin.log_head"))["epoch"] == 1


async def test_a_candidate_that_was_too_slow_is_deposed(connection: Connection, sessions: Sessions) -> None:
    """It waits for the lock on the log, which another candidate holds for the same epoch."""
    other = await sessions("other")
    slow_session = await sessions("slow")
    async with other.transaction():
        await other.execute(statement("clock/take_over"), {"epoch": 0, "holder": "quick"})
        slow = asyncio.create_task(begin_term(slow_session, "slow"))

        async def waits() -> bool:
            row = await one_row(
                connection, "select cardinality(pg_blocking_pids(%s)) as n", (slow_session.info.backend_pid,)
            )
            return bool(row["n"])

        await eventually(waits, "the slow candidate waits for the log")
    with pytest.raises(Deposed, match="epoch 0 was superseded while slow took over"):
        await slow


async def test_the_next_term_fires_the_timers_that_the_last_one_left(
    connection: Connection, sessions: Sessions
) -> None:
    for name in ("a", "b"):
        await put(connection, name=name)
    first = await begin_term(await sessions("first"), "first", batch=1)
    assert (await first.run_once(at(10))).fires == 1
    await drain(await begin_term(connection, "second"), at(10))
    assert sorted(await fired(connection)) == [("a", at(10)), ("b", at(10))]
    assert (await schedule(connection, "a"))["nominal_at"] == at(20)


async def test_the_hook_sees_the_points_of_a_batch_in_order(
    connection: Connection, watch: Connection
) -> None:
    """At `appended` the log is locked, and no other session sees the event yet."""
    await put(connection)
    points: list[tuple[str, bool, int]] = []

    async def log_is_locked() -> bool:
        return bool(
            await all_rows(
                watch,
                "select 1 from pg_locks where relation = 'tocsin.lock_log'::regclass and pid = %s",
                (connection.info.backend_pid,),
            )
        )

    async def hook(point: str) -> None:
        if point == "appended":
            await eventually(log_is_locked, "the server has received the append")
        points.append((point, await log_is_locked(), len(await fired(watch))))

    term = await begin_term(connection, "test", kinds=(ScheduleTicks(),), hook=hook)
    await term.run_once(at(10))
    assert points == [("locked", False, 0), ("appended", True, 0)]
    assert len(await fired(watch)) == 1


@pytest.mark.parametrize("point", ["locked", "appended"])
async def test_a_clock_that_freezes_inside_a_batch_keeps_no_locks_even_without_a_standby(
    short_lease: Settings, connection: Connection, point: str
) -> None:
    """The session is not idle in a transaction: without a Sync the server waits for the batch to go on."""
    await put(connection)
    frozen, thaw = asyncio.Event(), asyncio.Event()

    async def hook(reached: str) -> None:
        if reached == point:
            frozen.set()
            await thaw.wait()

    async with open_service_session(short_lease, "clock") as session:
        fire = asyncio.create_task((await begin_term(session, "frozen", hook=hook)).run_once(at(10)))
        await frozen.wait()
        async with asyncio.timeout(60):
            await connection.execute("set lock_timeout = 0")
            await connection.execute("select tocsin.schedule_cancel('', 'beat')")
        thaw.set()
        with pytest.raises(psycopg.OperationalError):
            await fire
    assert await fired(connection) == []

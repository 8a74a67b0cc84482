"""No due timer is overlooked: after late commits, after a clock went back, and during a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import pytest

from clock.scan import Scan
from clock.term import Term, begin_term
from tests.clock.clock_setup import ONCE, SECOND, at, drain, fired, put
from tests.sessions import Sessions
from tocsin.core.db import Connection

TICK_S = 0.02


def ticks_of(term: Term) -> Scan:
    return term.scans["schedule-tick"]


async def pass_time(term: Term, begins: float, ends: float) -> None:
    """Run the clock every 20 ms of virtual time."""
    for step in range(round((ends - begins) / TICK_S) + 1):
        await drain(term, at(begins + step * TICK_S))


@pytest.mark.parametrize("late_s", [0.01, 1.0, 1.7])
async def test_a_tick_that_was_committed_late_is_found_by_the_scan_of_the_last_two_seconds(
    connection: Connection, sessions: Sessions, late_s: float
) -> None:
    writer = await sessions("writer")
    term = await begin_term(connection, "test")
    async with writer.transaction():
        await put(writer, ONCE)
        await pass_time(term, 9.9, 10 + late_s)
    assert await fired(connection) == []
    await pass_time(term, 10 + late_s, 10 + late_s + 0.24)
    assert await fired(connection) == [("once", at(10))]


async def test_a_tick_that_was_committed_ten_seconds_late_is_found_by_the_backstop(
    connection: Connection, sessions: Sessions, watch: Connection
) -> None:
    writer = await sessions("writer")
    term = await begin_term(connection, "test")
    async with writer.transaction():
        await put(writer, ONCE)
        await pass_time(term, 19, 20)
        await term.backstop_scan(watch)
    await pass_time(term, 20, 20.5)
    assert await fired(connection) == [], "older than the scan of the last two seconds reaches"
    await term.backstop_scan(watch)
    await drain(term, at(20.52))
    assert await fired(connection) == [("once", at(10))]


async def test_the_backstop_lowers_the_mark_only_for_a_timer_that_may_fire(
    connection: Connection, watch: Connection
) -> None:
    term = await begin_term(connection, "test")
    await put(connection)
    await drain(term, at(15))
    await drain(term, at(15.1))
    mark = ticks_of(term).mark.fire_at
    await term.backstop_scan(watch)
    assert ticks_of(term).mark.fire_at == mark
    await connection.execute("update tocsin.timer set fire_at = %s, parked_at = %s", (at(1), at(1)))
    await term.backstop_scan(watch)
    assert ticks_of(term).mark.fire_at == mark


async def test_a_new_term_scans_from_the_beginning_of_time(connection: Connection) -> None:
    await put(connection, ONCE)
    await connection.execute("update tocsin.timer set fire_at = '1000-01-01Z'")
    await drain(await begin_term(connection, "test"), at(10))
    assert await fired(connection) == [("once", at(10))]


async def test_a_mark_that_is_lowered_during_a_batch_stays_lowered(
    connection: Connection, sessions: Sessions
) -> None:
    """The backstop runs during a batch. The end of the batch must not undo its result."""
    writer = await sessions("writer")
    during_batch: list[Callable[[], Awaitable[None]]] = []

    async def hook(point: str) -> None:
        if point == "locked" and during_batch:
            await during_batch.pop()()

    term = await begin_term(connection, "test", hook=hook)
    await pass_time(term, 59, 60)

    async def late_commit() -> None:
        await put(writer, ONCE)
        ticks_of(term).lower(at(10))

    during_batch.append(late_commit)
    await put(connection, ONCE, name="other", recurrence={"at": "2026-03-02T08:01:00.05Z"})
    await drain(term, at(60.1))
    await drain(term, at(60.12))
    assert await fired(connection) == [("other", at(60.05)), ("once", at(10))]


async def test_a_lowered_mark_survives_a_batch_that_is_full(
    connection: Connection, sessions: Sessions
) -> None:
    writer = await sessions("writer")
    for number in range(4):
        await put(connection, name=f"beat-{number}", recurrence={"every": "60s"})
    first_batch = [True]

    async def hook(point: str) -> None:
        if point == "locked" and first_batch:
            first_batch.clear()
            await put(writer, ONCE)
            ticks_of(term).lower(at(10))

    term = await begin_term(connection, "test", batch=2, hook=hook)
    await drain(term, at(60))
    assert ("once", at(10)) in await fired(connection)
    assert len(await fired(connection)) == 5


async def test_a_clock_that_goes_back_fires_nothing_twice_and_misses_nothing(connection: Connection) -> None:
    """The clock was an hour ahead. That hour has fired; a timer armed in it now is new."""
    await put(connection)
    term = await begin_term(connection, "test")
    await drain(term, at(10))
    await drain(term, at(3600))
    assert await fired(connection) == [("beat", at(10)), ("beat", at(3600))]
    await drain(term, at(20))
    await put(connection, name="new", recurrence={"every": "30s"})
    await drain(term, at(30))
    await drain(term, at(60))
    assert (await fired(connection))[2:] == [("new", at(30)), ("new", at(60))]
    await drain(term, at(3610))
    assert ("beat", at(3610)) in await fired(connection)


async def test_a_timer_armed_during_a_small_step_back_is_found(connection: Connection) -> None:
    term = await begin_term(connection, "test")
    await drain(term, at(12))
    await put(connection)
    await drain(term, at(9))
    await drain(term, at(10))
    assert await fired(connection) == [("beat", at(10))]


async def test_a_backlog_is_drained_before_the_last_two_seconds_are_scanned_again(
    connection: Connection,
) -> None:
    """Otherwise each batch of a burst would walk over the dead tuples of the batches before it."""
    for number in range(30):
        await put(connection, name=f"beat-{number}")
    term = await begin_term(connection, "test", batch=10)
    assert (await term.run_once(at(10))).more
    mark = ticks_of(term).mark.fire_at
    term.rescan_recent(at(11))
    assert ticks_of(term).mark.fire_at == mark == at(10)
    await drain(term, at(11))
    term.rescan_recent(at(11.3))
    assert ticks_of(term).mark.fire_at == at(11.3) - 2 * SECOND


async def virtual_now(connection: Connection, now: datetime) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (now.isoformat(),))


async def test_a_poll_returns_the_next_due_time_and_moves_the_mark_up_to_it(
    connection: Connection,
) -> None:
    """An idle clock must not walk over all consumed rows fifty times a second."""
    term = await begin_term(connection, "test")
    await virtual_now(connection, at(5))
    assert await term.poll() == (at(5), None)
    assert ticks_of(term).mark.fire_at == at(5)
    await put(connection)
    assert await term.poll() == (at(5), at(10))
    await virtual_now(connection, at(30))
    assert await term.poll() == (at(30), at(10))
    assert ticks_of(term).mark.fire_at == at(10)
    await drain(term, at(30))
    assert ("beat", at(30)) in await fired(connection)


async def test_a_poll_ignores_parked_timers(connection: Connection) -> None:
    await put(connection)
    await connection.execute("update tocsin.timer set parked_at = %s", (at(0),))
    await virtual_now(connection, at(30))
    assert await (await begin_term(connection, "test")).poll() == (at(30), None)


async def test_a_timer_armed_before_the_mark_of_a_poll_is_found_by_the_scan_of_the_last_two_seconds(
    connection: Connection,
) -> None:
    term = await begin_term(connection, "test")
    await virtual_now(connection, at(10.5))
    await term.poll()
    await put(connection, ONCE)
    term.rescan_recent(at(10.5))
    await virtual_now(connection, at(10.52))
    assert await term.poll() == (at(10.52), at(10))


async def test_a_poll_keeps_a_mark_that_was_lowered_meanwhile(
    connection: Connection, watch: Connection
) -> None:
    term = await begin_term(connection, "test")
    await virtual_now(connection, at(60))
    await term.poll()
    await put(connection, ONCE)
    await asyncio.gather(term.poll(), term.backstop_scan(watch))
    await drain(term, at(60))
    assert await fired(connection) == [("once", at(10))]


async def test_the_smallest_step_back_lowers_the_mark_at_once(connection: Connection) -> None:
    term = await begin_term(connection, "test")
    await drain(term, at(10))
    await drain(term, at(10.15))
    assert ticks_of(term).mark.fire_at == at(10.15)
    term.rescan_recent(at(10.05))
    assert ticks_of(term).mark.fire_at == at(10.05)

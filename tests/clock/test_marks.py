"""Nothing that is due is overlooked: late commits, clocks that go back, and what is found during a batch."""

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
    """What the clock does while nothing happens: a look every 20 ms of virtual time."""
    for step in range(round((ends - begins) / TICK_S) + 1):
        await drain(term, at(begins + step * TICK_S))


@pytest.mark.parametrize("late_s", [0.01, 1.0, 1.7])
async def test_a_tick_that_was_committed_late_is_found_by_the_trailing_scan(
    connection: Connection, sessions: Sessions, late_s: float
) -> None:
    stranger = await sessions("stranger")
    term = await begin_term(connection, "test")
    async with stranger.transaction():
        await put(stranger, ONCE)
        await pass_time(term, 9.9, 10 + late_s)
    assert await fired(connection) == []
    await pass_time(term, 10 + late_s, 10 + late_s + 0.24)
    assert await fired(connection) == [("once", at(10))]


async def test_a_tick_that_was_committed_ten_seconds_late_is_found_by_the_backstop(
    connection: Connection, sessions: Sessions, watch: Connection
) -> None:
    stranger = await sessions("stranger")
    term = await begin_term(connection, "test")
    async with stranger.transaction():
        await put(stranger, ONCE)
        await pass_time(term, 19, 20)
        await term.backstop_scan(watch)
    await pass_time(term, 20, 20.5)
    assert await fired(connection) == [], "older than the trailing scan reaches"
    await term.backstop_scan(watch)
    await drain(term, at(20.52))
    assert await fired(connection) == [("once", at(10))]


async def test_the_backstop_lowers_the_mark_only_for_what_is_there(
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
    """The backstop runs beside the batches: what it finds must not be forgotten when a batch ends."""
    stranger = await sessions("stranger")
    found: list[Callable[[], Awaitable[None]]] = []

    async def hook(point: str) -> None:
        if point == "locked" and found:
            await found.pop()()

    term = await begin_term(connection, "test", hook=hook)
    await pass_time(term, 59, 60)

    async def late_commit() -> None:
        await put(stranger, ONCE)
        ticks_of(term).lower(at(10))

    found.append(late_commit)
    await put(connection, ONCE, name="other", recurrence={"at": "2026-03-02T08:01:00.05Z"})
    await drain(term, at(60.1))
    await drain(term, at(60.12))
    assert await fired(connection) == [("other", at(60.05)), ("once", at(10))]


async def test_a_lowered_mark_survives_a_batch_that_is_full(
    connection: Connection, sessions: Sessions
) -> None:
    stranger = await sessions("stranger")
    for number in range(4):
        await put(connection, name=f"beat-{number}", recurrence={"every": "60s"})
    found = [True]

    async def hook(point: str) -> None:
        if point == "locked" and found:
            found.clear()
            await put(stranger, ONCE)
            ticks_of(term).lower(at(10))

    term = await begin_term(connection, "test", batch=2, hook=hook)
    await drain(term, at(60))
    assert ("once", at(10)) in await fired(connection)
    assert len(await fired(connection)) == 5


async def test_a_clock_that_goes_back_fires_nothing_twice_and_misses_nothing(connection: Connection) -> None:
    """An hour ahead by mistake, then back: the hour was fired; what is armed in it now is new."""
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


async def test_a_small_step_back_does_not_hide_what_was_armed_in_it(connection: Connection) -> None:
    term = await begin_term(connection, "test")
    await drain(term, at(12))
    await put(connection)
    await drain(term, at(9))
    await drain(term, at(10))
    assert await fired(connection) == [("beat", at(10))]


async def test_a_backlog_is_drained_before_the_trailing_scan_runs_again(connection: Connection) -> None:
    """Otherwise each batch of a burst would walk over the corpses of those before it."""
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


async def test_a_look_says_when_the_next_is_due_and_moves_the_mark_up_to_there(
    connection: Connection,
) -> None:
    """An idle clock must not walk over everything that was ever consumed, fifty times a second."""
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


async def test_a_look_does_not_see_what_is_parked(connection: Connection) -> None:
    await put(connection)
    await connection.execute("update tocsin.timer set parked_at = %s", (at(0),))
    await virtual_now(connection, at(30))
    assert await (await begin_term(connection, "test")).poll() == (at(30), None)


async def test_what_is_armed_behind_a_look_is_found_by_the_trailing_scan(connection: Connection) -> None:
    term = await begin_term(connection, "test")
    await virtual_now(connection, at(10.5))
    await term.poll()
    await put(connection, ONCE)
    term.rescan_recent(at(10.5))
    await virtual_now(connection, at(10.52))
    assert await term.poll() == (at(10.52), at(10))


async def test_a_look_keeps_a_mark_that_was_lowered_meanwhile(
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

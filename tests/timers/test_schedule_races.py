"""Edits against edits, and edits against fires: one winner each, decided by the rows."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clock.term import Term, begin_term
from tests.records import events
from tests.sessions import Sessions
from tests.sql import all_rows, blocked
from tests.wait import eventually
from timers.schedule_spec import ScheduleSpec
from timers.schedules import PutResult, cancel_schedule, find_schedule, pause_schedule, put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import Refused

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
DUE = T0 + 10 * SECOND
BEAT = ScheduleSpec("beat", {"every": "10s"})
ONCE = ScheduleSpec("beat", {"at": "2026-03-02T08:00:10Z"})
EARLY = Actor("ann", "test", T0 + SECOND)


@pytest.fixture
async def editor(sessions: Sessions) -> Connection:
    return await sessions("editor")


async def status(connection: Connection) -> tuple[str, int]:
    row = await find_schedule(connection, "", "beat")
    assert row is not None
    return row["status"], row["generation"]


class FireHeldOpen:
    """A fire that has locked its rows and waits until the test lets it continue."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.locked = asyncio.Event()
        self.go_on = asyncio.Event()

    async def begin(self, at: datetime = DUE) -> asyncio.Task[Any]:
        async def hook(point: str) -> None:
            if point == "locked":
                self.locked.set()
                await self.go_on.wait()

        term: Term = await begin_term(self._connection, "test", hook=hook)
        fire = asyncio.create_task(term.run_once(at))
        await self.locked.wait()
        return fire


async def overtaken(
    connection: Connection, editor: Connection, watch: Connection, edit: asyncio.Task[PutResult]
) -> None:
    await eventually(lambda: blocked(watch, editor), "the edit waits for the fire")
    assert not edit.done()


async def test_an_edit_that_waited_for_a_fire_starts_after_its_occurrence(
    connection: Connection, editor: Connection, watch: Connection
) -> None:
    await put_schedule(connection, BEAT, Actor("ann", "test", T0))
    held = FireHeldOpen(connection)
    fire = await held.begin()
    edit = asyncio.create_task(put_schedule(editor, replace(BEAT, payload={"k": 1}), EARLY))
    await overtaken(connection, editor, watch, edit)
    held.go_on.set()
    assert (await fire).fires == 1
    # The edit began at second 1 and read second 10 as the next occurrence, which is done by now.
    assert (await edit).next_at == T0 + 20 * SECOND
    assert [event["ts"] for event in await events(connection)] == [DUE]


async def test_an_edit_that_waited_for_the_fire_of_a_one_shot_cannot_fire_it_again(
    connection: Connection, editor: Connection, watch: Connection
) -> None:
    await put_schedule(connection, ONCE, Actor("ann", "test", T0))
    held = FireHeldOpen(connection)
    fire = await held.begin()
    edit = asyncio.create_task(put_schedule(editor, replace(ONCE, payload={"k": 1}), EARLY))
    await overtaken(connection, editor, watch, edit)
    held.go_on.set()
    assert (await fire).fires == 1
    with pytest.raises(Refused, match="would never fire again"):
        await edit
    assert await status(connection) == ("fired", 1)
    assert await all_rows(connection, "select * from tocsin.timer") == []


async def test_a_cancel_that_waited_for_the_fire_of_a_one_shot_changes_nothing(
    connection: Connection, editor: Connection, watch: Connection
) -> None:
    await put_schedule(connection, ONCE, Actor("ann", "test", T0))
    held = FireHeldOpen(connection)
    fire = await held.begin()
    cancel = asyncio.create_task(cancel_schedule(editor, "", "beat", EARLY))
    await overtaken(connection, editor, watch, cancel)
    held.go_on.set()
    assert (await fire).fires == 1
    assert (await cancel).outcome == "unchanged"
    assert await status(connection) == ("fired", 1)
    row = await find_schedule(connection, "", "beat")
    assert row is not None
    assert row["last_occurrence"] == DUE


async def test_a_pause_that_waited_for_the_fire_of_a_one_shot_is_refused(
    connection: Connection, editor: Connection, watch: Connection
) -> None:
    await put_schedule(connection, ONCE, Actor("ann", "test", T0))
    held = FireHeldOpen(connection)
    fire = await held.begin()
    pause = asyncio.create_task(pause_schedule(editor, "", "beat", EARLY))
    await overtaken(connection, editor, watch, pause)
    held.go_on.set()
    await fire
    with pytest.raises(Refused, match="is fired and cannot be paused"):
        await pause


async def test_a_pause_that_waited_for_a_fire_stores_its_occurrence(
    connection: Connection, editor: Connection, watch: Connection
) -> None:
    await put_schedule(connection, BEAT, Actor("ann", "test", T0))
    held = FireHeldOpen(connection)
    fire = await held.begin()
    pause = asyncio.create_task(pause_schedule(editor, "", "beat", EARLY))
    await overtaken(connection, editor, watch, pause)
    held.go_on.set()
    assert (await fire).fires == 1
    assert (await pause).outcome == "changed"
    row = await find_schedule(connection, "", "beat")
    assert row is not None
    assert (row["status"], row["last_occurrence"], row["nominal_at"]) == ("paused", DUE, None)


async def test_a_fire_does_not_wait_for_an_edit_and_leaves_it_the_tick(
    connection: Connection, editor: Connection
) -> None:
    await put_schedule(connection, BEAT, Actor("ann", "test", T0))
    term = await begin_term(connection, "test")
    async with editor.transaction():
        await pause_schedule(editor, "", "beat", EARLY)
        assert (await term.run_once(DUE)).timers == 0
    assert (await term.run_once(DUE + SECOND)).timers == 0
    assert await events(connection) == []
    assert await status(connection) == ("paused", 2)


async def test_an_edit_that_is_rolled_back_leaves_the_tick_to_the_next_scan(
    connection: Connection, editor: Connection
) -> None:
    await put_schedule(connection, BEAT, Actor("ann", "test", T0))
    term = await begin_term(connection, "test")
    async with editor.transaction(force_rollback=True):
        await cancel_schedule(editor, "", "beat", EARLY)
        assert (await term.run_once(DUE)).timers == 0
    assert (await term.run_once(DUE + SECOND)).fires == 1


async def test_two_edits_of_one_schedule_take_turns(
    connection: Connection, editor: Connection, watch: Connection
) -> None:
    await put_schedule(connection, BEAT, Actor("ann", "test", T0))
    async with connection.transaction():
        await put_schedule(connection, replace(BEAT, payload={"by": "ann"}), EARLY, if_generation=1)
        second = asyncio.create_task(
            put_schedule(editor, replace(BEAT, payload={"by": "bob"}), EARLY, if_generation=1)
        )
        await eventually(lambda: blocked(watch, editor), "the second edit waits for the first")
    with pytest.raises(Refused, match="generation 2, not 1: ann changed it"):
        await second
    row = await find_schedule(connection, "", "beat")
    assert row is not None
    assert (row["payload"], row["generation"]) == ({"by": "ann"}, 2)


async def test_two_adds_of_one_schedule_create_one_schedule(
    connection: Connection, editor: Connection, watch: Connection
) -> None:
    async with connection.transaction():
        first = await put_schedule(connection, BEAT, EARLY)
        second = asyncio.create_task(put_schedule(editor, BEAT, EARLY))
        await eventually(lambda: blocked(watch, editor), "the second add waits for the first")
    assert ((await second).outcome, (await second).id) == ("unchanged", first.id)
    assert len(await all_rows(connection, "select * from tocsin.timer")) == 1


async def test_edits_while_the_clock_fires_never_deadlock_and_never_fire_twice(
    connection: Connection, editor: Connection
) -> None:
    """Each of forty one-shots is either cancelled or fired, by the transaction that locks its row first."""
    for number in range(40):
        await put_schedule(connection, replace(ONCE, name=f"once-{number}"), Actor("ann", "test", T0))
        await put_schedule(connection, replace(BEAT, name=f"beat-{number}"), Actor("ann", "test", T0))
    term = await begin_term(connection, "test", batch=7)
    outcomes: dict[str, str] = {}

    async def cancel_all() -> None:
        for number in range(40):
            name = f"once-{number}"
            outcomes[name] = (await cancel_schedule(editor, "", name, EARLY)).outcome
            await pause_schedule(editor, "", f"beat-{number}", EARLY)

    async def fire_all() -> None:
        for step in range(60):
            await term.run_once(DUE + step * SECOND)

    await asyncio.gather(cancel_all(), fire_all())
    recorded = await events(connection)
    fired = [event["schedule"] for event in recorded if event["schedule"].startswith("once-")]
    assert len(fired) == len(set(fired))
    assert len({event["id"] for event in recorded}) == len(recorded)
    assert {name for name, outcome in outcomes.items() if outcome == "unchanged"} == set(fired)
    left = await all_rows(connection, "select distinct status from tocsin.schedule order by status")
    assert {row["status"] for row in left} <= {"cancelled", "fired", "paused"}
    assert await all_rows(connection, "select * from tocsin.timer") == []

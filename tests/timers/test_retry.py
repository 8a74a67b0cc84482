"""A retry makes a failed timer due again, is audited, and changes nothing else about the timer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from clock.term import begin_term
from clock.ticks import ScheduleTicks
from tests.clock.clock_setup import at, drain, fired, put
from tests.clock.plain_kind import Plain, arm_plain, fired_plain, spoil
from tests.sessions import Sessions
from tests.sql import all_rows, blocked, one_row
from tests.wait import eventually
from timers.retry import retry_timer
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput, Refused

ACTOR = Actor("ann", "test", at(100))


async def failed_beat(connection: Connection, max_failures: int = 1, **changes: Any) -> str:
    """A tick that failed once, and whose cause was fixed since."""
    made = await put(connection, **changes)
    stored = await one_row(connection, "select recurrence from tocsin.schedule where id = %s", (made.id,))
    spoilt = "update tocsin.schedule set recurrence = %s where id = %s"
    await connection.execute(spoilt.encode(), (Jsonb({"no": "recurrence"}), made.id))
    await drain(await begin_term(connection, "test", max_failures=max_failures), at(10))
    await connection.execute(spoilt.encode(), (Jsonb(stored["recurrence"]), made.id))
    return str(made.id)


async def timer(connection: Connection) -> dict[str, Any]:
    return await one_row(connection, "select * from tocsin.timer")


async def test_a_parked_tick_is_due_at_once_and_fires_what_it_would_have(connection: Connection) -> None:
    ref = await failed_beat(connection, grace=100 * (at(1) - at(0)))
    parked = await timer(connection)
    assert parked["parked_at"] == at(10)
    found = await retry_timer(connection, "schedule-tick", ref, "", ACTOR)
    assert (found["attempts"], found["name"]) == (1, "beat")
    retried = {"fire_at": at(100), "attempts": 0, "last_error": None, "parked_at": None}
    assert await timer(connection) == {**parked, **retried}
    term = await begin_term(connection, "test")
    assert (await term.run_once(at(100))).fires == 1
    assert await fired(connection) == [("beat", at(10))]


async def test_a_retry_is_audited_with_the_previous_error(connection: Connection) -> None:
    ref = await failed_beat(connection, owner="plant")
    failed = await timer(connection)
    await connection.execute("select set_config('tocsin.now', %s, false)", (ACTOR.now.isoformat(),))
    await retry_timer(connection, "schedule-tick", ref, "", ACTOR)
    actor = await one_row(connection, "select * from tocsin.audit where verb = 'retry'")
    assert (actor["at"], actor["who"], actor["via"]) == (at(100), "ann", "test")
    assert (actor["kind"], actor["owner"], actor["name"]) == ("timer", "plant", "beat")
    assert actor["old"] == {
        "attempts": 1,
        "last_error": failed["last_error"],
        "parked_at": at(10).isoformat(),
        "fire_at": failed["fire_at"].isoformat(),
    }
    assert actor["new"] == {
        "attempts": 0,
        "last_error": None,
        "parked_at": None,
        "fire_at": at(100).isoformat(),
    }


async def test_a_timer_in_backoff_can_be_retried_as_well(connection: Connection) -> None:
    ref = await failed_beat(connection, max_failures=5)
    assert (await timer(connection))["parked_at"] is None
    await retry_timer(connection, "schedule-tick", ref, "", ACTOR)
    assert (await timer(connection))["fire_at"] == at(100)


async def test_a_timer_of_another_kind_is_named_by_its_key(connection: Connection) -> None:
    await arm_plain(connection, "watchdog", at(5), count=2)
    for key in ("00001", "00002"):
        await spoil(connection, "watchdog", key, "bad")
    term = await begin_term(connection, "test", kinds=(Plain("watchdog"), ScheduleTicks()), max_failures=1)
    await drain(term, at(10))
    await connection.execute("update tocsin.timer set payload = '{}'")
    await retry_timer(connection, "watchdog", "one", "00002", ACTOR)
    await drain(term, at(100))
    assert await fired_plain(connection, "watchdog") == [("one", "00002")]
    actor = await one_row(connection, "select * from tocsin.audit")
    assert (actor["kind"], actor["owner"], actor["name"]) == ("timer", "", "watchdog/one/00002")


async def test_a_tick_is_found_by_the_name_of_its_schedule_unless_several_have_the_name(
    connection: Connection,
) -> None:
    await failed_beat(connection)
    await retry_timer(connection, "schedule-tick", "beat", "", ACTOR)
    ids = sorted([await failed_beat(connection, owner="plant"), await failed_beat(connection, owner="mill")])
    with pytest.raises(Refused) as refused:
        await retry_timer(connection, "schedule-tick", "beat", "", ACTOR)
    assert str(refused.value).startswith("several schedules are called 'beat': give the ref of one: ")
    assert all(f"{ref} (owner " in str(refused.value) for ref in ids)
    await retry_timer(connection, "schedule-tick", ids[0], "", ACTOR)
    await arm_plain(connection, "watchdog", at(5), ref=ids[1])
    with pytest.raises(Refused, match="there is no watchdog 'beat'"):
        await retry_timer(connection, "watchdog", "beat", "00001", ACTOR)


async def test_a_missing_or_healthy_timer_is_refused_and_nothing_is_audited(
    connection: Connection,
) -> None:
    made = await put(connection)
    with pytest.raises(
        Refused,
        match=r"schedule-tick 'beat' has not failed, it is due at 2026-03-02 08:00:10 UTC: there is nothing to retry",
    ):
        await retry_timer(connection, "schedule-tick", "beat", "", ACTOR)
    with pytest.raises(
        Refused,
        match="there is no schedule-tick 'nothing' with the key 'k': `tocsin timers --parked --json` lists",
    ):
        await retry_timer(connection, "schedule-tick", "nothing", "k", ACTOR)
    with pytest.raises(Refused, match="there is no schedule-tick"):
        await retry_timer(connection, "schedule-tick", str(made.id), "k", ACTOR)
    with pytest.raises(InvalidInput, match="unknown timer kind 'tick'"):
        await retry_timer(connection, "tick", "beat", "", ACTOR)
    assert await all_rows(connection, "select * from tocsin.audit where verb = 'retry'") == []
    assert (await timer(connection))["fire_at"] == at(10)


async def test_a_retry_that_waited_for_an_edit_finds_nothing_to_retry(
    connection: Connection, sessions: Sessions, watch: Connection
) -> None:
    ref = await failed_beat(connection)
    editor = await sessions("editor")
    async with editor.transaction():
        await put(editor, payload={"k": 1})
        retry = asyncio.create_task(retry_timer(connection, "schedule-tick", ref, "", ACTOR))
        await eventually(lambda: blocked(watch, connection), "the retry waits for the edit")
    with pytest.raises(Refused, match="has not failed"):
        await retry
    assert (await timer(connection))["generation"] == 2

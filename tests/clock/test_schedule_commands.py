"""A command about a schedule commits with its audit row and its event, or not at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from clock.schedule_commands import cancel, pause, resume, run_now
from clock.term import begin_term
from tests.records import events
from timers.schedule_spec import ScheduleSpec
from timers.schedules import find_schedule, put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import Refused

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
ACTOR = Actor("ann", "test", T0)


async def put(connection: Connection) -> None:
    spec = ScheduleSpec("beat", {"every": "10s"}, owner="plant", payload={"k": 1}, action="tell")
    await put_schedule(connection, spec, ACTOR)


async def test_each_command_is_an_event_with_its_actor(connection: Connection) -> None:
    await put(connection)
    await pause(connection, "plant", "beat", ACTOR)
    await resume(connection, "plant", "beat", ACTOR)
    await cancel(connection, "plant", "beat", ACTOR)
    rows = await events(connection)
    assert [row["type"] for row in rows] == ["schedule-paused", "schedule-resumed", "schedule-cancelled"]
    assert {(row["origin"], row["schedule"], row["owner"]) for row in rows} == {("caused", "beat", "plant")}
    assert rows[0]["payload"] == {"who": "ann", "via": "test"}


async def test_a_command_that_changes_nothing_is_no_event(connection: Connection) -> None:
    await put(connection)
    await resume(connection, "plant", "beat", ACTOR)
    assert await events(connection) == []


async def test_a_refused_command_appends_no_event(connection: Connection) -> None:
    await put(connection)
    await cancel(connection, "plant", "beat", ACTOR)
    with pytest.raises(Refused, match="is cancelled and cannot be paused"):
        await pause(connection, "plant", "beat", ACTOR)
    assert [row["type"] for row in await events(connection)] == ["schedule-cancelled"]


async def test_run_now_appends_the_event_of_a_fire_and_does_not_move_the_next_fire(
    connection: Connection,
) -> None:
    await put(connection)
    seq = await run_now(connection, "plant", "beat", ACTOR)
    triggered, event = await events(connection)
    assert (triggered["origin"], triggered["type"]) == ("caused", "schedule-triggered")
    assert triggered["payload"] == {"who": "ann", "via": "test"}
    assert (event["seq"], event["origin"], event["type"]) == (seq, "scheduled", "schedule-fired")
    assert event["fire_at"] is None
    assert event["source_event_id"] == event["correlation_id"] == triggered["id"]
    assert (event["payload"], event["action"], event["owner"]) == ({"k": 1}, "tell", "plant")
    row = await find_schedule(connection, "plant", "beat")
    assert row is not None
    assert row["nominal_at"] == T0 + timedelta(seconds=10)
    assert row["last_occurrence"] is None
    with pytest.raises(Refused, match="no schedule 'unknown'"):
        await run_now(connection, "", "unknown", ACTOR)


async def test_a_paused_schedule_does_not_fire_and_a_resumed_one_does_not_fire_retroactively(
    connection: Connection,
) -> None:
    await put(connection)
    await pause(connection, "plant", "beat", ACTOR)
    term = await begin_term(connection, "test")
    assert (await term.run_once(T0 + timedelta(minutes=1))).timers == 0
    await resume(connection, "plant", "beat", Actor("ann", "test", T0 + timedelta(minutes=1)))
    assert (await term.run_once(T0 + timedelta(minutes=1))).timers == 0
    assert (await term.run_once(T0 + timedelta(minutes=1, seconds=10))).fires == 1

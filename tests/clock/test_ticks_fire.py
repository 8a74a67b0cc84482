"""A due tick becomes one event, and the tick moves on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from clock.term import begin_term
from tests.records import events
from timers.schedules import Act, ScheduleSpec, find_schedule, put_schedule
from tocsin.core.db import Connection

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
ACT = Act("tester", "test", T0)


async def test_a_due_tick_becomes_one_scheduled_event(connection: Connection) -> None:
    spec = ScheduleSpec("beat", {"every": "10s"}, owner="plant", payload={"k": [1, None]})
    put = await put_schedule(connection, spec, ACT)
    assert put.next_at == T0 + timedelta(seconds=10)
    term = await begin_term(connection, "test")

    assert (await term.run_once(T0 + timedelta(seconds=9.9))).timers == 0
    assert (await term.run_once(T0 + timedelta(seconds=10))).fires == 1

    (event,) = await events(connection)
    assert (event["seq"], event["origin"], event["type"]) == (1, "scheduled", "schedule-fired")
    assert (event["schedule"], event["owner"], event["payload"]) == ("beat", "plant", {"k": [1, None]})
    assert event["ts"] == T0 + timedelta(seconds=10)
    assert event["epoch"] == term.epoch
    row = await find_schedule(connection, "plant", "beat")
    assert row is not None
    assert row["nominal_at"] == T0 + timedelta(seconds=20)

"""A sustain moves its alarm once, at its nominal time, and never beyond the watermark."""

from __future__ import annotations

import asyncio
import uuid
from datetime import datetime

import pytest

from clock.term import Term, begin_term
from tests.clock.alarms import ALARM, CAUSE, alarm_row, arm_sustain, hold_alarm, read_until, state_row, timers
from tests.clock.clock_setup import at, drain
from tests.records import events
from tests.sessions import Sessions
from tests.wait import eventually
from timers.working_set import cancel
from tocsin.core.db import Connection
from tocsin.core.errors import Deposed

PAYLOAD = {"value": 71.2, "message": "dsp-hot"}


@pytest.fixture
async def term(connection: Connection) -> Term:
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(0).isoformat(),))
    await read_until(connection, at(60))
    return await begin_term(connection, "test")


async def fire(term: Term, now: datetime) -> int:
    return sum(batch.fires for batch in await drain(term, now))


async def test_a_pending_alarm_opens_at_the_nominal_time_however_late_the_clock_is(
    connection: Connection, term: Term
) -> None:
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(10), PAYLOAD)
    assert await fire(term, at(9.9)) == 0
    assert await fire(term, at(50)) == 1
    row = await alarm_row(connection)
    assert (row["state"], row["opened_at"], row["version"]) == ("open", at(10), 2)
    (event,) = await events(connection)
    assert (event["origin"], event["type"], event["ts"]) == ("derived", "alarm-opened", at(10))
    assert (event["rule"], event["owner"], event["severity"]) == ("dsp-hot", "plant-7", 4)
    assert (event["alarm_id"], event["correlation_id"]) == (ALARM, CAUSE)
    assert (event["id"], event["payload"]) == (uuid.uuid5(ALARM, "opened"), PAYLOAD)
    assert event["epoch"] == term.epoch
    assert await timers(connection) == []


async def test_a_sustain_that_is_armed_late_still_fires_for_its_nominal_time(
    connection: Connection, term: Term
) -> None:
    """In a backlog it is armed after its nominal time, and fires no earlier than that."""
    await hold_alarm(connection)
    await connection.execute("update tocsin.alarm set source_event_id = %s", (CAUSE,))
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(40).isoformat(),))
    await arm_sustain(connection, "open", at(10), PAYLOAD)
    assert await fire(term, at(39)) == 0
    assert await fire(term, at(40)) == 1
    assert (await alarm_row(connection))["opened_at"] == at(10)
    (event,) = await events(connection)
    assert (event["ts"], event["source_event_id"]) == (at(10), CAUSE)


async def test_the_state_of_the_rule_moves_with_the_alarm(connection: Connection, term: Term) -> None:
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(10), PAYLOAD)
    await fire(term, at(10))
    row = await state_row(connection)
    assert (row["phase"], row["alarm_id"], row["version"]) == ("open", ALARM, 2)
    assert (row["state"]["phase"], row["state"]["due_at"]) == ("open", None)
    assert row["state"]["last_opened_at"] == at(10).isoformat()
    assert row["state"]["tracks"] == {"kept": 1}


async def test_an_alarm_that_was_clear_for_long_enough_resolves(connection: Connection, term: Term) -> None:
    await hold_alarm(connection, "clearing")
    await arm_sustain(connection, "clear", at(10), {"reason": "clear", "value": 59})
    assert await fire(term, at(11)) == 1
    row = await alarm_row(connection)
    assert (row["state"], row["resolved_at"], row["resolved_reason"]) == ("resolved", at(10), "clear")
    state = await state_row(connection)
    assert (state["phase"], state["alarm_id"], state["state"]["firing_series"]) == ("ok", None, {})
    (event,) = await events(connection)
    assert (event["type"], event["id"]) == ("alarm-resolved", uuid.uuid5(ALARM, "resolved"))


async def test_no_alarm_opens_beyond_the_watermark(connection: Connection, term: Term) -> None:
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(10), PAYLOAD)
    # Each time later by more than the delay after which the clock checks a held row again.
    for seconds, until_at in ((30, None), (31, at(9.999)), (31.5, at(10))):
        await read_until(connection, until_at)
        assert await fire(term, at(seconds)) == 0
    assert len(await timers(connection)) == 1
    # An input at the very instant comes first, so the lane must have read beyond it.
    await read_until(connection, at(10.000001))
    assert await fire(term, at(32.5)) == 1


async def test_a_partition_that_is_behind_holds_no_sustain_of_another_partition(
    connection: Connection, term: Term
) -> None:
    await read_until(connection, at(1), partition=1)
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(10), PAYLOAD)
    assert await fire(term, at(10)) == 1


async def test_the_end_of_a_snooze_is_one_event_while_the_alarm_is_open(
    connection: Connection, term: Term
) -> None:
    await hold_alarm(connection, "open")
    await connection.execute("update tocsin.alarm set snoozed_until = %s", (at(10),))
    await read_until(connection, None)
    await arm_sustain(connection, "snooze", at(10), {})
    assert await fire(term, at(10)) == 1
    (event,) = await events(connection)
    assert (event["type"], event["ts"]) == ("alarm-snooze-ended", at(10))
    row = await alarm_row(connection)
    assert (row["state"], row["snoozed_until"]) == ("open", None)
    assert (await state_row(connection))["version"] == 1
    await arm_sustain(connection, "snooze", at(20), {})
    assert await fire(term, at(20)) == 1, "the end of the next snooze is an event as well"
    assert [event["ts"] for event in await events(connection)] == [at(10), at(20)]


async def test_a_timer_whose_alarm_changed_meanwhile_is_consumed_without_an_event(
    connection: Connection, term: Term
) -> None:
    await hold_alarm(connection, "open")
    await arm_sustain(connection, "open", at(10), PAYLOAD)
    assert await fire(term, at(10)) == 0
    assert await events(connection) == []
    assert await timers(connection) == []


async def test_the_state_of_a_rule_with_another_alarm_is_not_changed(
    connection: Connection, term: Term
) -> None:
    await hold_alarm(connection)
    await connection.execute("update tocsin.rule_state set alarm_id = %s", (CAUSE,))
    await arm_sustain(connection, "open", at(10), PAYLOAD)
    assert await fire(term, at(10)) == 1
    state = await state_row(connection)
    assert (state["phase"], state["alarm_id"], state["version"]) == ("pending", CAUSE, 1)


async def test_a_timer_without_an_alarm_is_consumed(connection: Connection, term: Term) -> None:
    await arm_sustain(connection, "open", at(10), PAYLOAD)
    assert await fire(term, at(10)) == 0
    assert await timers(connection) == []


async def test_a_deposed_clock_opens_nothing(connection: Connection, term: Term, sessions: Sessions) -> None:
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(10), PAYLOAD)
    await connection.execute("update tocsin.log_head set holder_pid = null")
    await begin_term(await sessions("successor"), "successor")
    with pytest.raises(Deposed):
        await fire(term, at(10))
    assert (await alarm_row(connection))["state"] == "pending"
    assert len(await timers(connection)) == 1


async def test_a_fire_skips_a_timer_that_is_being_cancelled(
    connection: Connection, term: Term, sessions: Sessions
) -> None:
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(10), PAYLOAD)
    worker = await sessions("worker")
    async with worker.transaction():
        assert await cancel(worker, "for-sustain", str(ALARM), "open")
        assert await fire(term, at(10)) == 0
    assert await fire(term, at(11)) == 0
    assert (await alarm_row(connection))["state"] == "pending"


async def test_a_cancel_during_a_fire_waits_and_finds_no_timer(
    connection: Connection, sessions: Sessions, watch: Connection
) -> None:
    await read_until(connection, at(60))
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(0).isoformat(),))
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(10), PAYLOAD)
    worker = await sessions("worker")
    waiting: list[asyncio.Task[bool]] = []

    async def meanwhile(point: str) -> None:
        if point == "appended":
            waiting.append(asyncio.create_task(cancel(worker, "for-sustain", str(ALARM), "open")))
            await eventually(lambda: _waits(watch), "the cancel waits")

    term = await begin_term(connection, "test", hook=meanwhile)
    assert await fire(term, at(10)) == 1
    assert await waiting[0] is False, "the timer has fired"
    assert (await alarm_row(connection))["state"] == "open"


async def _waits(watch: Connection) -> bool:
    row = await (
        await watch.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        )
    ).fetchone()
    return bool(row and row[0])


@pytest.mark.parametrize(
    ("snoozed_until", "event_types"),
    [
        (at(9), ["alarm-snooze-ended", "alarm-resolved"]),
        (at(10), ["alarm-resolved"]),
        (at(11), ["alarm-resolved"]),
    ],
)
async def test_a_snooze_that_ends_in_the_batch_that_resolves_its_alarm_leaves_it_resolved(
    connection: Connection, term: Term, snoozed_until: datetime, event_types: list[str]
) -> None:
    """If both are due at one instant, the alarm resolves first and the snooze is no event."""
    await hold_alarm(connection, "open")
    await connection.execute("update tocsin.alarm set snoozed_until = %s", (snoozed_until,))
    await arm_sustain(connection, "clear", at(10), {"reason": "cleared"})
    await arm_sustain(connection, "snooze", snoozed_until, {})
    await fire(term, at(50))
    assert [event["type"] for event in await events(connection)] == event_types
    row = await alarm_row(connection)
    assert (row["state"], row["resolved_at"], row["resolved_reason"]) == ("resolved", at(10), "cleared")
    assert await timers(connection) == []

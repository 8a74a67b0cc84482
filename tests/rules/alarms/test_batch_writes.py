"""The decisions of a batch are written once, fit what is stored, and agree with the pure engine."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from clock.term import Term, begin_term
from rules.engine import BLANK, Effect, Open, Resolve, RuleState, advance, step
from tests.clock.alarms import read_until
from tests.clock.clock_setup import at, drain
from tests.records import events
from tests.rules.alarms.alarm_batches import (
    HOT,
    alarms,
    arrival,
    compiled,
    event_times,
    virtual_now,
    write_batch,
)
from tests.sessions import Sessions
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection

RULES = compiled()
FLAPPY = compiled(
    """
event_rule:
  name: dsp-hot
  datapoint: dsp.*
  fire: 'value > 65.0'
  clear: 'value < 60.0'
  for: 5s
  keep_firing_for: 3s
  cooldown: 12s
"""
)


@pytest.fixture
async def clock_session(sessions: Sessions) -> Connection:
    session = await sessions("clock")
    await virtual_now(session, at(0))
    return session


@pytest.fixture
async def clock(clock_session: Connection) -> Term:
    return await begin_term(clock_session, "test")


@pytest.fixture(autouse=True)
async def partition(connection: Connection) -> None:
    await virtual_now(connection, at(0))
    await read_until(connection, at(0))


async def timers(connection: Connection) -> list[tuple[str, float]]:
    rows = await all_rows(connection, "select key, nominal_at from tocsin.timer order by nominal_at")
    return [(row["key"], (row["nominal_at"] - at(0)).total_seconds()) for row in rows]


async def test_a_condition_that_begins_is_a_pending_alarm_with_a_timer(connection: Connection) -> None:
    await write_batch(connection, RULES, [arrival(1, 71.2)])
    (row,) = await alarms(connection)
    assert (row["state"], row["event_rule"], row["owner"], row["since"]) == (
        "pending",
        "dsp-hot",
        "plant-7",
        at(1),
    )
    assert row["correlation_id"] == row["id"]
    assert await timers(connection) == [("open", 11)]
    assert await event_times(connection) == []


async def test_an_alarm_that_opens_and_clears_in_one_batch_has_one_timer_left(connection: Connection) -> None:
    await write_batch(connection, FLAPPY, [arrival(1, 71.2)])
    await write_batch(connection, FLAPPY, [arrival(10, 50.0)])
    assert await event_times(connection) == [("alarm-opened", 6)]
    assert await timers(connection) == [("clear", 13)]


async def test_the_clock_leaves_a_state_as_the_engine_would(connection: Connection, clock: Term) -> None:
    async def state() -> RuleState:
        (row,) = await all_rows(connection, "select state from tocsin.rule_state")
        return RuleState.from_json(row["state"])

    for seconds, value in ((1, 71.2), (10, 50.0)):
        await write_batch(connection, FLAPPY, [arrival(seconds, value)])
        before = await state()
        await read_until(connection, at(seconds + 8))
        await drain(clock, at(seconds + 8))
        after = await state()
        assert after == advance(before, at(seconds + 8))[0]
        assert after.phase == ("open" if seconds == 1 else "ok")


async def test_a_stored_pending_alarm_that_a_batch_changes_and_drops_is_deleted(
    connection: Connection,
) -> None:
    await write_batch(connection, RULES, [arrival(1, 71.2)])
    await write_batch(connection, RULES, [arrival(2, 80.0), arrival(3, 60), arrival(4, 90.0)])
    (row,) = await alarms(connection)
    assert (row["state"], row["since"]) == ("pending", at(4))


async def test_an_alarm_that_clears_before_its_for_leaves_no_trace(connection: Connection) -> None:
    await write_batch(connection, RULES, [arrival(1, 71.2)])
    await write_batch(connection, RULES, [arrival(2, 60)])
    assert await alarms(connection) == []
    assert await timers(connection) == []
    await write_batch(connection, RULES, [arrival(3, 71.2), arrival(4, 60)])
    assert (await alarms(connection), await timers(connection), await event_times(connection)) == ([], [], [])


async def test_the_clock_opens_and_the_worker_resolves(connection: Connection, clock: Term) -> None:
    await write_batch(connection, RULES, [arrival(1, 71.2)])
    await write_batch(connection, RULES, [arrival(11, 72)])
    await drain(clock, at(20))
    await write_batch(connection, RULES, [arrival(21, 59)])
    assert await event_times(connection) == [("alarm-opened", 11), ("alarm-resolved", 21)]
    (row,) = await alarms(connection)
    assert (row["state"], row["opened_at"], row["resolved_at"], row["resolved_reason"]) == (
        "resolved",
        at(11),
        at(21),
        "cleared",
    )
    opened, resolved = await events(connection)
    assert opened["alarm_id"] == resolved["alarm_id"] == row["id"]
    assert opened["correlation_id"] == resolved["correlation_id"] == row["id"]
    assert "above 65" in opened["payload"]["message"]


async def test_a_deadline_before_an_input_is_handled_first_by_the_worker(connection: Connection) -> None:
    """No clock was running. The alarm opens at its nominal time, and is then resolved."""
    await write_batch(connection, RULES, [arrival(1, 71.2)])
    await write_batch(connection, RULES, [arrival(30, 59)])
    assert await event_times(connection) == [("alarm-opened", 11), ("alarm-resolved", 30)]
    assert await timers(connection) == []


async def test_several_alarms_of_one_batch_follow_each_other(connection: Connection) -> None:
    await write_batch(
        connection,
        RULES,
        [arrival(1, 70), arrival(20, 50), arrival(21, 70), arrival(40, 50), arrival(41, 70)],
    )
    assert [row["state"] for row in await alarms(connection)] == ["resolved", "resolved", "pending"]
    assert await event_times(connection) == [
        ("alarm-opened", 11),
        ("alarm-resolved", 20),
        ("alarm-opened", 31),
        ("alarm-resolved", 40),
    ]


async def test_a_snooze_ends_with_its_alarm(connection: Connection, clock: Term) -> None:
    await write_batch(connection, RULES, [arrival(1, 70), arrival(15, 70)])
    (row,) = await alarms(connection)
    await connection.execute("select tocsin.arm('for-sustain', %s, 'snooze', %s)", (str(row["id"]), at(99)))
    await write_batch(connection, RULES, [arrival(16, 50)])
    assert await timers(connection) == []


async def test_a_clock_that_was_faster_makes_the_worker_plan_again(
    connection: Connection, clock: Term
) -> None:
    await write_batch(connection, RULES, [arrival(1, 71.2)])
    await read_until(connection, at(60))

    async def clock_first() -> None:
        await drain(clock, at(12))

    assert await write_batch(connection, RULES, [arrival(12, 59)], before_write=clock_first) == 2
    assert await event_times(connection) == [("alarm-opened", 11), ("alarm-resolved", 12)]


async def test_a_worker_that_was_faster_leaves_the_clock_nothing(connection: Connection, clock: Term) -> None:
    await write_batch(connection, RULES, [arrival(1, 71.2)])
    await write_batch(connection, RULES, [arrival(5, 59)])
    await read_until(connection, at(60))
    assert sum(batch.fires for batch in await drain(clock, at(30))) == 0
    assert await event_times(connection) == []


async def test_a_fire_in_progress_makes_the_worker_wait_and_plan_again(
    connection: Connection, sessions: Sessions, watch: Connection
) -> None:
    await write_batch(connection, RULES, [arrival(1, 71.2)])
    await read_until(connection, at(60))
    session = await sessions("clock")
    await virtual_now(session, at(0))
    worker: list[asyncio.Task[int]] = []

    async def meanwhile(point: str) -> None:
        if point == "appended":
            worker.append(asyncio.create_task(write_batch(connection, RULES, [arrival(12, 59)])))
            await eventually(lambda: _waits(watch), "the worker waits for the timer")

    term = await begin_term(session, "test", hook=meanwhile)
    await drain(term, at(11.5))
    assert await worker[0] == 2
    assert await event_times(connection) == [("alarm-opened", 11), ("alarm-resolved", 12)]


async def _waits(watch: Connection) -> bool:
    row = await (
        await watch.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        )
    ).fetchone()
    return bool(row and row[0])


async def test_two_batches_from_one_state_have_one_winner(connection: Connection, sessions: Sessions) -> None:
    """The fence of the partition prevents it. If that fails, the versions still do."""
    other = await sessions("other")
    await virtual_now(other, at(0))

    async def other_first() -> None:
        await write_batch(other, RULES, [arrival(1, 71.2)])

    assert await write_batch(connection, RULES, [arrival(1, 71.2)], before_write=other_first) == 2
    assert len(await alarms(connection)) == 1


def pure(arrivals: list[tuple[float, float, str]], until: float) -> list[tuple[str, float]]:
    """The transitions of the engine alone, advanced every second."""
    (rule,) = FLAPPY.rules.values()
    states: dict[str, RuleState] = {}
    effects_so_far: list[Effect] = []
    for seconds, value, key in arrivals:
        states[key], effects = step(rule, states.get(key, BLANK), arrival(seconds, value, key=key))
        effects_so_far += effects
    for second in range(int(until) + 1):
        for key, state in states.items():
            states[key], effects = advance(state, at(second))
            effects_so_far += effects
    return sorted(
        (f"alarm-{'opened' if isinstance(effect, Open) else 'resolved'}", (effect.at - at(0)).total_seconds())
        for effect in effects_so_far
        if isinstance(effect, Open | Resolve)
    )


STEP = st.tuples(st.integers(0, 6), st.sampled_from([50.0, 62.0, 70.0]), st.sampled_from(["dsp.a", "dsp.b"]))
BATCHES = st.lists(st.tuples(st.lists(STEP, min_size=1, max_size=3), st.booleans()), min_size=1, max_size=8)


@settings(max_examples=25)
@given(BATCHES)
async def test_live_and_pure_agree_whether_clock_or_worker_handles_the_deadlines(
    connection: Connection,
    clock_session: Connection,
    batches: list[tuple[list[tuple[int, float, str]], bool]],
) -> None:
    await connection.execute(
        "truncate tocsin.rule_state, tocsin.timer, tocsin.alarm, tocsin.event, tocsin.log_commit cascade"
    )
    await connection.execute("update tocsin.lane_partition set watermark = null")
    clock = await begin_term(clock_session, "test")
    now = 0.0
    arrivals: list[tuple[float, float, str]] = []
    for steps, clock_runs in batches:
        batch = []
        for gap, value, key in steps:
            now += gap
            batch.append((now, value, key))
        arrivals += batch
        await write_batch(
            connection, FLAPPY, [arrival(seconds, value, key=key) for seconds, value, key in batch]
        )
        if clock_runs:
            await drain(clock, at(now))
    await read_until(connection, at(now + 60))
    await drain(clock, at(now + 60))
    assert sorted(await event_times(connection)) == pure(arrivals, now + 60)


async def test_a_message_that_cannot_be_filled_is_logged(connection: Connection) -> None:
    rules = compiled(HOT.replace("severity", "message: '{{ labels.zone }}'\n  severity"))
    with capture_logs() as logs:
        await write_batch(connection, rules, [arrival(1, 70)])
    (entry,) = [entry for entry in logs if entry["event"] == "message cannot be filled"]
    assert (entry["rule"], entry["owner"]) == ("dsp-hot", "plant-7")

"""Staleness and alarms over series happen once, at nominal times, as in the pure engine."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.engine import Arrival, Changed, Open, Resolve
from tests.clock.clock_setup import at
from tests.rules.alarms.alarm_batches import alarms, arrival, event_times, virtual_now
from tests.rules.alarms.series import Live, freshness_changes
from tests.rules.apply.apply_setup import put
from tests.rules.engine.scenario import T0, Scenario
from tests.sessions import Sessions
from tests.sql import all_rows
from tocsin.core.db import Connection

TYPE = """
datapoint_type:
  name: load
  key: dsp.*
  interval: 4s
  tolerance: 2.5
"""
ABSENT = """
---
event_rule:
  name: quiet
  datapoint: dsp.*
  absent: true
  for: 5s
"""


@pytest.fixture
async def live(connection: Connection, sessions: Sessions) -> Live:
    live = Live(connection, await sessions("clock"))
    await live.begin()
    return live


async def watchdogs(connection: Connection) -> list[tuple[str, float]]:
    rows = await all_rows(
        connection, "select key, nominal_at from tocsin.timer where kind = 'watchdog' order by key"
    )
    return [(row["key"], (row["nominal_at"] - at(0)).total_seconds()) for row in rows]


async def freshness(connection: Connection, key: str = "dsp.a") -> tuple[str, bool]:
    (row,) = await all_rows(connection, "select * from tocsin.current_value where key = %s", (key,))
    return row["freshness"], row["handled_stale_since"] == row["stale_since"]


def dsp(seconds: float, value: float = 1, key: str = "dsp.a", owner: str = "plant-7") -> Arrival:
    return arrival(seconds, value, owner=owner, key=key)


async def test_the_first_arrival_arms_one_watchdog_and_later_ones_leave_it_alone(
    connection: Connection, live: Live
) -> None:
    await put(connection, TYPE)
    await live.receive([dsp(1), dsp(2)])
    assert await watchdogs(connection) == [("dsp.a", 12)]
    await live.receive([dsp(3)])
    await live.receive([dsp(4)])
    assert await watchdogs(connection) == [("dsp.a", 12)]


async def test_an_undeclared_series_is_stored_and_never_watched(connection: Connection, live: Live) -> None:
    await put(connection, TYPE)
    await live.receive([dsp(1, key="other")])
    assert await watchdogs(connection) == []
    assert await freshness(connection, "other") == ("fresh", True)


async def test_the_clock_records_it_as_stale_and_the_next_arrival_as_fresh(
    connection: Connection, live: Live
) -> None:
    await put(connection, TYPE)
    await live.receive([dsp(1)])
    await live.read_until(at(12))
    await live.run_clock(12)
    assert await freshness(connection) == ("stale", False)
    await live.receive([dsp(20)])
    assert await freshness(connection) == ("fresh", False)
    assert await freshness_changes(connection) == [("dsp.a", "stale", 11), ("dsp.a", "fresh", 20)]
    assert await watchdogs(connection) == [("dsp.a", 30)]


async def test_without_a_clock_the_worker_records_the_same(connection: Connection, live: Live) -> None:
    await put(connection, TYPE)
    await live.receive([dsp(1)])
    await live.receive([dsp(20)])
    assert await freshness_changes(connection) == [("dsp.a", "stale", 11), ("dsp.a", "fresh", 20)]
    assert await watchdogs(connection) == [("dsp.a", 30)]
    rows = await all_rows(connection, "select payload from tocsin.datapoint_calculated order by seq")
    assert rows[0]["payload"]["age_s"] == 10


async def test_a_batch_after_an_outage_of_workers_has_every_staleness_that_was_real(
    connection: Connection, live: Live
) -> None:
    await put(connection, TYPE)
    await live.receive([dsp(1), dsp(5), dsp(30), dsp(35), dsp(60)])
    assert await freshness_changes(connection) == [
        ("dsp.a", "stale", 15),
        ("dsp.a", "fresh", 30),
        ("dsp.a", "stale", 45),
        ("dsp.a", "fresh", 60),
    ]
    assert await watchdogs(connection) == [("dsp.a", 70)]


async def test_a_clock_that_was_faster_makes_the_worker_plan_again(
    connection: Connection, live: Live
) -> None:
    await put(connection, TYPE + ABSENT)
    await live.receive([dsp(1)])

    async def clock_first() -> None:
        await live.read_until(at(12))
        await live.run_clock(12)

    assert await live.receive([dsp(20)], meanwhile=clock_first) == 2
    assert await freshness_changes(connection) == [("dsp.a", "stale", 11), ("dsp.a", "fresh", 20)]
    assert await event_times(connection) == [
        ("rules-applied", 0),
        ("alarm-opened", 16),
        ("alarm-resolved", 20),
    ]


async def test_a_stale_series_that_the_clock_recorded_opens_an_alarm(
    connection: Connection, live: Live
) -> None:
    await put(connection, TYPE + ABSENT)
    await live.receive([dsp(1)])
    await live.read_until(at(100))
    await live.run_clock(12)
    assert await alarms(connection) == []
    await live.receive_staleness(12)
    assert [row["state"] for row in await alarms(connection)] == ["pending"]
    await live.receive_staleness(13)
    assert len(await alarms(connection)) == 1
    await live.run_clock(16)
    (row,) = await alarms(connection)
    assert (row["state"], row["since"], row["opened_at"]) == ("open", at(11), at(16))


async def test_an_earlier_deadline_of_another_series_of_the_owner_comes_first(
    connection: Connection, live: Live
) -> None:
    """The rules evaluate the inputs of one owner in the order of instants."""
    await put(connection, TYPE + ABSENT)
    await live.receive([dsp(1, key="dsp.a"), dsp(5, key="dsp.b")])
    await live.receive([dsp(13, key="dsp.b")])
    assert await freshness_changes(connection) == [("dsp.a", "stale", 11)]
    assert [row["since"] for row in await alarms(connection)] == [at(11)]
    assert await watchdogs(connection) == [("dsp.b", 15)]


async def test_a_staleness_that_was_already_processed_is_ignored(connection: Connection, live: Live) -> None:
    await put(connection, TYPE + ABSENT)
    await live.receive([dsp(1)])
    await live.read_until(at(12))
    await live.run_clock(12)
    await live.receive([dsp(13)])
    before = await event_times(connection), await freshness_changes(connection)
    await live.receive_staleness(14)
    assert (await event_times(connection), await freshness_changes(connection)) == before


WITHOUT = TYPE.replace("  interval: 4s\n", "")


async def test_an_apply_changes_the_tolerance_of_watchdogs_at_once(
    connection: Connection, live: Live
) -> None:
    """A stale series has no arrival that could correct it."""
    await put(connection, TYPE)
    await live.receive([dsp(1)])
    await put(connection, TYPE.replace("2.5", "5"))
    assert await watchdogs(connection) == [("dsp.a", 21)]
    await live.receive([dsp(2)])
    assert await watchdogs(connection) == [("dsp.a", 21)]
    await put(connection, WITHOUT)
    assert await watchdogs(connection) == []
    await live.receive([dsp(3)])
    assert await watchdogs(connection) == []
    await put(connection, TYPE)
    assert await watchdogs(connection) == [("dsp.a", 13)]
    await live.read_until(at(20))
    await live.run_clock(20)
    assert await freshness_changes(connection) == [("dsp.a", "stale", 13)]


@pytest.mark.parametrize("after", [WITHOUT, TYPE.replace("2.5", "50")], ids=["gone", "longer"])
async def test_a_deadline_that_passed_before_the_apply_is_still_recorded(
    connection: Connection, live: Live, after: str
) -> None:
    await put(connection, TYPE)
    await live.receive([dsp(1)])
    await live.read_until(at(11))
    await put(connection, after)
    await live.run_clock(12)
    assert await freshness_changes(connection) == [("dsp.a", "stale", 11)]


async def test_a_more_specific_type_takes_its_series_over(connection: Connection, live: Live) -> None:
    await put(connection, TYPE)
    await live.receive([dsp(1), dsp(2, key="dsp.b")])
    own = TYPE.replace("load", "own").replace("dsp.*", "dsp.b").replace("4s", "8s")
    await put(connection, TYPE + "---" + own)
    assert await watchdogs(connection) == [("dsp.a", 11), ("dsp.b", 22)]


async def test_a_stale_series_is_not_watched_after_any_change_of_its_type(
    connection: Connection, live: Live
) -> None:
    await put(connection, TYPE)
    await live.receive([dsp(1)])
    await live.read_until(at(20))
    await live.run_clock(20)
    await put(connection, TYPE.replace("2.5", "5"))
    assert await watchdogs(connection) == []


async def test_an_earlier_deadline_of_another_series_comes_first_even_long_afterwards(
    connection: Connection, live: Live
) -> None:
    """A backlog is drained an hour late: the watchdog fires late, for an instant long before."""
    await virtual_now(connection, at(3600))
    await put(connection, TYPE + ABSENT)
    await live.receive([dsp(1, key="dsp.a"), dsp(5, key="dsp.b")])
    await live.receive([dsp(13, key="dsp.b")])
    assert await freshness_changes(connection) == [("dsp.a", "stale", 11)]
    assert [row["since"] for row in await alarms(connection)] == [at(11)]


RULES = (
    TYPE
    + """
---
event_rule:
  name: hot
  datapoint: dsp.*
  above: 65
  for: 6s
  keep_firing_for: 3s
  no_data: resolve
---
event_rule:
  name: quiet
  datapoint: dsp.*
  absent: true
  for: 5s
---
event_rule:
  name: strict
  datapoint: dsp.*
  below: 60
  no_data: alarm
  no_data_for: 2s
"""
)
STEP = st.tuples(st.integers(0, 14), st.sampled_from([50.0, 62.0, 70.0]), st.sampled_from(["dsp.a", "dsp.b"]))
BATCHES = st.lists(
    st.tuples(st.lists(STEP, min_size=1, max_size=3), st.sampled_from(["", "clock", "clock and stream"])),
    min_size=1,
    max_size=6,
)


def pure(arrivals: list[tuple[float, float, str]], until: float) -> list[tuple[str, str, float]]:
    scenario = Scenario(RULES)
    for seconds, value, key in arrivals:
        scenario.wait_until(T0 + timedelta(seconds=seconds)).send(value, key=key)
    scenario.wait_until(T0 + timedelta(seconds=until))
    return sorted(
        (
            effect.alarm.rule,
            {Open: "opened", Changed: "changed", Resolve: "resolved"}[type(effect)],
            (effect.at - T0).total_seconds(),
        )
        for effect in scenario.transitions()
    )


_examples = itertools.count(1)


@settings(max_examples=25)
@given(BATCHES)
async def test_live_and_pure_agree_whether_clock_or_worker_passes_the_deadlines(
    connection: Connection, live: Live, batches: list[tuple[list[tuple[int, float, str]], str]]
) -> None:
    """Each example has an owner and a thousand seconds of its own."""
    await put(connection, RULES)
    example = next(_examples)
    owner, began, now = f"plant-{example}", example * 1000.0, 0.0
    arrivals: list[tuple[float, float, str]] = []
    for steps, then in batches:
        batch = []
        for gap, value, key in steps:
            now += gap
            batch.append((now, value, key))
        arrivals += batch
        await live.receive([dsp(began + seconds, value, key, owner) for seconds, value, key in batch])
        if "clock" in then:
            await live.run_clock(began + now)
        if "stream" in then:
            await live.receive_staleness(began + now, owner)
    await live.read_until(at(began + now + 100))
    for _ in range(4):
        await live.run_clock(began + now + 100)
        await live.receive_staleness(began + now + 100, owner)
    rows = await all_rows(
        connection,
        "select rule, type, ts from tocsin.event where alarm_id is not null and owner = %s",
        (owner,),
    )
    found = sorted(
        (row["rule"], row["type"].removeprefix("alarm-"), (row["ts"] - at(began)).total_seconds())
        for row in rows
    )
    assert found == pure(arrivals, now + 100)

"""Producers and outages in virtual time: a series becomes stale once, at its deadline.

Each scenario runs with a clock that fires after every arrival, with one that fires once at the end,
and without one, with everything read in one batch. The calculated datapoints are the same.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from rules.engine import Arrival
from tests.clock.clock_setup import at
from tests.rules.alarms.alarm_batches import event_times
from tests.rules.alarms.series import Live, freshness_changes
from tests.rules.apply.apply_setup import put
from tests.sessions import Sessions
from tests.sql import all_rows, one_row
from tocsin.core.db import Connection

MINUTE = 60.0
HOUR = 60 * MINUTE
STALE_AFTER = 2.5 * MINUTE
WATCHED = """
datapoint_type:
  name: load
  key: dsp.*
  interval: 1m
  on_stale: alarm
"""
OWNERS = ("plant-7", "plant-8")

ClockRuns = str


@pytest.fixture(params=["after every arrival", "at the end", "never"])
def clock_runs(request: pytest.FixtureRequest) -> ClockRuns:
    return str(request.param)


@pytest.fixture
async def live(connection: Connection, sessions: Sessions) -> Live:
    live = Live(connection, await sessions("clock"))
    await live.begin()
    await put(connection, WATCHED)
    return live


def datapoint(
    seconds: float, value: float = 1.0, *, key: str = "dsp.a", owner: str = "plant-7", ts: float | None = None
) -> Arrival:
    sent = seconds if ts is None else ts
    return Arrival(at(seconds), int(seconds * 1000), owner, key, value, at(sent), {})


async def run_scenario(live: Live, arrivals: Sequence[Arrival], clock_runs: ClockRuns, until: float) -> None:
    """Process all arrivals; at `until`, everything up to then has been read."""
    if clock_runs == "never":
        # Without a clock, the next arrival of the owner passes the deadlines.
        await live.receive([*arrivals, *(datapoint(until, key="other", owner=owner) for owner in OWNERS)])
        return
    for arrival in arrivals:
        await live.receive([arrival])
        if clock_runs == "after every arrival":
            await live.run_clock((arrival.at - at(0)).total_seconds())
    await live.read_until(at(until))
    await live.run_clock(until)
    for owner in OWNERS:
        await live.receive_staleness(until, owner)


async def transitions(connection: Connection) -> list[tuple[str, float]]:
    return [(type, at_s) for type, at_s in await event_times(connection) if type.startswith("alarm-")]


async def test_jitter_within_the_tolerance_is_never_stale(
    connection: Connection, live: Live, clock_runs: ClockRuns
) -> None:
    chance = random.Random(7)
    arrivals = [datapoint(number * MINUTE + chance.uniform(0, 89)) for number in range(1, 40)]
    arrivals.sort(key=lambda arrival: arrival.at)
    await run_scenario(live, arrivals, clock_runs, 40 * MINUTE)
    assert await freshness_changes(connection) == []
    assert await transitions(connection) == []


@pytest.mark.parametrize(("late_s", "is_stale"), [(149.999, False), (150.0, True), (151.0, True)])
async def test_a_series_with_one_late_datapoint_is_stale_from_the_deadline_on(
    connection: Connection, live: Live, clock_runs: ClockRuns, late_s: float, is_stale: bool
) -> None:
    await run_scenario(live, [datapoint(60), datapoint(60 + late_s)], clock_runs, 60 + late_s + 1)
    expected = [("dsp.a", "stale", 60 + STALE_AFTER), ("dsp.a", "fresh", 60 + late_s)]
    assert await freshness_changes(connection) == (expected if is_stale else [])


async def test_several_lost_datapoints_are_one_staleness_with_one_alarm(
    connection: Connection, live: Live, clock_runs: ClockRuns
) -> None:
    arrivals = [datapoint(minute * MINUTE) for minute in (1, 2, 3, 10, 11, 12)]
    await run_scenario(live, arrivals, clock_runs, 12 * MINUTE + 1)
    begun = 3 * MINUTE + STALE_AFTER
    assert await freshness_changes(connection) == [("dsp.a", "stale", begun), ("dsp.a", "fresh", 10 * MINUTE)]
    assert await transitions(connection) == [("alarm-opened", begun), ("alarm-resolved", 10 * MINUTE)]


async def test_a_producer_that_sends_its_backlog_after_a_restart_was_stale_nevertheless(
    connection: Connection, live: Live, clock_runs: ClockRuns
) -> None:
    """Its backlog is stored, and the newest of it is the value; at the time it had not arrived."""
    backlog = [datapoint(601 - n / 10, value=n, ts=60 + n * MINUTE) for n in (9, 5, 3)]
    await run_scenario(live, [datapoint(60), *backlog], clock_runs, 1000)
    assert await freshness_changes(connection) == [
        ("dsp.a", "stale", 60 + STALE_AFTER),
        ("dsp.a", "fresh", 600.1),
        ("dsp.a", "stale", 600.7 + STALE_AFTER),
    ]
    rows = await all_rows(connection, "select payload from tocsin.datapoint_calculated order by ts")
    assert rows[-1]["payload"]["value"] == 9
    row = await one_row(connection, "select value from tocsin.current_value where key = 'dsp.a'")
    assert row["value"] == 9
    assert len(await all_rows(connection, "select from tocsin.datapoint where key = 'dsp.a'")) == 4


@pytest.mark.parametrize("skew_s", [-HOUR, HOUR])
async def test_a_producer_with_a_wrong_clock_is_neither_always_stale_nor_never(
    connection: Connection, live: Live, clock_runs: ClockRuns, skew_s: float
) -> None:
    arrivals = [datapoint(n * MINUTE, ts=n * MINUTE + skew_s) for n in range(1, 6)]
    await run_scenario(live, arrivals, clock_runs, 5 * MINUTE + STALE_AFTER - 1)
    assert await freshness_changes(connection) == []
    await run_scenario(live, [datapoint(10 * MINUTE, ts=10 * MINUTE + skew_s)], clock_runs, 10 * MINUTE + 1)
    expected = [("dsp.a", "stale", 5 * MINUTE + STALE_AFTER), ("dsp.a", "fresh", 10 * MINUTE)]
    assert await freshness_changes(connection) == expected


async def test_a_datapoint_from_the_future_keeps_its_value_and_becomes_stale_in_time(
    connection: Connection, live: Live, clock_runs: ClockRuns
) -> None:
    ahead = datapoint(60, value=99, ts=60 + HOUR)
    await run_scenario(live, [ahead, datapoint(120, value=1)], clock_runs, 120 + STALE_AFTER + 1)
    row = await one_row(connection, "select value from tocsin.current_value where key = 'dsp.a'")
    assert row["value"] == 99, "the newest ts"
    assert await freshness_changes(connection) == [("dsp.a", "stale", 120 + STALE_AFTER)]


async def test_an_hour_in_which_nothing_was_read_makes_no_series_stale(
    connection: Connection, live: Live, clock_runs: ClockRuns
) -> None:
    """The workers were down, the clock was not.

    One series had really stopped, ten minutes into it.
    """
    await live.receive([datapoint(60), datapoint(60, owner="plant-8")])
    if clock_runs != "never":
        for minute in range(2, 60, 5):
            await live.run_clock(minute * MINUTE)
    assert await freshness_changes(connection) == []
    waiting = [datapoint(n * MINUTE) for n in range(2, 61)]
    waiting += [datapoint(n * MINUTE + 1, owner="plant-8") for n in range(2, 11)]
    waiting.sort(key=lambda arrival: arrival.at)
    await run_scenario(live, waiting, clock_runs, HOUR + 1)
    stopped = 10 * MINUTE + 1 + STALE_AFTER
    assert await freshness_changes(connection) == [("dsp.a", "stale", stopped)]
    assert await transitions(connection) == [("alarm-opened", stopped)]
    (row,) = await all_rows(connection, "select owner from tocsin.alarm")
    assert row["owner"] == "plant-8"
    await run_scenario(live, [datapoint(HOUR + 30, owner="plant-8")], clock_runs, HOUR + 31)
    assert await transitions(connection) == [("alarm-opened", stopped), ("alarm-resolved", HOUR + 30)]

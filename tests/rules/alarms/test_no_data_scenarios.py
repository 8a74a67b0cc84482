"""What producers and outages do in earnest, in virtual time: silence is said once, at its deadline, and only if it was.

Each scenario is lived through with a clock that looks after every arrival, with one that looks once in the end, and
with none and everything read in one batch: the freshness_changes are the same.
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

Looks = str


@pytest.fixture(params=["after every arrival", "in the end", "never"])
def looks(request: pytest.FixtureRequest) -> Looks:
    return str(request.param)


@pytest.fixture
async def live(connection: Connection, sessions: Sessions) -> Live:
    found = Live(connection, await sessions("clock"))
    await found.begin()
    await put(connection, WATCHED)
    return found


def datapoint(
    seconds: float, value: float = 1.0, *, key: str = "dsp.a", owner: str = "plant-7", ts: float | None = None
) -> Arrival:
    sent = seconds if ts is None else ts
    return Arrival(at(seconds), int(seconds * 1000), owner, key, value, at(sent), {})


async def live_through(live: Live, arrivals: Sequence[Arrival], looks: Looks, until: float) -> None:
    """Everything that had arrived by `until` has been read by then."""
    if looks == "never":
        # Without a clock it is the next arrival of the owner that finds a silence.
        await live.receive([*arrivals, *(datapoint(until, key="other", owner=owner) for owner in OWNERS)])
        return
    for one in arrivals:
        await live.receive([one])
        if looks == "after every arrival":
            await live.run_clock((one.at - at(0)).total_seconds())
    await live.read_until(at(until))
    await live.run_clock(until)
    for owner in OWNERS:
        await live.receive_staleness(until, owner)


async def alarm_edges(connection: Connection) -> list[tuple[str, float]]:
    return [(edge, seconds) for edge, seconds in await event_times(connection) if edge.startswith("alarm-")]


async def test_a_cadence_that_jitters_is_no_silence(connection: Connection, live: Live, looks: Looks) -> None:
    chance = random.Random(7)
    arrivals = [datapoint(number * MINUTE + chance.uniform(0, 89)) for number in range(1, 40)]
    arrivals.sort(key=lambda one: one.at)
    await live_through(live, arrivals, looks, 40 * MINUTE)
    assert await freshness_changes(connection) == []
    assert await alarm_edges(connection) == []


@pytest.mark.parametrize(("late_s", "is_silence"), [(149.999, False), (150.0, True), (151.0, True)])
async def test_one_late_datapoint_is_a_silence_from_the_deadline_on(
    connection: Connection, live: Live, looks: Looks, late_s: float, is_silence: bool
) -> None:
    await live_through(live, [datapoint(60), datapoint(60 + late_s)], looks, 60 + late_s + 1)
    said = [("dsp.a", "stale", 60 + STALE_AFTER), ("dsp.a", "fresh", 60 + late_s)]
    assert await freshness_changes(connection) == (said if is_silence else [])


async def test_a_burst_that_was_lost_is_one_silence_with_one_alarm(
    connection: Connection, live: Live, looks: Looks
) -> None:
    arrivals = [datapoint(minute * MINUTE) for minute in (1, 2, 3, 10, 11, 12)]
    await live_through(live, arrivals, looks, 12 * MINUTE + 1)
    begun = 3 * MINUTE + STALE_AFTER
    assert await freshness_changes(connection) == [("dsp.a", "stale", begun), ("dsp.a", "fresh", 10 * MINUTE)]
    assert await alarm_edges(connection) == [("alarm-opened", begun), ("alarm-resolved", 10 * MINUTE)]


async def test_a_producer_that_restarts_and_sends_what_it_had_kept_was_silent_none_the_less(
    connection: Connection, live: Live, looks: Looks
) -> None:
    """What it measured meanwhile is stored, and the newest of it is the value; nobody had it at the time."""
    kept = [datapoint(601 - n / 10, value=n, ts=60 + n * MINUTE) for n in (9, 5, 3)]
    await live_through(live, [datapoint(60), *kept], looks, 1000)
    assert await freshness_changes(connection) == [
        ("dsp.a", "stale", 60 + STALE_AFTER),
        ("dsp.a", "fresh", 600.1),
        ("dsp.a", "stale", 600.7 + STALE_AFTER),
    ]
    said = await all_rows(connection, "select payload from tocsin.datapoint_calculated order by ts")
    assert said[-1]["payload"]["value"] == 9
    row = await one_row(connection, "select value from tocsin.current_value where key = 'dsp.a'")
    assert row["value"] == 9
    assert len(await all_rows(connection, "select from tocsin.datapoint where key = 'dsp.a'")) == 4


@pytest.mark.parametrize("skew_s", [-HOUR, HOUR])
async def test_a_producer_with_a_wrong_clock_is_neither_always_stale_nor_never(
    connection: Connection, live: Live, looks: Looks, skew_s: float
) -> None:
    arrivals = [datapoint(n * MINUTE, ts=n * MINUTE + skew_s) for n in range(1, 6)]
    await live_through(live, arrivals, looks, 5 * MINUTE + STALE_AFTER - 1)
    assert await freshness_changes(connection) == []
    await live_through(live, [datapoint(10 * MINUTE, ts=10 * MINUTE + skew_s)], looks, 10 * MINUTE + 1)
    said = [("dsp.a", "stale", 5 * MINUTE + STALE_AFTER), ("dsp.a", "fresh", 10 * MINUTE)]
    assert await freshness_changes(connection) == said


async def test_a_datapoint_from_the_future_keeps_its_value_and_nothing_alive(
    connection: Connection, live: Live, looks: Looks
) -> None:
    ahead = datapoint(60, value=99, ts=60 + HOUR)
    await live_through(live, [ahead, datapoint(120, value=1)], looks, 120 + STALE_AFTER + 1)
    row = await one_row(connection, "select value from tocsin.current_value where key = 'dsp.a'")
    assert row["value"] == 99, "the newest ts"
    assert await freshness_changes(connection) == [("dsp.a", "stale", 120 + STALE_AFTER)]


async def test_an_hour_in_which_nothing_was_read_makes_nobody_silent(
    connection: Connection, live: Live, looks: Looks
) -> None:
    """The workers were down and the clock was not. One series had really stopped, ten minutes into it."""
    await live.receive([datapoint(60), datapoint(60, owner="plant-8")])
    if looks != "never":
        for minute in range(2, 60, 5):
            await live.run_clock(minute * MINUTE)
    assert await freshness_changes(connection) == []
    waiting = [datapoint(n * MINUTE) for n in range(2, 61)]
    waiting += [datapoint(n * MINUTE + 1, owner="plant-8") for n in range(2, 11)]
    waiting.sort(key=lambda one: one.at)
    await live_through(live, waiting, looks, HOUR + 1)
    stopped = 10 * MINUTE + 1 + STALE_AFTER
    assert await freshness_changes(connection) == [("dsp.a", "stale", stopped)]
    assert await alarm_edges(connection) == [("alarm-opened", stopped)]
    (row,) = await all_rows(connection, "select owner from tocsin.alarm")
    assert row["owner"] == "plant-8"
    await live_through(live, [datapoint(HOUR + 30, owner="plant-8")], looks, HOUR + 31)
    assert await alarm_edges(connection) == [("alarm-opened", stopped), ("alarm-resolved", HOUR + 30)]

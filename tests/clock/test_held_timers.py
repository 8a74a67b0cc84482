"""A pipeline that is behind is said once, when it begins and when it ends, and shown while it lasts."""

from __future__ import annotations

import pytest

from clock.held_timers import read_held_timers, record_pipeline_state
from clock.term import Term, begin_term
from tests.clock.alarms import hold_alarm, read_until, sustain
from tests.clock.clock_setup import at, drain
from tests.clock.series import put_series, watch_series
from tests.records import events
from timers.working_set import list_timers
from tocsin.core.db import Connection
from tocsin.core.errors import Deposed


@pytest.fixture
async def term(connection: Connection) -> Term:
    await now(connection, 0)
    await read_until(connection, at(0))
    return await begin_term(connection, "test")


async def now(connection: Connection, seconds: float) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(seconds).isoformat(),))


async def said(connection: Connection) -> list[str]:
    return [event["type"] for event in await events(connection)]


async def put_watched(connection: Connection, count: int) -> None:
    for number in range(count):
        await put_series(connection, at(0), owner=f"plant-{number}")
        await watch_series(connection, at(10), owner=f"plant-{number}")


async def test_one_event_for_all_series_when_it_begins_and_one_when_it_ends(
    connection: Connection, term: Term
) -> None:
    await put_watched(connection, 3)
    await hold_alarm(connection)
    await sustain(connection, "open", at(11), {})
    for seconds in (9, 12, 16, 20):
        await now(connection, seconds)
        await drain(term, at(seconds))
        await record_pipeline_state(connection, term.epoch)
    (event,) = await events(connection)
    assert (event["type"], event["origin"], event["ts"]) == ("pipeline-behind", "derived", at(16))
    assert event["payload"] == {
        "timers": 4,
        "at_least": False,
        "since": at(10).isoformat(),
        "partitions": [{"lane": "data", "partition": 0, "timers": 4, "since": at(10).isoformat()}],
    }
    await read_until(connection, at(20))
    for _ in range(2):
        await drain(term, at(20))
        await record_pipeline_state(connection, term.epoch)
    assert (await said(connection)).count("pipeline-caught-up") == 1
    assert (await said(connection)).count("pipeline-behind") == 1
    await put_series(connection, at(21), owner="late")
    await watch_series(connection, at(31), owner="late")
    await now(connection, 40)
    await record_pipeline_state(connection, term.epoch)
    assert (await said(connection)).count("pipeline-behind") == 2


async def test_a_moment_is_not_worth_an_event(connection: Connection, term: Term) -> None:
    await put_watched(connection, 1)
    await now(connection, 14.9)
    await record_pipeline_state(connection, term.epoch)
    assert await said(connection) == []
    assert [(one.lane, one.partition, one.timers) for one in await read_held_timers(connection)] == [
        ("data", 0, 1)
    ]


async def test_a_series_that_arrived_meanwhile_is_not_held(connection: Connection, term: Term) -> None:
    await put_watched(connection, 1)
    await put_series(connection, at(8), owner="plant-0")
    await now(connection, 17)
    assert await read_held_timers(connection) == []


async def test_a_new_leader_goes_on_with_the_episode_and_a_deposed_one_says_nothing(
    connection: Connection, term: Term
) -> None:
    await put_watched(connection, 1)
    await now(connection, 20)
    await record_pipeline_state(connection, term.epoch)
    other = await begin_term(connection, "other")
    await record_pipeline_state(connection, other.epoch)
    assert await said(connection) == ["pipeline-behind"]
    await read_until(connection, at(20))
    with pytest.raises(Deposed):
        await record_pipeline_state(connection, term.epoch)
    assert await said(connection) == ["pipeline-behind"]
    await record_pipeline_state(connection, other.epoch)
    assert await said(connection) == ["pipeline-behind", "pipeline-caught-up"]


async def test_a_held_timer_says_why_it_waits(connection: Connection, term: Term) -> None:
    await put_watched(connection, 1)
    await hold_alarm(connection)
    await sustain(connection, "open", at(11), {})
    assert [row["cause"] for row in await list_timers(connection)] == [None, None]
    await now(connection, 12)
    assert [row["cause"] for row in await list_timers(connection)] == ["pipeline-behind"] * 2
    await read_until(connection, at(11))
    assert [row["cause"] for row in await list_timers(connection)] == [None, None]

"""Held timers are recorded by one event when an episode begins and by one when it ends."""

from __future__ import annotations

import pytest

from clock.held_timers import read_held_timers, record_pipeline_state
from clock.term import Term, begin_term
from tests.clock.alarms import arm_sustain, hold_alarm, read_until
from tests.clock.clock_setup import at, drain
from tests.clock.series import put_series, watch_series
from tests.records import events
from timers.working_set import list_timers
from tocsin.core.db import Connection
from tocsin.core.errors import Deposed
from tocsin.core.instant import instant_text


@pytest.fixture
async def term(connection: Connection) -> Term:
    await set_virtual_now(connection, 0)
    await read_until(connection, at(0))
    return await begin_term(connection, "test")


async def set_virtual_now(connection: Connection, seconds: float) -> None:
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(seconds).isoformat(),))


async def event_types(connection: Connection) -> list[str]:
    return [event["type"] for event in await events(connection)]


async def put_watched_series(connection: Connection, count: int) -> None:
    for number in range(count):
        await put_series(connection, at(0), owner=f"plant-{number}")
        await watch_series(connection, at(10), owner=f"plant-{number}")


async def test_an_episode_begins_with_one_event_for_all_series_and_ends_with_one(
    connection: Connection, term: Term
) -> None:
    await put_watched_series(connection, 3)
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(11), {})
    for seconds in (9, 12, 16, 20):
        await set_virtual_now(connection, seconds)
        await drain(term, at(seconds))
        await record_pipeline_state(connection, term.epoch)
    (event,) = await events(connection)
    assert (event["type"], event["origin"], event["ts"]) == ("pipeline-behind", "derived", at(16))
    assert event["payload"] == {
        "timers": 4,
        "at_least": False,
        "since": instant_text(at(10)),
        "partitions": [{"lane": "data", "partition": 0, "timers": 4, "since": instant_text(at(10))}],
    }
    await read_until(connection, at(20))
    for _ in range(2):
        await drain(term, at(20))
        await record_pipeline_state(connection, term.epoch)
    assert (await event_types(connection)).count("pipeline-caught-up") == 1
    assert (await event_types(connection)).count("pipeline-behind") == 1
    await put_series(connection, at(21), owner="late")
    await watch_series(connection, at(31), owner="late")
    await set_virtual_now(connection, 40)
    await record_pipeline_state(connection, term.epoch)
    assert (await event_types(connection)).count("pipeline-behind") == 2


async def test_timers_held_for_less_than_five_seconds_are_no_event(
    connection: Connection, term: Term
) -> None:
    await put_watched_series(connection, 1)
    await set_virtual_now(connection, 14.9)
    await record_pipeline_state(connection, term.epoch)
    assert await event_types(connection) == []
    assert [(held.lane, held.partition, held.timers) for held in await read_held_timers(connection)] == [
        ("data", 0, 1)
    ]


async def test_a_watchdog_whose_series_has_a_newer_datapoint_is_not_held(
    connection: Connection, term: Term
) -> None:
    await put_watched_series(connection, 1)
    await put_series(connection, at(8), owner="plant-0")
    await set_virtual_now(connection, 17)
    assert await read_held_timers(connection) == []


async def test_a_new_leader_continues_the_episode_and_a_deposed_one_records_nothing(
    connection: Connection, term: Term
) -> None:
    await put_watched_series(connection, 1)
    await set_virtual_now(connection, 20)
    await record_pipeline_state(connection, term.epoch)
    other = await begin_term(connection, "other")
    await record_pipeline_state(connection, other.epoch)
    assert await event_types(connection) == ["pipeline-behind"]
    await read_until(connection, at(20))
    with pytest.raises(Deposed):
        await record_pipeline_state(connection, term.epoch)
    assert await event_types(connection) == ["pipeline-behind"]
    await record_pipeline_state(connection, other.epoch)
    assert await event_types(connection) == ["pipeline-behind", "pipeline-caught-up"]


async def test_a_held_timer_is_listed_with_its_cause(connection: Connection, term: Term) -> None:
    await put_watched_series(connection, 1)
    await hold_alarm(connection)
    await arm_sustain(connection, "open", at(11), {})
    assert [row["cause"] for row in await list_timers(connection)] == [None, None]
    await set_virtual_now(connection, 12)
    assert [row["cause"] for row in await list_timers(connection)] == ["pipeline-behind"] * 2
    await read_until(connection, at(11.000001))
    assert [row["cause"] for row in await list_timers(connection)] == [None, None]

"""The effect of an apply on series: watchdogs follow their types, and no staleness is lost, invented or moved."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.apply import ApplyResult
from rules.engine import Arrival, Open
from tests.clock.clock_setup import at
from tests.rules.alarms.alarm_batches import alarms, arrival, event_times
from tests.rules.alarms.series import Live, freshness_changes
from tests.rules.apply.apply_setup import ACTOR, apply_only
from tests.rules.apply.watched_series import OTHER, QUIET, watched
from tests.rules.engine.scenario import T0, Scenario
from tests.rules.lanes.arrivals import assert_nothing_is_orphaned
from tests.sessions import Sessions
from tests.sql import all_rows
from tocsin.core.db import Connection


@pytest.fixture
async def live(connection: Connection, sessions: Sessions) -> Live:
    live = Live(connection, await sessions("clock"))
    await live.begin()
    return live


async def only(connection: Connection, text: str, seconds: float = 0) -> ApplyResult:
    applied = await apply_only(connection, text, replace(ACTOR, now=at(seconds)))
    await assert_nothing_is_orphaned(connection)
    return applied


async def watchdogs(connection: Connection) -> list[tuple[str, float]]:
    rows = await all_rows(
        connection, "select key, nominal_at from tocsin.timer where kind = 'watchdog' order by ref, key"
    )
    return [(row["key"], (row["nominal_at"] - at(0)).total_seconds()) for row in rows]


def dsp(seconds: float, value: float = 1, key: str = "dsp.a", owner: str = "plant-7") -> Arrival:
    return arrival(seconds, value, owner=owner, key=key)


async def test_a_new_type_watches_the_existing_series(connection: Connection, live: Live) -> None:
    await live.receive([dsp(1), dsp(2, key="dsp.b"), dsp(3, key="other")])
    await only(connection, watched("1m"))
    assert await watchdogs(connection) == [("dsp.a", 151), ("dsp.b", 152)]


async def test_a_changed_tolerance_re_arms_in_both_directions(connection: Connection, live: Live) -> None:
    await only(connection, watched())
    await live.receive([dsp(1)])
    await only(connection, watched("1m"))
    assert await watchdogs(connection) == [("dsp.a", 151)]
    await only(connection, watched("2s"))
    assert await watchdogs(connection) == [("dsp.a", 6)]
    await live.receive([dsp(7)])
    assert await freshness_changes(connection) == [("dsp.a", "stale", 6), ("dsp.a", "fresh", 7)]


async def test_a_shorter_tolerance_counts_from_the_change_and_never_in_the_past(
    connection: Connection, live: Live
) -> None:
    """The clock handles it for one owner, an arrival for the other."""
    await only(connection, watched("1m"))
    await live.receive([dsp(1), dsp(1, owner="plant-8")])
    await live.read_until(at(20))
    await only(connection, watched("4s"))
    assert await watchdogs(connection) == [("dsp.a", 20), ("dsp.a", 20)]
    await live.receive([dsp(30)])
    await live.run_clock(30)
    rows = await all_rows(
        connection, "select owner, ts, payload from tocsin.datapoint_calculated where kind = 'stale'"
    )
    found = sorted((row["owner"], row["ts"], row["payload"]["age_s"]) for row in rows)
    assert found == [("plant-7", at(20), 19), ("plant-8", at(20), 19)]


async def test_a_passed_deadline_counts_with_the_old_tolerance(connection: Connection, live: Live) -> None:
    """The clock is late: the deadline is before the watermark, so the apply handles it."""
    await only(connection, watched("4s") + QUIET)
    await live.receive([dsp(1)])
    await live.read_until(at(20))
    await only(connection, watched("1m") + QUIET)
    assert await freshness_changes(connection) == [("dsp.a", "stale", 11)]
    assert await watchdogs(connection) == []
    assert [(row["state"], row["opened_at"]) for row in await alarms(connection)] == [("open", at(11))]


async def test_a_staleness_that_was_not_handled_yet_is_handled_by_the_old_rules(
    connection: Connection, live: Live
) -> None:
    await only(connection, watched() + QUIET)
    await live.receive([dsp(1)])
    await live.read_until(at(20))
    await live.run_clock(20)
    await only(connection, watched() + OTHER)
    assert await event_times(connection) == [
        ("rules-applied", 0),
        ("alarm-opened", 11),
        ("alarm-resolved", 11),
        ("rules-applied", 0),
    ]


async def test_a_removed_type_disarms_and_a_stale_series_stays_stale_until_data_arrives(
    connection: Connection, live: Live
) -> None:
    await only(connection, watched() + OTHER)
    await live.receive([dsp(1), dsp(15, key="dsp.b")])
    await only(connection, OTHER)
    assert await watchdogs(connection) == []
    rows = await all_rows(connection, "select freshness from tocsin.current_value order by key")
    assert [row["freshness"] for row in rows] == ["stale", "fresh"]
    await live.receive([dsp(100), dsp(100, key="dsp.b")])
    assert await freshness_changes(connection) == [("dsp.a", "stale", 11), ("dsp.a", "fresh", 100)]
    assert await watchdogs(connection) == []


async def test_the_more_specific_type_applies_while_it_exists(connection: Connection, live: Live) -> None:
    general = watched("4s")
    await only(connection, general)
    await live.receive([dsp(1), dsp(1, key="dsp.b")])
    await only(connection, general + watched("1m", key="dsp.b", name="slow"))
    assert await watchdogs(connection) == [("dsp.a", 11), ("dsp.b", 151)]
    await only(connection, general)
    assert await watchdogs(connection) == [("dsp.a", 11), ("dsp.b", 11)]


async def test_a_rule_that_is_added_over_a_stale_series_opens_from_the_change_on(
    connection: Connection, live: Live
) -> None:
    await only(connection, watched() + OTHER)
    await live.receive([dsp(1)])
    await live.read_until(at(60))
    await live.run_clock(60)
    await only(connection, watched() + OTHER + QUIET + "  for: 10s\n")
    assert [(row["state"], row["since"]) for row in await alarms(connection)] == [("pending", at(60))]
    await live.read_until(at(100))
    await live.run_clock(100)
    (row,) = await alarms(connection)
    assert (row["state"], row["opened_at"]) == ("open", at(70))
    await live.receive([dsp(110)])
    assert [row["state"] for row in await alarms(connection)] == ["resolved"]


async def test_an_alarm_that_a_new_rule_opens_at_once_is_seen_by_the_rules_of_the_same_apply(
    connection: Connection, live: Live
) -> None:
    await only(connection, watched() + OTHER)
    await live.receive([dsp(1)])
    await live.read_until(at(60))
    applied = await only(connection, watched() + OTHER + QUIET)
    (event,) = await all_rows(connection, "select seq, ts from tocsin.event where type = 'alarm-opened'")
    assert applied.seq is not None
    assert event["seq"] > applied.seq
    assert event["ts"] == at(60)
    rows = await all_rows(connection, "select type, seq from tocsin.event where type = 'rules-applied'")
    assert rows[-1]["seq"] == applied.seq


async def test_a_type_that_gets_on_stale_alarm_opens_alarms_for_series_that_are_stale_already(
    connection: Connection, live: Live
) -> None:
    await only(connection, watched())
    await live.receive([dsp(1)])
    await live.read_until(at(60))
    await only(connection, watched(extra="  on_stale: alarm\n"))
    assert [(row["event_rule"], row["state"]) for row in await alarms(connection)] == [("stale:load", "open")]
    await only(connection, watched(extra="  on_stale: alarm\n  unit: bar\n"))
    assert len(await alarms(connection)) == 1


TEXTS = [
    watched("4s") + QUIET,
    watched("8s") + QUIET,
    watched("2s") + QUIET + "  for: 3s\n",
    watched("4s", extra="  on_stale: alarm\n") + OTHER,
    OTHER,
    watched("4s", key="dsp.a")
    + "---\nevent_rule:\n  name: quiet\n  datapoint: dsp.*\n  below: 1\n  no_data: alarm\n",
]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 14), st.sampled_from(["dsp.a", "dsp.b"])),
        st.tuples(st.just("apply"), st.integers(0, 14), st.sampled_from(TEXTS)),
        st.tuples(st.sampled_from(["clock", "stream"]), st.just(0), st.just("")),
    ),
    min_size=2,
    max_size=9,
)
_examples = itertools.count(1)


@settings(max_examples=15)
@given(STEPS)
async def test_live_and_pure_agree_through_changes_of_rules(
    connection: Connection, live: Live, steps: list[tuple[str, int, str]]
) -> None:
    """Each example has its own owner and its own thousand seconds."""
    example = next(_examples)
    owner, began, now = f"plant-{example}", example * 1000.0, 0.0
    await connection.execute("delete from tocsin.current_value")
    await connection.execute("delete from tocsin.timer")
    await live.read_until(at(began))
    await only(connection, TEXTS[0])
    scenario = Scenario(TEXTS[0])
    for what, gap, text in [*steps, ("end", 100, "")]:
        now += gap
        scenario.wait_until(T0 + timedelta(seconds=now))
        if what == "send":
            scenario.send(1, key=text)
            await live.receive([dsp(began + now, 1, text, owner)])
            continue
        await live.read_until(at(began + now))
        if what == "apply":
            scenario.apply(text)
            await only(connection, text, began + now)
        for _ in range({"clock": 1, "end": 4}.get(what, 0)):
            await live.run_clock(began + now)
            if what == "end":
                await live.receive_staleness(began + now, owner)
        if what == "stream":
            await live.receive_staleness(began + now, owner)
    rows = await all_rows(
        connection,
        "select rule, type, ts from tocsin.event where alarm_id is not null and owner = %s",
        (owner,),
    )
    found = sorted((row["rule"], row["type"][6:], (row["ts"] - at(began)).total_seconds()) for row in rows)
    expected = sorted(
        (one.alarm.rule, "opened" if isinstance(one, Open) else "resolved", (one.at - T0).total_seconds())
        for one in scenario.transitions()
    )
    assert found == expected


async def test_a_rule_that_comes_back_during_one_staleness_opens_another_alarm(
    connection: Connection, live: Live
) -> None:
    """Nothing is read in between, so the staleness is evaluated as of the same instant each time."""
    await only(connection, watched())
    await live.receive([dsp(1), dsp(30, key="other")])
    for seconds in (40, 50):
        await only(connection, watched() + QUIET, seconds)
        await only(connection, watched(), seconds + 5)
    found = await all_rows(connection, "select id, since, state from tocsin.alarm")
    assert [(row["since"], row["state"]) for row in found] == [(at(30), "resolved")] * 2
    assert found[0]["id"] != found[1]["id"]

"""Health follows its members in the transaction that changed them, and is recorded once per change."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rules.applying import apply, preview
from rules.engine import Arrival, RuleState
from rules.health.listing import list_health
from rules.health.rollup import Open, Seen, Weights, condition, roll_up
from rules.loading import load_text
from tests.clock.beats import at
from tests.rules.alarms.judging import arrival
from tests.rules.alarms.series import Live
from tests.rules.applying import ACT
from tests.sessions import Sessions
from tests.sql import all_rows, one_row
from tocsin.core.db import Connection

TYPE = "---\ndatapoint_type:\n  name: load\n  key: dsp.*\n  interval: 4s\n"
HOT = "---\nevent_rule:\n  name: hot\n  datapoint: dsp.*\n  above: 65\n  severity: high\n"
WARM = "---\nevent_rule:\n  name: warm\n  datapoint: dsp.*\n  above: 40\n"
SYSTEM = """---
system:
  name: cooling
  members:
    - {owner: plant-7, key: dsp.a}
    - {owner: plant-7, key: dsp.b, required: false}
    - {owner: plant-8, type: load}
"""
RULES = TYPE + HOT + WARM + SYSTEM


@pytest.fixture
async def live(connection: Connection, sessions: Sessions) -> Live:
    found = Live(connection, await sessions("clock"))
    await found.begin()
    return found


def dsp(seconds: float, value: float = 1, key: str = "dsp.a", owner: str = "plant-7") -> Arrival:
    return arrival(seconds, value, owner=owner, key=key)


async def only(connection: Connection, text: str, seconds: float = 0) -> None:
    loaded = load_text(text, anchor=at(0))
    removed = (await preview(connection, loaded, at(seconds), prune=True)).plan.removed
    await apply(connection, loaded, replace(ACT, now=at(seconds)), removing=removed)


async def health(connection: Connection) -> tuple[str, str | None]:
    (row,) = await list_health(connection)
    return row["health"], row["reason"]


async def recorded(connection: Connection) -> list[tuple[float, Any, Any]]:
    rows = await all_rows(
        connection, "select * from tocsin.datapoint_calculated where verdict = 'health' order by seq"
    )
    assert {(row["owner"], row["key"]) for row in rows} <= {("cooling", "system.health")}
    return [
        ((row["ts"] - at(0)).total_seconds(), row["payload"]["health"], row["payload"]["reason"])
        for row in rows
    ]


async def test_a_system_that_was_never_heard_of_is_gray_and_says_so_once(
    connection: Connection, live: Live
) -> None:
    await only(connection, RULES)
    await only(connection, RULES)
    assert await health(connection) == ("unknown", "no-data")
    assert len(await recorded(connection)) == 1


async def test_the_first_datapoint_of_a_member_makes_it_known(connection: Connection, live: Live) -> None:
    await only(connection, RULES)
    await live.take([dsp(1), dsp(2)])
    assert (await recorded(connection))[1:] == [(2, "ok", None)]
    await live.take([dsp(3, key="dsp.z", owner="plant-8")])
    (row,) = await list_health(connection)
    assert [(one["key"], one["condition"]) for one in row["ill"]] == [("dsp.b", "no-data")]


async def test_an_alarm_of_a_required_member_is_an_outage_and_of_an_optional_one_degrades(
    connection: Connection, live: Live
) -> None:
    await only(connection, RULES)
    await live.take([dsp(1), dsp(1, key="dsp.b")])
    await live.take([dsp(2, 70, key="dsp.b")])
    assert await health(connection) == ("degraded", None)
    await live.take([dsp(3, 70)])
    assert await health(connection) == ("outage", None)
    await live.take([dsp(4, 50)])
    assert await health(connection) == ("degraded", None)
    await live.take([dsp(5), dsp(5, key="dsp.b")])
    assert await health(connection) == ("ok", None)
    assert [value for _, value, _ in await recorded(connection)][1:] == [
        "ok",
        "degraded",
        "outage",
        "degraded",
        "ok",
    ]


async def test_the_clocks_own_verdicts_roll_up_in_its_transaction(connection: Connection, live: Live) -> None:
    await only(connection, TYPE + HOT + "  for: 5s\n" + SYSTEM)
    await live.take([dsp(1, 70)])
    await live.read_until(at(30))
    await live.run_clock(6)
    assert await health(connection) == ("outage", None)
    await live.take([dsp(31, 1)])
    assert await health(connection) == ("ok", None)
    await live.read_until(at(60))
    await live.run_clock(60)
    assert await health(connection) == ("unknown", "stale")
    assert (await recorded(connection))[1:] == [
        (1, "ok", None),
        (6, "outage", None),
        (31, "ok", None),
        (41, "unknown", "stale"),
    ]
    rows = await all_rows(
        connection,
        "select verdict, seq from tocsin.datapoint_calculated where ts = %s order by seq",
        (at(41),),
    )
    commit = await one_row(connection, "select * from tocsin.log_commit order by last_seq desc limit 1")
    assert [row["verdict"] for row in rows] == ["stale", "health"]
    assert [row["seq"] for row in rows] == [commit["first_seq"], commit["last_seq"]]


async def test_a_member_that_nothing_judges_is_uncovered(connection: Connection, live: Live) -> None:
    await only(connection, "system:\n  name: cooling\n  members:\n    - {owner: plant-7, key: other}\n")
    await live.take([dsp(1, key="other")])
    assert await health(connection) == ("unknown", "uncovered")
    rule = "---\nevent_rule:\n  name: o\n  datapoint: other\n  above: 5\n"
    await only(
        connection, "system:\n  name: cooling\n  members:\n    - {owner: plant-7, key: other}\n" + rule
    )
    assert await health(connection) == ("ok", None)


async def test_a_system_that_is_removed_says_a_last_word(connection: Connection, live: Live) -> None:
    await only(connection, RULES)
    await live.take([dsp(1, 70)])
    await only(connection, TYPE + HOT + WARM, 9)
    assert await list_health(connection) == []
    assert (await recorded(connection))[-1] == (9, "unknown", "uncovered")
    assert await all_rows(connection, "select * from tocsin.system_member") == []


async def test_members_follow_their_document(connection: Connection, live: Live) -> None:
    await only(connection, RULES)
    await live.take([dsp(1), dsp(1, 70, owner="plant-8", key="dsp.y")])
    assert await health(connection) == ("outage", None)
    await only(connection, TYPE + HOT + WARM + SYSTEM.replace("    - {owner: plant-8, type: load}\n", ""), 2)
    assert await health(connection) == ("ok", None)


STEP = st.one_of(
    st.tuples(
        st.integers(0, 14),
        st.sampled_from([1.0, 50.0, 70.0]),
        st.sampled_from(
            [("plant-7", "dsp.a"), ("plant-7", "dsp.b"), ("plant-8", "dsp.c"), ("plant-8", "other")]
        ),
    ),
    st.tuples(st.integers(0, 14), st.none(), st.sampled_from(["clock", "apply"])),
)
_examples = itertools.count(1)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEP, min_size=1, max_size=10))
async def test_what_is_stored_is_what_the_pure_functions_say(
    connection: Connection, live: Live, steps: list[tuple[int, float | None, Any]]
) -> None:
    now = next(_examples) * 1000.0
    for table in ("current_value", "timer", "alarm", "rule_state", "system_health"):
        await connection.execute(f"delete from tocsin.{table}".encode())
    await only(connection, TYPE, now)
    await only(connection, RULES, now)
    for gap, value, what in steps:
        now += gap
        if value is not None:
            await live.take([dsp(now, value, what[1], what[0])])
        else:
            await live.read_until(at(now))
            if what == "clock":
                await live.run_clock(now)
            else:
                await only(connection, RULES + f"  description: at {now}\n", now)
        await assert_pure(connection)


async def assert_pure(connection: Connection) -> None:
    members = await all_rows(
        connection,
        "select m.*, c.owner as seen, c.stale_since from tocsin.system_member m"
        " left join tocsin.current_value c on c.owner = m.owner and c.key = m.key",
    )
    alarms = await all_rows(
        connection,
        "select a.*, s.state from tocsin.alarm a join tocsin.rule_state s on s.alarm_id = a.id where a.state = 'open'",
    )
    pure = []
    for member in members:
        held = [
            Open(one["severity"], one["since"])
            for one in alarms
            if one["owner"] == member["owner"] and member["key"] in RuleState.from_json(one["state"]).holding
        ]
        seen = None if member["seen"] is None else Seen(member["stale_since"])
        expected = condition(seen, held, member["covered"], Weights.among(6))
        assert member["condition"] == expected, member
        is_placeholder = not member["key"] and any(
            one["key"] and one["type"] == member["type"] and one["owner"] == member["owner"]
            for one in members
        )
        if not is_placeholder:
            pure.append((expected, member["required"]))
    assert await health(connection) == roll_up(pure)

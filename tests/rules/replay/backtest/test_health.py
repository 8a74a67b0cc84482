"""Health in a backtest: candidate rules give the health of a simulation, and mismatches are found."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.documents.load import LoadedDocuments, load_text
from rules.documents.members import Members
from rules.replay.backtest.health import replay_order
from rules.replay.backtest.parallel import backtest
from rules.replay.backtest.recording import recording
from rules.replay.backtest.recording.database import open_database_recording
from rules.replay.backtest.recording.recording import FileRecording, write_recording
from rules.replay.backtest.result import BacktestResult
from schemas.documents.system import SystemDocument
from tests.clock.clock_setup import at
from tests.rules.alarms.alarm_batches import virtual_now
from tests.rules.replay.backtest.recorded_systems import Systems
from tests.rules.replay.backtest.simulated_recording import START, replay, simulate
from tests.sessions import Sessions
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

RULES = """
datapoint_type: {name: load, key: dsp.*, interval: 4100ms}
---
event_rule: {name: hot, datapoint: dsp.*, fire: value > 65.0, clear: value < 60.0, for: 3030ms, severity: high}
---
event_rule: {name: quiet, datapoint: dsp.*, absent: true}
---
event_rule: {name: ill, datapoint: system.health, fire: value != "ok", for: 1010ms, severity: high}
---
system:
  name: hall
  members:
    - {owner: plant-1, key: dsp.a}
    - {owner: plant-2, type: load, required: false}
---
system:
  name: site
  members:
    - {owner: plant-1, type: load}
    - {owner: plant-2, key: dsp.a, required: false}
"""
STEPS = st.lists(
    st.tuples(
        st.integers(1, 9),
        st.sampled_from(["plant-1", "plant-2"]),
        st.sampled_from([50.0, 62.0, 66.0, 80.0]),
    ),
    min_size=1,
    max_size=25,
)


@cache
def loaded() -> LoadedDocuments:
    return load_text(RULES, anchor=START)


@settings(max_examples=60)
@given(STEPS)
def test_rules_over_health_give_the_same_alarms_in_a_backtest_and_in_a_simulation(
    steps: list[tuple[int, str, float | str]],
) -> None:
    """The health of the hall is a member of the site."""
    simulated = simulate(loaded(), steps)
    result = replay(loaded(), simulated)
    assert {
        (one.rule, one.owner, one.kind, one.at) for one in result.replayed_transitions
    } == simulated.alarms()
    assert any(one.owner == "hall" for one in result.replayed_transitions)


HOT = "---\nevent_rule:\n  name: hot\n  datapoint: dsp.*\n  above: 65\n  severity: high\n"
ILL = '---\nevent_rule:\n  name: ill\n  datapoint: system.health\n  fire: value == "outage"\n'
SYSTEM = "---\nsystem:\n  name: hall\n  members:\n    - {owner: near, key: dsp.a}\n    - {owner: x-far, key: dsp.a}\n"


@pytest.fixture
async def live_systems(connection: Connection, sessions: Sessions) -> Systems:
    """An instance with two outages, the first in the partition that is read last."""
    instance = Systems(connection, await sessions("clock"))
    await instance.begin()
    instance.owners, instance.now = ["near", "x-far"], [1.0, 1.0]
    await instance.apply_only(HOT + ILL + SYSTEM, 0)
    for far in (False, True):
        await instance.step("send", (far, [(1, 50.0, "a"), (10 - 5 * far, 71.0, "a"), (1, 50.0, "a")]))
    await instance.settle()
    return instance


async def replayed(settings: Settings, until: float) -> BacktestResult:
    async with open_database_recording(settings, at(0), at(until)) as source:
        return await backtest(source, await source.header())


async def test_health_is_compared_alike_from_a_file_and_in_any_number_of_processes(
    settings: Settings, live_systems: Systems, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "_SMALLEST_GROUP", 0)
    until = live_systems.now[0]
    alone = await replayed(settings, until)
    assert alone.mismatches == []
    assert alone.health_count == 6
    assert [transition.kind for transition in alone.replayed_transitions if transition.rule == "ill"] == [
        "opened",
        "resolved",
    ] * 2
    source = FileRecording(tmp_path / "recording.ndjson.gz")
    async with open_database_recording(settings, at(0), at(until)) as database:
        await write_recording(database, source.path)
    header = await source.header()
    assert await backtest(source, header) == alone
    assert await backtest(source, header, jobs=2) == alone
    candidate = [one for one in header.versions if one.name != "hot"]
    others = await backtest(source, header, candidate)
    assert not any(transition.rule == "ill" for transition in others.replayed_transitions)
    assert [transition.rule for transition in others.recorded_transitions] == [
        transition.rule for transition in alone.recorded_transitions
    ]
    same = await backtest(source, header, header.versions, jobs=2)
    assert same.replayed_transitions == same.recorded_transitions, (
        "unchanged health arrives when it was recorded to arrive"
    )


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (
            "update tocsin.datapoint_calculated set ts = ts - interval '1 s' where payload @> %s",
            "no such health",
        ),
        ("update tocsin.datapoint_calculated set owner = 'other' where payload @> %s", "it was not recorded"),
        (
            'update tocsin.datapoint_calculated set payload = payload || \'{"health": "ok"}\' where payload @> %s',
            "another health",
        ),
    ],
)
async def test_health_that_was_recorded_otherwise_is_a_mismatch(
    settings: Settings, connection: Connection, live_systems: Systems, damage: str, cause: str
) -> None:
    await connection.execute(damage.encode(), ('{"health": "outage"}',))
    result = await replayed(settings, live_systems.now[0])
    assert result.mismatches
    assert any(cause in one.cause for one in result.mismatches), result.mismatches
    assert {one.what for one in result.mismatches} == {"system.health"}


async def test_a_window_that_begins_in_the_middle_knows_the_state_of_the_members(
    settings: Settings, connection: Connection, sessions: Sessions
) -> None:
    """Hours before, one member had opened an alarm and another one had become stale."""
    day = 86_400.0
    live = Systems(connection, await sessions("clock"))
    await live.begin()
    live.owners, live.now = ["near", "x-far"], [1.0, 1.0]
    watched = "---\ndatapoint_type:\n  name: load\n  key: dsp.b\n  interval: 4s\n"
    member = "    - {owner: near, type: load, required: false}\n"
    await live.apply_only(watched + HOT + ILL + SYSTEM + member, 0)
    await live.step("send", (False, [(1, 71.0, "a"), (1, 50.0, "b")]))
    await live.step("send", (True, [(1, 50.0, "a")]))
    await live.settle()
    live.now = [day + 60, day + 60]
    for session in (live.worker, live._clock):
        await virtual_now(session, at(day))
    await live.step("send", (False, [(1, 50.0, "a"), (1, 50.0, "b")]))
    await live.step("send", (True, [(5, 71.0, "a"), (5, 50.0, "a")]))
    await live.settle()
    async with open_database_recording(settings, at(day), at(live.now[0])) as source:
        header = await source.header()
        result = await backtest(source, header)
    assert not header.is_whole
    assert not result.mismatches, "\n".join(map(str, result.mismatches))
    assert result.health_count == 5
    assert [transition.kind for transition in result.replayed_transitions if transition.rule == "ill"] == [
        "resolved",
        "opened",
        "resolved",
    ]


async def test_a_mismatch_of_health_names_an_alarm_from_before_the_window_as_its_cause(
    settings: Settings, connection: Connection, sessions: Sessions
) -> None:
    """Two series hold the alarm. Its event names one of them, and the other one is the member."""
    day = 86_400.0
    live = Systems(connection, await sessions("clock"))
    await live.begin()
    live.owners, live.now = ["near", "x-far"], [1.0, 1.0]
    await live.apply_only(HOT + "  per: owner\n" + SYSTEM.replace("near, key: dsp.a", "near, key: dsp.b"), 0)
    await live.step("send", (False, [(1, 71.0, "a"), (1, 71.0, "b")]))
    await live.step("send", (True, [(1, 50.0, "a")]))
    await live.settle()
    live.now = [day + 60, day + 60]
    for session in (live.worker, live._clock):
        await virtual_now(session, at(day))
    await live.step("send", (False, [(1, 50.0, "a"), (9, 50.0, "b")]))
    await live.settle()
    await connection.execute('update tocsin.alarm set payload = payload || \'{"series": ["dsp.a"]}\'')
    async with open_database_recording(settings, at(day), at(live.now[0])) as source:
        result = await backtest(source, await source.header())
    health = [one for one in result.mismatches if one.what == "system.health"]
    assert health
    assert all("an alarm of a member was open before the start of the replay" in one.cause for one in health)
    await connection.execute("update tocsin.datapoint_calculated set owner = 'other' where owner = 'hall'")
    whole = await replayed(settings, live.now[0])
    assert whole.mismatches
    assert not any("before the start of the replay" in one.cause for one in whole.mismatches)


def test_a_system_comes_after_those_whose_names_its_members_have() -> None:
    def members(**owners: str) -> Members:
        return Members(
            SystemDocument.model_validate({"name": name, "members": [{"owner": owner, "key": "dsp.a"}]})
            for name, owner in owners.items()
        )

    assert replay_order(members(site="hall", hall="pump", pump="x")) == [["pump"], ["hall"], ["site"]]
    cycle = replay_order(members(a="b", b="a", c="c"))
    assert sorted(name for level in cycle for name in level) == ["a", "b", "c"]

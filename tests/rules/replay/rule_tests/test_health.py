"""The health of systems in virtual time, equal to that of a backtest of the same arrivals."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.documents.load import load_text
from rules.engine import Arrival
from rules.replay.alarms import AlarmStore
from rules.replay.backtest.health import derive_health
from rules.replay.backtest.recording.model import DocumentVersion
from rules.replay.backtest.replay import SeriesReplay
from rules.replay.backtest.timelines import Candidate
from tests.rules.replay.rule_tests.worlds import START, logged, minutes, simulate

RULES = """
datapoint_type: {name: flow, key: flow.*, interval: 1m, tolerance: 2}
---
event_rule: {name: slow, datapoint: flow.*, below: 5, severity: high, for: 1m}
---
event_rule: {name: weak, datapoint: flow.*, below: 8, keep_firing_for: 1m}
---
event_rule: {name: quiet, datapoint: flow.b, absent: true, severity: high}
---
system:
  name: hall
  members:
    - {owner: north, key: flow.a}
    - {owner: north, key: flow.b, required: false}
    - {owner: south, type: flow}
"""
ILL = """
---
event_rule: {name: ill, datapoint: system.health, fire: value == "outage", for: 2m, severity: high}
"""


def test_health_follows_its_members_and_rules_evaluate_it() -> None:
    world = simulate(RULES + ILL)
    for minute, value in enumerate([9, 9, 3, 3, 3, 3, 9, 9]):
        world.at(minutes(minute), "arrive", owner="north", key="flow.a", value=value)
    world.run_until(minutes(8))
    assert logged(world, "health") == [
        (0, "hall", "ok"),
        (2, "hall", "degraded"),
        (3, "hall", "outage"),
        (6, "hall", "degraded"),
        (7, "hall", "ok"),
    ]
    alarms = [(at, state) for at, name, state in logged(world, "alarm") if name == "ill"]
    assert alarms == [(5, "opened"), (6, "resolved")]


@pytest.mark.parametrize(
    ("on_stale", "after"),
    [("hold", []), ("unknown", [(3, "hall", "unknown")]), ("alarm", [(3, "hall", "unknown")])],
)
@pytest.mark.parametrize("member", ["key: flow.a", "type: flow"])
def test_on_stale_of_the_type_decides_the_health_of_a_stale_member(
    on_stale: str, after: list[tuple[float, str, str]], member: str
) -> None:
    rules = f"""
datapoint_type: {{name: flow, key: flow.*, interval: 1m, tolerance: 2, on_stale: {on_stale}}}
---
event_rule: {{name: slow, datapoint: flow.*, below: 5, severity: high}}
---
system: {{name: hall, members: [{{owner: north, {member}}}]}}
"""
    world = simulate(rules)
    for minute in (0, 1):
        world.at(minutes(minute), "arrive", owner="north", key="flow.a", value=9)
    world.run_until(minutes(30))
    assert logged(world, "stale") == [(3, "flow.a", "stale")]
    assert [change for change in logged(world, "health") if change[0] > 0] == after


def test_a_stale_member_with_on_stale_hold_keeps_its_condition() -> None:
    rules = """
datapoint_type: {name: flow, key: flow.*, interval: 1m, tolerance: 2, on_stale: hold}
---
event_rule: {name: slow, datapoint: flow.*, below: 5, severity: high}
---
system: {name: hall, members: [{owner: north, key: flow.a}, {owner: north, key: flow.b, required: false}]}
"""
    world = simulate(rules)
    for key, value in (("flow.a", 3), ("flow.b", 9)):
        world.at(minutes(1), "arrive", owner="north", key=key, value=value)
    world.run_until(minutes(30))
    assert logged(world, "health")[-1] == (1, "hall", "outage")


def test_a_type_with_on_stale_hold_alone_does_not_cover_a_member() -> None:
    rules = "datapoint_type: {name: flow, key: flow.*, interval: 1m, on_stale: hold}\n---\n"
    world = simulate(rules + "system: {name: hall, members: [{owner: north, key: flow.a}]}\n")
    world.at(minutes(1), "arrive", owner="north", key="flow.a", value=9)
    world.run_until(minutes(30))
    reasons = [(entry.state, entry.details["reason"]) for entry in world.log if entry.kind == "health"]
    assert reasons == [("unknown", "no-data"), ("unknown", "uncovered")]


def test_a_member_is_no_data_until_its_first_datapoint() -> None:
    world = simulate(RULES)
    world.at(minutes(1), "arrive", owner="south", key="flow.x", value=9)
    world.at(minutes(1), "arrive", owner="south", key="else", value=9)
    world.run_until(minutes(9))
    assert logged(world, "health") == [(0, "hall", "unknown"), (1, "hall", "ok"), (3, "hall", "unknown")]
    reasons = [entry.details["reason"] for entry in world.log if entry.kind == "health"]
    assert reasons == ["no-data", None, "stale"]


ARRIVAL = st.tuples(
    st.integers(1, 100),
    st.sampled_from([("north", "flow.a"), ("north", "flow.b"), ("south", "flow.a"), ("south", "flow.z")]),
    st.sampled_from([1.0, 6.0, 9.0]),
)


@given(st.lists(ARRIVAL, max_size=25))
def test_a_backtest_of_the_same_arrivals_gives_the_same_health(
    sent: list[tuple[int, tuple[str, str], float]],
) -> None:
    """The backtest replays the owners one by one; the simulation runs them together."""
    arrivals = [
        Arrival(START + timedelta(seconds=10 * at), number, owner, key, value, START, {})
        for number, (at, (owner, key), value) in enumerate(sorted(sent, key=lambda item: item[0]))
    ]
    world = simulate(RULES)
    for row in arrivals:
        world.at(row.at, "arrive", owner=row.owner, key=row.key, value=row.value)
    world.run_until(minutes(30))
    documents = [
        DocumentVersion(document.kind, document.name, 1, document.data, 0, None)
        for document in load_text(RULES, anchor=START).documents
    ]
    rules = Candidate(documents, START)
    observations = []
    for owner in ("south", "north"):
        replay = SeriesReplay(owner, 0, rules, AlarmStore())
        replay.arrive([row for row in arrivals if row.owner == owner])
        replay.finish(minutes(30))
        observations += replay.observations
    replayed = [(change.at, change.payload) for change in derive_health(rules.of_health(), observations)]
    happened = [(entry.at, entry.details) for entry in world.log if entry.kind == "health"]
    assert replayed == happened

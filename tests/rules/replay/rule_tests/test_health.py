"""The health of systems in virtual time, and that a backtest of the same arrivals comes to the same."""

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
from tests.rules.replay.rule_tests.worlds import START, logged, minutes, world

RULES = """
datapoint_type: {name: flow, key: flow.*, interval: 1m, tolerance: 2}
---
event_rule: {name: slow, datapoint: flow.*, below: 5, severity: high, for: 1m}
---
event_rule: {name: weak, datapoint: flow.*, below: 8, keep_firing_for: 1m}
---
event_rule: {name: silent, datapoint: flow.b, absent: true, severity: high}
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
---
system:
  name: site
  members:
    - {owner: hall, key: system.health}
"""


def test_health_follows_its_members_and_rules_judge_it() -> None:
    found = world(RULES + ILL)
    for minute, value in enumerate([9, 9, 3, 3, 3, 3, 9, 9]):
        found.at(minutes(minute), "arrive", owner="north", key="flow.a", value=value)
    found.run_until(minutes(8))
    assert logged(found, "health") == [
        (0, "hall", "ok"),
        (0, "site", "unknown"),
        (0, "site", "ok"),
        (2, "hall", "degraded"),
        (3, "hall", "outage"),
        (5, "site", "outage"),
        (6, "hall", "degraded"),
        (6, "site", "ok"),
        (7, "hall", "ok"),
    ]
    alarms = [(at, state) for at, name, state in logged(found, "alarm") if name == "ill"]
    assert alarms == [(5, "opened"), (6, "resolved")]


@pytest.mark.parametrize(
    ("on_stale", "after"),
    [("hold", []), ("unknown", [(3, "hall", "unknown")]), ("alarm", [(3, "hall", "unknown")])],
)
@pytest.mark.parametrize("member", ["key: flow.a", "type: flow"])
def test_the_type_says_what_the_silence_of_a_member_means(
    on_stale: str, after: list[tuple[float, str, str]], member: str
) -> None:
    rules = f"""
datapoint_type: {{name: flow, key: flow.*, interval: 1m, tolerance: 2, on_stale: {on_stale}}}
---
event_rule: {{name: slow, datapoint: flow.*, below: 5, severity: high}}
---
system: {{name: hall, members: [{{owner: north, {member}}}]}}
"""
    found = world(rules)
    for minute in (0, 1):
        found.at(minutes(minute), "arrive", owner="north", key="flow.a", value=9)
    found.run_until(minutes(30))
    assert logged(found, "stale") == [(3, "flow.a", "stale")]
    assert [one for one in logged(found, "health") if one[0] > 0] == after


def test_a_member_whose_last_value_holds_is_as_ill_as_that_value_was() -> None:
    rules = """
datapoint_type: {name: flow, key: flow.*, interval: 1m, tolerance: 2, on_stale: hold}
---
event_rule: {name: slow, datapoint: flow.*, below: 5, severity: high}
---
system: {name: hall, members: [{owner: north, key: flow.a}, {owner: north, key: flow.b, required: false}]}
"""
    found = world(rules)
    for key, value in (("flow.a", 3), ("flow.b", 9)):
        found.at(minutes(1), "arrive", owner="north", key=key, value=value)
    found.run_until(minutes(30))
    assert logged(found, "health")[-1] == (1, "hall", "outage")


def test_silence_that_means_nothing_covers_no_member() -> None:
    rules = "datapoint_type: {name: flow, key: flow.*, interval: 1m, on_stale: hold}\n---\n"
    found = world(rules + "system: {name: hall, members: [{owner: north, key: flow.a}]}\n")
    found.at(minutes(1), "arrive", owner="north", key="flow.a", value=9)
    found.run_until(minutes(30))
    reasons = [(one.state, one.details["reason"]) for one in found.log if one.kind == "health"]
    assert reasons == [("unknown", "no-data"), ("unknown", "uncovered")]


def test_a_member_that_was_never_heard_of_is_no_data_until_it_speaks() -> None:
    found = world(RULES)
    found.at(minutes(1), "arrive", owner="south", key="flow.x", value=9)
    found.at(minutes(1), "arrive", owner="south", key="else", value=9)
    found.run_until(minutes(9))
    assert logged(found, "health") == [(0, "hall", "unknown"), (1, "hall", "ok"), (3, "hall", "unknown")]
    reasons = [one.details["reason"] for one in found.log if one.kind == "health"]
    assert reasons == ["no-data", None, "stale"]


ARRIVAL = st.tuples(
    st.integers(1, 100),
    st.sampled_from([("north", "flow.a"), ("north", "flow.b"), ("south", "flow.a"), ("south", "flow.z")]),
    st.sampled_from([1.0, 6.0, 9.0]),
)


@given(st.lists(ARRIVAL, max_size=25))
def test_a_backtest_of_the_same_arrivals_comes_to_the_same_health(
    sent: list[tuple[int, tuple[str, str], float]],
) -> None:
    """Each owner is replayed for itself; the world has lived through all of them together."""
    arrivals = [
        Arrival(START + timedelta(seconds=10 * at), number, owner, key, value, START, {})
        for number, (at, (owner, key), value) in enumerate(sorted(sent, key=lambda one: one[0]))
    ]
    lived = world(RULES)
    for one in arrivals:
        lived.at(one.at, "arrive", owner=one.owner, key=one.key, value=one.value)
    lived.run_until(minutes(30))
    documents = [
        DocumentVersion(one.kind, one.name, 1, one.data, 0, None)
        for one in load_text(RULES, anchor=START).documents
    ]
    rules = Candidate(documents, START)
    noted = []
    for owner in ("south", "north"):
        replay = SeriesReplay(owner, 0, rules, AlarmStore())
        replay.arrive([one for one in arrivals if one.owner == owner])
        replay.finish(minutes(30))
        noted += replay.observations
    replayed = [(one.at, one.payload) for one in derive_health(rules.of_health(), noted)]
    happened = [(one.at, one.details) for one in lived.log if one.kind == "health"]
    assert replayed == happened

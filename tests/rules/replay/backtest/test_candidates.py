"""Candidate rules over a recording give the alarms and notifications of a simulation with these rules.

No two things happen at one instant here. Live, an alarm that opens and ends at one instant may or may not be
notified, depending on the batches.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache

import pytest
from hypothesis import given, settings

from rules.documents.load import LoadedDocuments, load_text
from rules.replay.backtest import cascade
from rules.replay.rule_tests import World
from tests.rules.replay.backtest.simulated_recording import (
    ACTIONS,
    ALARMS,
    START,
    STEPS,
    SimulatedRecording,
    replay,
    sent,
    simulate,
)


@cache
def all_rules() -> LoadedDocuments:
    return load_text(ALARMS + ACTIONS, anchor=START)


@settings(max_examples=40)
@given(STEPS)
def test_a_replay_with_candidate_rules_equals_a_simulation_with_them(
    steps: list[tuple[int, str, float | str]],
) -> None:
    loaded = all_rules()
    simulated = simulate(loaded, steps)
    for result in (replay(loaded, simulated), replay(None, simulated)):
        assert {
            (one.rule, one.owner, one.kind, one.at) for one in result.replayed_transitions
        } == simulated.alarms()
        assert {
            (one.rule, one.owner, one.kind, one.at) for one in result.recorded_transitions
        } == simulated.alarms()
        assert result.replayed_notifications == simulated.notifications()
        assert result.recorded_notifications == simulated.notifications()
        assert {one.what for one in result.mismatches} <= {"dsp.a"}, "only staleness was not recorded"


HOT = [(gap, "plant-1", 80.0) for gap in (1, 2, 2)]
COOL = [(9, "plant-1", 50.0)]


@pytest.mark.parametrize(
    ("rule", "count"),
    [
        ("", 3),
        ("rate_limit: {count: 2, per: 1h}", 2),
        ("group_by: [rule], group_wait: 30s", 1),
        ("overlap: skip", 3),
        ("enabled: false", 0),
    ],
)
def test_notifications_follow_the_policies_of_an_action_rule(rule: str, count: int) -> None:
    """Three alarms. The first two end after ten seconds, and with them the runs that still gather."""
    text = ALARMS.replace("notify: [ops]", "enabled: true") + (
        "---\naction: {name: tell, channel: {name: ops, text: x}}\n"
        f"---\naction_rule: {{name: each, on: alarm, when: 'rule == \"hot\"', action: tell, {rule}}}\n"
    )
    loaded = load_text(text, anchor=START)
    simulated = simulate(loaded, [*HOT, *COOL, *HOT, *COOL, *[(9, "plant-2", 50.0)] * 6, *HOT])
    result = replay(loaded, simulated)
    assert sum(one.rule == "hot" and one.kind == "opened" for one in result.replayed_transitions) == 3
    assert sent(result, "each") == count


def test_an_escalation_that_the_end_of_the_alarm_cancels_sends_its_first_message_only() -> None:
    loaded = all_rules()
    ended = replay(loaded, simulate(loaded, [*HOT, (2, "plant-1", 50.0)]))
    assert sent(ended, "escalating") == 1
    went_on = replay(loaded, simulate(loaded, [*HOT, (9, "plant-1", 80.0)]))
    assert sent(went_on, "escalating") == 2


def test_a_step_that_waits_for_an_event_continues_when_it_arrives() -> None:
    rules = ALARMS.replace("notify: [ops]", "enabled: true") + (
        "---\naction:\n  name: ask\n  steps:\n    - wait: {until_event: 'type == \"trip\"'}\n"
        "    - channel: {name: ops, text: at last}\n"
        "---\naction_rule: {name: each, on: alarm, when: 'rule == \"hot\"', action: ask}\n"
    )
    loaded = load_text(rules, anchor=START)
    assert sent(replay(loaded, simulate(loaded, [*HOT, (2, "plant-2", "trip")])), "each") == 1
    assert sent(replay(loaded, simulate(loaded, HOT)), "each") == 0


def test_a_due_run_begins_before_an_event_of_the_same_instant() -> None:
    """The group of the first alarm begins its run at the microsecond in which the second alarm opens."""
    rules = ALARMS.replace("notify: [ops]", "enabled: true").replace("for: 3030ms, ", "") + (
        "---\naction: {name: tell, channel: {name: ops, text: x}}\n"
        "---\naction_rule:\n  name: each\n  on: alarm\n  when: rule == 'hot'\n  action: tell\n"
        "  group_by: [rule]\n  group_wait: 5257ms\n"
    )
    loaded = load_text(rules, anchor=START)
    result = replay(loaded, simulate(loaded, [(1, "plant-1", 80.0), (5, "plant-2", 80.0)]))
    assert sent(result, "each") == 2


def test_operator_events_about_an_alarm_that_does_not_exist_are_dropped() -> None:
    loaded = all_rules()
    simulated = simulate(loaded, [*HOT, (1, "plant-1", "acknowledge")])
    assert sent(replay(loaded, simulated), "answered") == 1
    seen = "---\nevent_rule: {name: seen, event: alarm-acknowledged, fire: 'true', notify: [ops]}\n"
    for above, alarms in (("65.0", {"hot", "seen"}), ("99.0", set[str]())):
        other = load_text(ALARMS.replace("65.0", above) + ACTIONS + seen, anchor=START)
        result = replay(other, simulated)
        assert {one.rule for one in result.replayed_transitions} & {"hot", "seen"} == alarms
        assert sent(result, "answered") == (1 if alarms else 0)


CIRCLE = """
event_rule:
  name: chicken
  event: "*"
  fire: type == "kick" || (type == "alarm-resolved" && rule == "egg")
---
event_rule: {name: egg, event: alarm-*, fire: 'type == "alarm-opened" && rule == "chicken"'}
"""


def test_rules_that_trigger_each_other_are_cut_at_a_depth() -> None:
    loaded = load_text(CIRCLE, anchor=START)
    simulated = SimulatedRecording(World((), START), [], until=START + timedelta(seconds=9))
    simulated.world.emit("kick", "plant-1")
    simulated.world.run_until(simulated.until)
    transitions = replay(loaded, simulated).replayed_transitions
    assert {one.rule for one in transitions} == {"chicken", "egg"}
    assert 16 <= len(transitions) <= 34


def test_each_instant_has_its_own_limit_of_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each transition is one input at its instant, as many as the limit allows."""
    monkeypatch.setattr(cascade, "_MAX_INPUTS_PER_INSTANT", 1)
    rule = """event_rule: {name: kicked, event: "*", fire: 'type == "kick"', clear: 'type == "rest"'}"""
    simulated = SimulatedRecording(World((), START), [], until=START + timedelta(seconds=9))
    for second, event in enumerate(("kick", "rest", "kick"), start=1):
        simulated.world.run_until(START + timedelta(seconds=second))
        simulated.world.emit(event, "plant-1")
    simulated.world.run_until(simulated.until)
    result = replay(load_text(rule, anchor=START), simulated)
    kinds = [transition.kind for transition in result.replayed_transitions]
    assert kinds == ["opened", "resolved", "opened"]

"""Other rules over a recording conclude and send what they would have in a world of their own.

No two things happen at one instant here: whether an alarm that opens and ends at once is paged is the luck of a batch.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cache

import pytest
from hypothesis import given, settings

from rules.documents.load import Loaded, load_text
from rules.replay.rule_tests import World
from tests.rules.replay.backtest.simulated_recording import (
    ACTIONS,
    ALARMS,
    START,
    STEPS,
    Lived,
    live,
    replay,
)
from tocsin.core.errors import InvalidInput


@cache
def all_rules() -> Loaded:
    return load_text(ALARMS + ACTIONS, anchor=START)


@settings(max_examples=40)
@given(STEPS)
def test_a_replay_with_other_rules_is_what_a_world_with_them_does(
    steps: list[tuple[int, str, float | str]],
) -> None:
    loaded = all_rules()
    lived = live(loaded, steps)
    for found in (replay(loaded, lived), replay(None, lived)):
        assert {
            (one.rule, one.owner, one.kind, one.at) for one in found.replayed_transitions
        } == lived.alarms()
        assert {
            (one.rule, one.owner, one.kind, one.at) for one in found.recorded_transitions
        } == lived.alarms()
        assert found.replayed_notifications == lived.pages()
        assert found.recorded_notifications == lived.pages()
        assert {one.what for one in found.mismatches} <= {"dsp.a"}, "only staleness was not recorded"


HOT = [(gap, "plant-1", 80.0) for gap in (1, 2, 2)]
COOL = [(9, "plant-1", 50.0)]


@pytest.mark.parametrize(
    ("rule", "sent"),
    [
        ("", 3),
        ("rate_limit: {count: 2, per: 1h}", 2),
        ("group_by: [rule], group_wait: 30s", 1),
        ("overlap: skip", 3),
        ("enabled: false", 0),
    ],
)
def test_pages_are_what_the_policies_of_an_action_rule_let_through(rule: str, sent: int) -> None:
    """Three alarms; the first two end after ten seconds, and with them what still gathers for them."""
    text = ALARMS.replace("notify: [ops]", "severity: high") + (
        "---\naction: {name: tell, channel: {name: ops, text: x}}\n"
        f"---\naction_rule: {{name: each, on: alarm, when: 'rule == \"hot\"', action: tell, {rule}}}\n"
    )
    loaded = load_text(text, anchor=START)
    lived = live(loaded, [*HOT, *COOL, *HOT, *COOL, *[(9, "plant-2", 50.0)] * 6, *HOT])
    found = replay(loaded, lived)
    assert sum(one.rule == "hot" and one.kind == "opened" for one in found.replayed_transitions) == 3
    assert found.replayed_notifications["each", "hot"] == sent


def test_an_escalation_that_the_end_of_the_alarm_cancels_sends_its_first_message_only() -> None:
    loaded = all_rules()
    ended = replay(loaded, live(loaded, [*HOT, (2, "plant-1", 50.0)]))
    assert ended.replayed_notifications["escalating", "hot"] == 1
    went_on = replay(loaded, live(loaded, [*HOT, (9, "plant-1", 80.0)]))
    assert went_on.replayed_notifications["escalating", "hot"] == 2


def test_a_step_that_waits_for_an_event_goes_on_when_it_comes() -> None:
    rules = ALARMS.replace("notify: [ops]", "severity: high") + (
        "---\naction:\n  name: ask\n  steps:\n    - wait: {until_event: 'type == \"trip\"'}\n"
        "    - channel: {name: ops, text: at last}\n"
        "---\naction_rule: {name: each, on: alarm, when: 'rule == \"hot\"', action: ask}\n"
    )
    loaded = load_text(rules, anchor=START)
    assert (
        replay(loaded, live(loaded, [*HOT, (2, "plant-2", "trip")])).replayed_notifications["each", "hot"]
        == 1
    )
    assert replay(loaded, live(loaded, HOT)).replayed_notifications["each", "hot"] == 0


def test_what_is_due_comes_before_an_event_of_the_same_instant() -> None:
    """The group of the first alarm has begun its run when the second opens, to the microsecond."""
    rules = ALARMS.replace("notify: [ops]", "severity: high").replace("for: 3030ms, ", "") + (
        "---\naction: {name: tell, channel: {name: ops, text: x}}\n"
        "---\naction_rule:\n  name: each\n  on: alarm\n  when: rule == 'hot'\n  action: tell\n"
        "  group_by: [rule]\n  group_wait: 5257ms\n"
    )
    loaded = load_text(rules, anchor=START)
    found = replay(loaded, live(loaded, [(1, "plant-1", 80.0), (5, "plant-2", 80.0)]))
    assert found.replayed_notifications["each", "hot"] == 2


def test_what_people_did_about_an_alarm_that_is_not_there_is_left_out() -> None:
    loaded = all_rules()
    lived = live(loaded, [*HOT, (1, "plant-1", "acknowledge")])
    assert replay(loaded, lived).replayed_notifications["answered", "hot"] == 1
    seen = "---\nevent_rule: {name: seen, event: alarm-acknowledged, fire: 'true', notify: [ops]}\n"
    for above, alarms in (("65.0", {"hot", "seen"}), ("99.0", set[str]())):
        other = load_text(ALARMS.replace("65.0", above) + ACTIONS + seen, anchor=START)
        found = replay(other, lived)
        assert {one.rule for one in found.replayed_transitions} & {"hot", "seen"} == alarms
        assert found.replayed_notifications["answered", "hot"] == (1 if alarms else 0)


CIRCLE = """
event_rule:
  name: chicken
  event: "*"
  fire: type == "kick" || (type == "alarm-resolved" && rule == "egg")
---
event_rule: {name: egg, event: alarm-*, fire: 'type == "alarm-opened" && rule == "chicken"'}
"""


def test_rules_that_conclude_each_other_without_end_are_refused() -> None:
    loaded = load_text(CIRCLE, anchor=START)
    lived = Lived(World((), START), [], until=START + timedelta(seconds=9))
    lived.world.emit("kick", "plant-1")
    lived.world.run_until(lived.until)
    with pytest.raises(InvalidInput, match=r"chicken, egg trigger each other in a loop for 'plant-1'"):
        replay(loaded, lived)

"""Loops end in virtual time as they do live, and the log has the reason."""

from __future__ import annotations

from rules.replay.rule_tests import World
from tests.rules.replay.rule_tests.worlds import minutes, simulate

FLIP = """
event_rule: {{name: e, datapoint: k, above: 5{keys}}}
---
action_rule: {{name: rr, on: alarm, transitions: [opened, resolved], action: flip}}
---
action: {{name: flip, record: {{key: k, value: "{{{{ 1 if alarm.state == 'open' else 9 }}}}"}}}}
"""


def runs(world: World) -> list[tuple[str, str]]:
    """The runs that ended, and why if they were skipped."""
    return [
        (entry.state, str(entry.details.get("reason", "")))
        for entry in world.log
        if entry.kind == "run" and entry.state in ("completed", "skipped", "cancelled")
    ]


def test_an_action_that_records_the_datapoint_of_its_own_alarm_is_not_started_again() -> None:
    world = simulate(FLIP.format(keys=""))
    world.at(minutes(1), "arrive", owner="o", key="k", value=9)
    world.run_until(minutes(60))
    assert runs(world) == [
        ("completed", ""),
        ("skipped", "suppressed: it would start itself again, rr -> rr"),
    ]


def test_a_sustain_between_the_datapoint_and_the_alarm_does_not_hide_the_loop() -> None:
    world = simulate(FLIP.format(keys=", for: 1m, keep_firing_for: 1m"))
    world.at(minutes(1), "arrive", owner="o", key="k", value=9)
    world.run_until(minutes(60))
    assert [state for state, _ in runs(world)] == ["completed", "skipped"]


def test_a_later_alarm_of_an_ordinary_datapoint_starts_the_action_again() -> None:
    world = simulate(FLIP.format(keys=""))
    for minute in (1, 10, 20):
        world.at(minutes(minute), "arrive", owner="o", key="k", value=9)
    world.run_until(minutes(60))
    assert [state for state, _ in runs(world)] == ["completed", "skipped"] * 3


def test_an_alarm_over_an_emitted_event_does_not_start_its_action_again() -> None:
    world = simulate("""
event_rule: {name: e, event: "link-*", fire: 'type == "link-down"', clear: 'type == "link-up"'}
---
action_rule: {name: rr, on: alarm, transitions: [opened, resolved], action: flip}
---
action:
  name: flip
  steps:
    - branch:
        when: alarm.state == "open"
        then: [{emit: {type: link-up}}]
        else: [{emit: {type: link-down}}]
""")
    world.at(minutes(1), "emit", type="link-down", owner="o")
    world.run_until(minutes(60))
    assert [state for state, _ in runs(world)] == ["completed", "skipped"]


EACH_OTHER = """
event_rule: {{name: k, datapoint: k, above: 5}}
---
event_rule: {{name: r1, event: "alarm-*", where: 'rule == "r2"', fire: 'type == "alarm-resolved"'{keys}}}
---
event_rule:
  name: r2
  event: "alarm-*"
  where: 'rule == "r1" || rule == "k"'
  fire: 'type == "alarm-opened"'
"""


def test_event_rules_that_trigger_each_other_are_cut_with_a_reason() -> None:
    for keys in ("", ", for: 1m"):
        world = simulate(EACH_OTHER.format(keys=keys))
        for minute, value in ((1, 9), (2, 1)):
            world.at(minutes(minute), "arrive", owner="o", key="k", value=value)
        world.run_until(minutes(600))
        suppressed = [entry for entry in world.log if entry.name == "rules-suppressed"]
        assert suppressed, keys
        assert "trigger each other" in suppressed[0].details["payload"]["reason"]
        assert len([entry for entry in world.log if entry.kind == "alarm"]) < 40


def test_a_harmless_cascade_of_event_rules_is_not_cut() -> None:
    world = simulate("""
event_rule: {name: k, datapoint: k, above: 5}
---
event_rule:
  name: group
  event: "alarm-*"
  where: 'rule == "k"'
  fire: 'type == "alarm-opened"'
""")
    for minute in range(1, 100):
        world.at(minutes(minute), "arrive", owner="o", key="k", value=9 if minute % 2 else 1)
    world.run_until(minutes(120))
    assert not [entry for entry in world.log if entry.name == "rules-suppressed"]
    assert len([entry for entry in world.log if entry.name == "group" and entry.kind == "alarm"]) == 99

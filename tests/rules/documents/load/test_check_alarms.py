"""The rules that a rule over alarms refers to are checked when files are loaded."""

from __future__ import annotations

import pytest

from rules.documents.load import RulesInvalid, load_text

RULES = """event_rule: {name: hot, datapoint: pump.heat, above: 60}
---
event_rule: {name: slow, datapoint: pump.flow, below: 10}
---
datapoint_type: {name: flow, key: pump.flow, interval: 10s, on_stale: alarm}
---
"""


def problems(text: str) -> list[str]:
    with pytest.raises(RulesInvalid) as caught:
        load_text(RULES + text)
    return [str(problem).partition(":")[2] for problem in caught.value.problems]


def test_rules_and_types_with_alarms_can_be_named() -> None:
    load_text(RULES + 'event_rule: {name: both, alarms: {all_of: [hot, slow], none_of: ["stale:flow"]}}')


def test_an_unknown_rule_is_an_error_with_its_position() -> None:
    assert problems("event_rule: {name: both, alarms: {all_of: [hot, slwo]}}") == [
        "7:49: unknown event_rule 'slwo' in event_rule 'both', did you mean 'slow'?"
    ]


def test_an_unknown_rule_in_a_reference_is_an_error_with_its_position() -> None:
    assert problems("event_rule: {name: both, alarms: {any_of: [{rule: cold, at_least: 2}]}}") == [
        "7:51: unknown event_rule 'cold' in event_rule 'both', no event_rule of this name is defined"
    ]


def test_a_rule_cannot_refer_to_itself() -> None:
    assert problems("event_rule: {name: both, alarms: {any_of: [hot, both]}}") == [
        "7:49: event_rule 'both' refers to itself: break the circle"
    ]


def test_a_circle_through_other_rules_is_an_error_at_each_place() -> None:
    text = """event_rule: {name: a, alarms: {any_of: [hot, b]}}
---
event_rule: {name: b, alarms: {any_of: [slow, c]}}
---
event_rule: {name: c, alarms: {any_of: [a]}}
"""
    assert problems(text) == [
        "7:46: event_rule 'a' refers to 'b', which depends on it: break the circle",
        "9:47: event_rule 'b' refers to 'c', which depends on it: break the circle",
        "11:41: event_rule 'c' refers to 'a', which depends on it: break the circle",
    ]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("above: 1", "is over alarms, whose clauses are the condition: remove 'above'"),
        ("fire: 'true'", "is over alarms, whose clauses are the condition: remove 'fire'"),
        ("where: 'true'", "is over alarms, whose clauses are the condition: remove 'where'"),
        ("per: series", "is over alarms: it has one alarm per owner, remove 'per'"),
        ("no_data: alarm", "is over alarms, which are never stale: remove 'no_data'"),
        ("severity: event", "is over alarms: name a level"),
        ("datapoint: x", "has both 'datapoint' and 'alarms': keep one"),
    ],
)
def test_a_key_without_effect_is_an_error(keys: str, message: str) -> None:
    (problem,) = problems(f"event_rule: {{name: both, alarms: {{any_of: [hot]}}, {keys}}}")
    assert message in problem


def test_an_alarm_that_another_rule_reads_needs_no_channel() -> None:
    text = """---
event_rule: {name: both, alarms: {all_of: [hot, slow]}, notify: [ops]}
---
channel: {name: ops, webhook: {url: "https://hooks.example.com/1"}}
"""
    loaded = load_text(RULES.removesuffix("---\n").replace(", on_stale: alarm", "") + text)
    assert not loaded.warnings

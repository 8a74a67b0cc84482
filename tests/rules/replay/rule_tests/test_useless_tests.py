"""Tests that prove nothing are errors with their position, and `only` restricts what is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.documents.load.problems import RulesInvalid
from tests.rules.replay.rule_tests.written_tests import assert_passes, run_written

RULES = """
event_rule: {name: cpu-hot, datapoint: cpu.*, above: 5, notify: [ops]}
---
datapoint_type: {name: load, key: load, interval: 1m, on_stale: alarm}
---
channel: {name: ops, webhook: {url: "https://hooks.example.com/x"}}
---
action: {name: page, steps: [{name: first, log: {message: one}}, {log: {message: two}}]}
---
action_rule: {name: on-trip, on: event, when: 'type == "trip"', action: page}
---
schedule: {name: nightly, cron: "0 1 * * *", action: page}
---
system: {name: hall, members: [{owner: door, key: open}]}
"""
HOT = "{series: cpu.0, owner: o, every: 1m, values: 9}"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (
            "until: 1h",
            "t.test.yaml:1:1: test 'it' expects nothing: add 'expect', or 'nothing_else: [opened]'",
        ),
        (
            "start: 2026-01-05T00:00:00Z\nuntil: 2020-01-01T00:00:00Z\nexpect: [{opened: cpu-hot}]",
            "t.test.yaml:5:10: 'until' of test 'it' lies before 'start'",
        ),
        (
            f"given: [{HOT}, {{at: 2h, event: trip}}]\nuntil: 1h\nexpect: [{{opened: cpu-hot}}]",
            "'given.1' of test 'it' comes after 'until'",
        ),
        (
            f"given: [{HOT}, {{fail: pagee}}]\nuntil: 1h\nexpect: [{{opened: cpu-hot}}]",
            "t.test.yaml:4:67: unknown action 'pagee' in test 'it', did you mean 'page'?",
        ),
        (
            "given: [{fail: page, step: frist}]\nuntil: 1h\nexpect: [{sent: page}]",
            "unknown step 'frist' of action 'page' in test 'it', did you mean 'first'?",
        ),
        (
            f"given: [{HOT}]\nuntil: 1h\nexpect: [{{opened: cpu-hott}}]",
            "t.test.yaml:6:21: unknown rule 'cpu-hott' in test 'it', did you mean 'cpu-hot'?",
        ),
        (
            f"given: [{HOT}]\nuntil: 1h\nexpect: [{{sent: notify-opps}}]",
            "unknown action 'notify-opps' in test 'it', did you mean 'notify-ops'?",
        ),
        (
            f"given: [{HOT}, {{acknowledge: cpu-hut}}]\nuntil: 1h\nexpect: [{{opened: cpu-hot}}]",
            "unknown rule 'cpu-hut' in test 'it', did you mean 'cpu-hot'?",
        ),
        (
            "given: [{event: trip}]\nuntil: 1h\nexpect: [{health: hal, is: ok}]",
            "unknown system 'hal' in test 'it', did you mean 'hall'?",
        ),
        (
            f"given: [{HOT}]\nuntil: 1h\nexpect: [{{at: 2h, opened: cpu-hot}}]",
            "t.test.yaml:6:17: 'expect.0' of test 'it' expects something after 'until'",
        ),
        (
            "given: [{series: cpu-0, owner: o, every: 1m, values: 9}]\nuntil: 1h\nnothing_else: [opened]",
            "t.test.yaml:4:20: no rule, datapoint_type or system of test 'it' covers the series 'cpu-0'",
        ),
        (
            f"given: [{HOT}]\nuntil: 1h\nexpect: [{{opened: cpu-hot}}]\nonly: {{action: pagee}}",
            "unknown action 'pagee' in test 'it', did you mean 'page'?",
        ),
    ],
)
def test_a_test_that_proves_nothing_is_an_error(tmp_path: Path, body: str, says: str) -> None:
    result = run_written(tmp_path, RULES, body)
    assert result.error is not None
    assert says in result.error
    assert not result.passed


def test_all_problems_of_a_test_are_listed(tmp_path: Path) -> None:
    body = "given: [{fail: pagee}]\nuntil: 1h\nexpect: [{opened: cpu-hott}]"
    result = run_written(tmp_path, RULES, body)
    assert result.error is not None
    assert len(result.error.splitlines()) == 2


@pytest.mark.parametrize(
    "body",
    [
        "given: [{series: door, owner: x, every: 1m, values: 1}]\nuntil: 1m\nnothing_else: [opened]",
        "given: [{series: open, owner: door, every: 1m, values: 1}]\nuntil: 1m\nnothing_else: [opened]",
        "given: [{series: load, owner: x, every: 1m, values: 1}]\nuntil: 5m\nexpect: [{opened: 'stale:load'}]",
        f"given: [{HOT}]\nuntil: 0s\nexpect: [{{opened: cpu-hot}}]",
    ],
)
def test_what_a_rule_a_type_or_a_system_covers_is_accepted(tmp_path: Path, body: str) -> None:
    rules = RULES + "---\nevent_rule: {name: jar, datapoint: door, fire: 'value == 7'}\n"
    assert_passes(tmp_path, rules, body)


TWO = f"given: [{HOT}, {{event: trip, owner: a}}, {{at: 5m, event: trip, owner: b}}]\nuntil: 1h\n"


@pytest.mark.parametrize(
    "only",
    [
        "{action: notify-ops}",
        "{kinds: [resolved]}",
        "{owner: [o, other]}",
        "{action: [page], owner: c}",
    ],
)
def test_only_restricts_what_needs_an_expectation(tmp_path: Path, only: str) -> None:
    expected = "{opened: cpu-hot}, {sent: notify-ops}"
    assert not run_written(tmp_path, RULES, f"{TWO}expect: [{expected}]").passed
    assert_passes(tmp_path, RULES, f"{TWO}expect: [{expected}]\nonly: {only}")


def test_what_only_names_is_still_compared(tmp_path: Path) -> None:
    for only, kinds in (
        ("{action: page, owner: a}", ["sent", "sent"]),
        ("{rule: cpu-hot}", ["opened"]),
        ("{kinds: [opened]}", ["opened"]),
    ):
        result = run_written(tmp_path, RULES, f"{TWO}expect: [{{sent: notify-ops}}]\nonly: {only}")
        assert [entry.kind for entry in result.unexpected] == kinds


@pytest.mark.parametrize("start", ["2026-03-04 10:00", "tomorrow", "2026-13-40T10:00:00Z"])
def test_a_start_that_is_no_instant_is_an_error_with_its_position(tmp_path: Path, start: str) -> None:
    with pytest.raises(RulesInvalid) as invalid:
        run_written(tmp_path, RULES, f"start: {start}\nuntil: 1h\nnothing_else: [opened]")
    says = f"t.test.yaml:4:10: 'start' of test 'it': '{start}' is not an instant: write it as 2026-03-04T10:00:00Z"
    assert says in str(invalid.value)

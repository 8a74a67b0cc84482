"""Rule tests in YAML: what they accept and what they report. The examples pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from rules.documents.load import RulesInvalid
from rules.replay.rule_tests.rule_tests import RuleTestResult, RuleTests, load_tests
from schemas.documents.rule_test import expand
from tests.paths import ROOT
from tocsin.core.errors import InvalidInput

EXAMPLES = ROOT / "examples" / "tests"
RULES = "event_rule: {name: hot, datapoint: a.b, above: 5, for: 2m}\n"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0 70x3 _x2 1+2x3", [0, 70, 70, 70, None, None, 1, 3, 5]),
        ("-1.5 true false", [-1.5, True, False]),
        ('"a b"x2', ["a b", "a b"]),
        ("10-2.5x3", [10, 7.5, 5.0]),
    ],
)
def test_the_notation_of_series(text: str, values: list[object]) -> None:
    assert expand(text) == values


@pytest.mark.parametrize(
    "text", ["", "x3", "70x", "_+1", "true+1x2", "1 2 three", "1x9999999", "1x99999 1x99999", "12x2x3"]
)
def test_an_invalid_series_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInput):
        expand(text)


def run_test(folder: Path, body: str) -> RuleTestResult:
    (folder / "rules.yaml").write_text(RULES)
    lines = "\n".join(f"  {line}" for line in body.splitlines())
    (folder / "t.test.yaml").write_text(f"test:\n  name: it\n  rules: [rules.yaml]\n{lines}\n")
    (test,) = load_tests([folder / "t.test.yaml"])
    return RuleTests().run(test)


HOT = "given: [{series: a.b, owner: x, every: 1m, values: 9x5 0}]\nuntil: 10m\n"
OPENS = "{at: 2m, opened: hot, owner: x, says: above 5}"
RESOLVES = "{at: 5m, resolved: hot}"


def test_a_test_whose_expectations_are_met_passes(tmp_path: Path) -> None:
    assert run_test(tmp_path, f"{HOT}expect: [{OPENS}, {RESOLVES}]").passed


def test_an_alarm_without_an_expectation_fails_the_test(tmp_path: Path) -> None:
    result = run_test(tmp_path, f"{HOT}expect: [{OPENS}]")
    assert not result.passed
    assert [(one.kind, one.name) for one in result.unexpected] == [("resolved", "hot")]
    assert len(run_test(tmp_path, f"{HOT}nothing_else: [opened]").unexpected) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        "{at: 3m, opened: hot}",
        "{at: 2m, opened: hot, owner: y}",
        "{at: 2m, opened: hot, says: below}",
    ],
)
def test_an_expectation_that_is_not_met_is_missing(tmp_path: Path, wrong: str) -> None:
    result = run_test(tmp_path, f"{HOT}expect: [{wrong}, {RESOLVES}]")
    assert [one.kind for one in result.missing] == ["opened"]
    assert [one.kind for one in result.unexpected] == ["opened"]


def test_absolute_instants_and_any_time_are_accepted(tmp_path: Path) -> None:
    body = "start: 2026-03-04T10:00:00Z\n" + HOT
    at = "{at: '2026-03-04T10:02:00Z', opened: hot}"
    assert run_test(tmp_path, f"{body}expect: [{at}, {{resolved: hot}}]").passed


@pytest.mark.parametrize("operation", ["acknowledge: hot", "snooze: hot, for: 5m", "unsnooze: hot"])
def test_an_operation_without_an_open_alarm_fails_with_the_error(tmp_path: Path, operation: str) -> None:
    result = run_test(
        tmp_path, f"given: [{{at: 1m, {operation}, owner: x}}]\nuntil: 10m\nnothing_else: [opened]"
    )
    assert result.error is not None
    assert result.error.startswith("no alarm of 'hot' is open for 'x' at 2026-01-05T00:01:00")


SNOOZED = """given:
  - {series: a.b, owner: x, every: 1m, values: 9x20}
  - {at: 3m, snooze: hot, owner: x, for: 5m, by: ann}
  - {at: 10m, snooze: hot, owner: x, for: 366d}
  - {at: 12m, unsnooze: hot, owner: x, by: bob}
until: 20m
"""
ENDS = "{at: 8m, event: alarm-snooze-ended, owner: x, says: ann}"


def test_operators_snooze_an_alarm_and_may_end_the_snooze_early(tmp_path: Path) -> None:
    again = "{at: 10m, event: alarm-snoozed, says: operator}, {at: 12m, event: alarm-unsnoozed, says: bob}"
    expected = f"{OPENS}, {{at: 3m, event: alarm-snoozed, says: '00:08:00'}}, {ENDS}, {again}"
    result = run_test(tmp_path, f"{SNOOZED}expect: [{expected}]")
    assert result.passed, (result.missing, result.unexpected, result.error)
    late = run_test(tmp_path, f"{SNOOZED}expect: [{OPENS}, {ENDS.replace('8m', '9m')}]")
    assert [(one.kind, one.name) for one in late.unexpected] == [("event", "alarm-snooze-ended")]


def test_the_alarm_of_a_stale_series_can_be_snoozed_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = "---\ndatapoint_type: {name: load, key: a.*, interval: 1m, on_stale: alarm}\n"
    monkeypatch.setattr(f"{__name__}.RULES", RULES + typed)
    given = (
        "{series: a.b, owner: x, every: 1m, values: 1x2}, {at: 5m, snooze: 'stale:load', owner: x, for: 1m}"
    )
    expected = "{opened: 'stale:load', owner: x}, {at: 6m, event: alarm-snooze-ended}"
    result = run_test(tmp_path, f"given: [{given}]\nuntil: 20m\nexpect: [{expected}]")
    assert result.passed, (result.missing, result.unexpected, result.error)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("until: ten", "'until' of test 'it': 'ten' is not a duration"),
        ("untill: 10m", "unknown key 'untill' in test 'it', did you mean 'until'?"),
        ("until: 1m\ngiven: [{at: 1m}]", "is empty: give one of series, event, acknowledge, snooze"),
        ("until: 1m\ngiven: [{series: a.b}]", "has 'series' without 'values' and 'every'"),
        (
            "until: 1m\ngiven: [{series: a.b, values: 1, every: 0s}]",
            "has 'every: 0s': write the time between values",
        ),
        ("until: 1m\ngiven: [{series: a.b, values: 1x0, every: 1s}]", "'x0' is not part of a series"),
        ("until: 1m\ngiven: [{series: a.b, values: ' ', every: 1s}]", "the series has no values: write"),
        (
            "until: 1m\ngiven: [{series: system.health, values: 1, every: 1s}]",
            "give those, and expect 'health'",
        ),
        ("until: 1m\ngiven: [{snooze: hot}]", "'given.0' of test 'it' has 'snooze' without 'for'"),
        ("until: 1m\ngiven: [{unsnooze: hot, for: 2m}]", "'given.0' of test 'it' has 'for' without 'snooze'"),
        ("until: 1m\ngiven: [{snooze: hot, for: 0s}]", "snoozes for 0s: write more than 0s and at most 366d"),
        ("until: 1m\ngiven: [{snooze: hot, for: 367d}]", "snoozes for 52w3d: write more than 0s and at most"),
        ("until: 1m\ngiven: [{snooze: a b, for: 2m}]", "is 'a b': name an event_rule, or a datapoint_type"),
        ("until: 1m\nexpect: [{at: 1m, opened: a, resolved: b}]", "has opened, resolved: give one of opened"),
    ],
)
def test_an_invalid_test_is_rejected_with_its_location(tmp_path: Path, body: str, says: str) -> None:
    with pytest.raises(RulesInvalid) as rejected:
        run_test(tmp_path, body)
    assert says in str(rejected.value)
    assert "t.test.yaml:" in str(rejected.value)


def test_invalid_rules_are_reported_with_their_own_location(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("event_rule: {name: hot}\n")
    (tmp_path / "t.test.yaml").write_text("test: {name: it, rules: [rules.yaml], until: 1m}\n")
    (test,) = load_tests([tmp_path / "t.test.yaml"])
    result = RuleTests().run(test)
    assert result.error is not None
    assert "the rules of the test are invalid" in result.error
    assert "rules.yaml:1:1" in result.error


@pytest.mark.parametrize("test", load_tests([EXAMPLES]), ids=lambda test: test.document.name)
def test_an_example_passes(test: object) -> None:
    from rules.replay.rule_tests.rule_tests import RuleTest

    assert isinstance(test, RuleTest)
    result = RuleTests().run(test)
    assert result.passed, (result.missing, result.unexpected, result.error)


SYSTEM = "---\nsystem: {name: hall, members: [{owner: x, key: a.b}]}\n"


def test_an_expectation_of_health_names_the_new_health(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.RULES", RULES + SYSTEM)
    alarms = f"{OPENS}, {RESOLVES}"
    degraded, ok = "{at: 2m, health: hall, is: degraded, says: a.b}", "{at: 5m, health: hall, is: ok}"
    assert run_test(tmp_path, f"{HOT}expect: [{alarms}]").passed
    assert run_test(tmp_path, f"{HOT}expect: [{alarms}, {degraded}, {ok}]").passed
    assert run_test(tmp_path, f"{HOT}expect: [{alarms}, {{health: hall, is: ok}}, {degraded}, {ok}]").passed
    unexpected = run_test(tmp_path, f"{HOT}expect: [{alarms}, {ok}]").unexpected
    assert [(one.kind, one.name) for one in unexpected] == [("health degraded", "hall")]
    missing = run_test(tmp_path, f"{HOT}expect: [{alarms}]\nnothing_else: [health]")
    assert len(missing.unexpected) == 2
    wrong = run_test(tmp_path, f"{HOT}expect: [{alarms}, {degraded.replace('degraded', 'outage')}, {ok}]")
    assert [one.outcome for one in wrong.missing] == ["health outage"]


def test_an_expectation_of_health_needs_the_new_health(tmp_path: Path) -> None:
    for wrong in ("{health: hall}", "{opened: hot, is: ok}"):
        with pytest.raises(RulesInvalid, match="give both, or none"):
            run_test(tmp_path, f"{HOT}expect: [{wrong}]")


TRIPPED = """given: [{event: trip, owner: x}, {at: 1m, event: trip, owner: y}]
until: 10m
"""


def test_each_event_of_an_expected_type_needs_an_expectation(tmp_path: Path) -> None:
    both = run_test(tmp_path, f"{TRIPPED}expect: [{{event: trip, owner: x}}, {{event: trip, owner: y}}]")
    assert both.passed
    one_missing = run_test(tmp_path, f"{TRIPPED}expect: [{{event: trip, owner: x}}]")
    assert [(seen.kind, seen.owner) for seen in one_missing.unexpected] == [("event", "y")]
    assert run_test(tmp_path, f"{TRIPPED}nothing_else: [opened]").passed, "other types need no expectation"

"""`tocsin test` with tests that fail or cannot run: the others run, and every reader sees why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import CommandLine

RULES = """
event_rule: {name: hot, datapoint: t, above: 5, notify: [ops]}
---
channel: {name: ops, webhook: {url: "https://hooks.example.com/x"}}
---
schedule: {name: nightly, spread: 10m, cron: "30 1 * * *", action: say}
---
action: {name: say, log: {message: hi}}
---
action:
  name: careful
  steps:
    - {log: {message: "{{ payload.day }} and a text that is long enough to be cut"},
       on_failure: continue}
    - {log: {message: "first line\\nthe second line"}}
---
action_rule: {name: on-trip, on: event, when: 'type == "trip"', action: careful, group_by: [owner], group_wait: 30s}
"""
PASSES = """
test:
  name: it opens
  rules: [rules.yaml]
  given: [{series: t, owner: o, every: 1m, values: 9}]
  until: 1m
  expect: [{opened: hot}]
"""
RETRIED = """
test:
  name: a wrong expectation beside a delivery that is tried again
  rules: [rules.yaml]
  given: [{fail: notify-ops, times: 1}, {series: t, owner: o, every: 1m, values: 9}]
  until: 10m
  expect: [{at: 1m, opened: hot}]
"""
SPREAD = """
test: {name: spread, rules: [rules.yaml], start: 2026-11-15T00:00:00Z, until: 1d, expect: [{at: 1h30m, sent: say}]}
"""
UNREADABLE_START = """
test: {name: unreadable start, rules: [rules.yaml], start: 2026-03-04 10:00, until: 1d, expect: [{sent: say}]}
"""
BAD_RULES = """
test: {name: bad rules, rules: [bad.yaml], until: 1d, expect: [{sent: say}]}
"""
MISSPELT_KEY = """
test: {name: misspelt, rules: [rules.yaml], untill: 1d, expect: [{sent: say}]}
"""

RunTests = Callable[..., tuple[list[str], ElementTree.Element]]


@pytest.fixture
def run_tests(alone: CommandLine, tmp_path: Path) -> RunTests:
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "bad.yaml").write_text("event_rule: {name: hot}\n")

    def run(*documents: str, exit_code: int = 1) -> tuple[list[str], ElementTree.Element]:
        (tmp_path / "t.yaml").write_text("---".join(documents))
        junit = tmp_path / "out.xml"
        junit.unlink(missing_ok=True)
        answer = alone("test", str(tmp_path / "t.yaml"), "--junit", str(junit), exit_code=exit_code)
        assert answer.err == ""
        return answer.lines, ElementTree.parse(junit).getroot()

    return run


@pytest.mark.parametrize(
    ("broken", "name", "line", "says"),
    [
        (RETRIED, "a wrong expectation beside a delivery that is tried again", 2, "missing"),
        (SPREAD, "spread", 2, "missing"),
        (UNREADABLE_START, "unreadable start", 2, "t.yaml:2:60: 'start' of test 'unreadable start'"),
        (BAD_RULES, "bad rules", 2, "bad.yaml:1:1: event_rule 'hot'"),
        (MISSPELT_KEY, "misspelt", 2, "unknown key 'untill' in test 'misspelt', did you mean 'until'?"),
    ],
)
def test_a_broken_test_fails_by_itself(
    run_tests: RunTests, broken: str, name: str, line: int, says: str
) -> None:
    lines, junit = run_tests(broken, PASSES)
    assert any(text.startswith(f"FAIL  {name}  (") and text.endswith(f"t.yaml:{line})") for text in lines)
    assert any(says in text for text in lines)
    assert "pass  it opens" in lines
    assert lines[-1] == "1 passed, 1 failed"
    (suite,) = junit
    cases = {case.get("name"): case for case in suite}
    assert set(cases) == {name, "it opens"}
    fault = cases[name].find("failure")
    assert fault is not None
    assert says in str(fault.text)
    assert f"t.yaml:{line})" in str(fault.text)
    assert str(cases[name].get("classname")).endswith("t.yaml")
    assert float(str(cases["it opens"].get("time"))) >= 0
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")


def test_a_file_that_is_no_yaml_is_a_failed_test_and_the_other_files_run(
    alone: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "rules.yaml").write_text(RULES)
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "a.yaml").write_text("test: {name: [\n")
    (folder / "b.yaml").write_text(PASSES.replace("rules.yaml", "../rules/rules.yaml"))
    junit = tmp_path / "out.xml"
    answer = alone("test", str(folder), "--junit", str(junit), exit_code=1)
    assert answer.lines[0].startswith(f"FAIL  {folder}/a.yaml cannot be read  ({folder}/a.yaml:")
    assert answer.lines[-1] == "1 passed, 1 failed"
    cases = ElementTree.parse(junit).getroot()[0]
    assert [case.find("error") is not None for case in cases] == [True, False]
    assert "not valid YAML" in str(cases[0][0].get("message"))


def test_a_missing_file_is_in_the_junit_file(alone: CommandLine, tmp_path: Path) -> None:
    junit = tmp_path / "out.xml"
    answer = alone("test", str(tmp_path / "none.yaml"), "--junit", str(junit), exit_code=1)
    assert "none.yaml:1:1: the file does not exist" in answer.out
    assert "the file does not exist" in junit.read_text()


def test_the_timeline_shows_failed_steps_runs_and_the_whole_text(run_tests: RunTests) -> None:
    lines, _ = run_tests(
        "test: {name: it, rules: [rules.yaml], given: [{event: trip, owner: o}], until: 10m,"
        " expect: [{sent: careful, says: third}]}\n"
    )
    shown = "\n".join(lines)
    assert "0s       run gathering careful of o" in shown
    assert "30s      run running careful of o" in shown
    assert "30s      step failed careful of o: log: " in shown
    assert "there is no 'payload.day'" in shown
    assert "the second line" in shown


def test_the_columns_of_the_timeline_are_aligned(run_tests: RunTests) -> None:
    lines, _ = run_tests(
        "test: {name: it, rules: [rules.yaml], given: [{series: t, owner: o, every: 111h11m11s, values: 9 1}],"
        " until: 2w, expect: [{at: 5s, resolved: hot}]}\n"
    )
    starts = {
        line.index(word)
        for line in lines[1:]
        for word in (" opened hot", " resolved hot", " sent notify-ops")
        if word in line and "missing" not in line and "unexpected" not in line
    }
    assert len(starts) == 1
    differences = [line for line in lines if line.strip().startswith(("missing", "unexpected"))]
    assert len({line.index("hot") - len(line.split("hot")[0].split()[-1]) for line in differences}) == 1

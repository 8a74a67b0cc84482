"""`tocsin test`: answers, exit codes and JUnit, without a server."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import CommandLine
from tests.cli.terminal import TOCSIN
from tests.paths import ROOT

EXAMPLES = ROOT / "examples" / "tests"
RULES = "event_rule: {name: hot, datapoint: a.b, above: 5, for: 2m}\n"
TEST = (
    "test:\n  name: it opens\n  rules: [rules.yaml]\n"
    "  given: [{series: a.b, owner: x, every: 1m, values: 9x5}]\n  until: 10m\n"
    "  expect: [{at: %s, opened: hot}]\n"
)


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    folder = tmp_path / "tests"
    folder.mkdir()
    (tmp_path / "tests" / "rules.yaml").write_text(RULES)
    return folder


def test_the_examples_pass_without_a_server(alone: CommandLine) -> None:
    answer = alone("test", str(EXAMPLES))
    assert answer.lines[-1].endswith(" passed, 0 failed")
    assert all(line.startswith("pass  ") for line in answer.lines[:-1])


def test_a_failure_shows_what_is_missing_and_what_happened(alone: CommandLine, tests: Path) -> None:
    (tests / "t.yaml").write_text(TEST % "3m")
    answer = alone("test", str(tests / "t.yaml"), exit_code=1)
    assert answer.lines[0].startswith("FAIL  it opens  (")
    assert answer.lines[1] == "      missing     3m       opened hot"
    assert answer.lines[2].startswith("      unexpected  2m       opened hot of x: a.b of x is above 5")
    assert answer.lines[3] == "      what happened:"
    assert answer.lines[-1] == "0 passed, 1 failed"


def test_operator_events_are_among_what_happened(alone: CommandLine, tests: Path) -> None:
    snooze = "{at: 3m, snooze: hot, owner: x, for: 3m, by: ann}"
    (tests / "t.yaml").write_text((TEST % "3m").replace("9x5}", f"9x5}}, {{event: trip}}, {snooze}"))
    lines = alone("test", str(tests / "t.yaml"), exit_code=1).lines
    shown = [line.split()[:3] for line in lines[lines.index("      what happened:") + 1 : -1]]
    assert shown[1:] == [["3m", "event", "alarm-snoozed"], ["6m", "event", "alarm-snooze-ended"]]


def test_junit_and_json(alone: CommandLine, tests: Path, tmp_path: Path) -> None:
    (tests / "t.yaml").write_text(TEST % "2m" + "---\n" + (TEST % "3m").replace("it opens", "it fails"))
    answer = alone("test", str(tests / "t.yaml"), "--junit", str(tmp_path / "out.xml"), "--json", exit_code=1)
    assert [(result["name"], result["passed"]) for result in answer.json] == [
        ("it opens", True),
        ("it fails", False),
    ]
    (suite,) = ElementTree.fromstring((tmp_path / "out.xml").read_text())
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["it fails"]


# The attributes of junit-10.xsd of the xUnit plugin of Jenkins, which rejects a file with any other.
JENKINS_SUITES = {"name", "time", "tests", "failures", "errors"}
JENKINS_SUITE = {*JENKINS_SUITES, "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"}
JENKINS_CASE = {"name", "time", "classname", "group"}
JENKINS_FAULT = {"type", "message"}


def test_junit_has_the_attributes_that_jenkins_accepts(
    alone: CommandLine, tests: Path, tmp_path: Path
) -> None:
    (tests / "t.yaml").write_text(TEST % "2m" + "---\n" + (TEST % "3m").replace("it opens", "it fails"))
    (tests / "u.yaml").write_text("test: {name: broken, rules: [none.yaml], until: 1h}")
    alone(
        "test",
        str(tests / "t.yaml"),
        str(tests / "u.yaml"),
        "--junit",
        str(tmp_path / "out.xml"),
        exit_code=1,
    )
    suites = ElementTree.fromstring((tmp_path / "out.xml").read_text())
    (suite,) = suites
    assert set(suites.keys()) <= JENKINS_SUITES
    assert {"name", "tests", "failures", "errors"} <= set(suite.keys()) <= JENKINS_SUITE
    assert len(suite) == 3
    for case in suite:
        assert {"name"} <= set(case.keys()) <= JENKINS_CASE
        for fault in case:
            assert fault.tag in ("failure", "error")
            assert set(fault.keys()) <= JENKINS_FAULT
    assert f"{tests / 't.yaml'}:" in str(suite[1][0].text)


def test_junit_that_cannot_be_written_is_refused_before_the_tests_run(
    alone: CommandLine, tests: Path, tmp_path: Path
) -> None:
    (tests / "t.yaml").write_text(TEST % "2m")
    place = tmp_path / "missing" / "out.xml"
    refused = alone("test", str(tests / "t.yaml"), "--junit", str(place), exit_code=1)
    assert refused.err == (
        f"tocsin: --junit {place} cannot be written: name a file in a folder that you can write to\n"
    )


def test_only_some(alone: CommandLine, tests: Path) -> None:
    (tests / "t.yaml").write_text(TEST % "2m")
    assert alone("test", str(tests / "t.yaml"), "-k", "opens").lines[-1] == "1 passed, 0 failed"
    refused = alone("test", str(tests / "t.yaml"), "-k", "closes", exit_code=1)
    assert "no test has 'closes' in its name" in refused.err


def test_an_output_that_cannot_show_a_character_shows_its_code(tests: Path) -> None:
    (tests / "t.yaml").write_text((TEST % "2m").replace("it opens", "größe ✓"), encoding="utf-8")
    command = [*TOCSIN, "test", str(tests / "t.yaml")]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    answer = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    assert (answer.stdout.decode("latin-1"), answer.stderr) == (
        "pass  größe \\u2713\n1 passed, 0 failed\n",
        b"",
    )


def test_json_is_json_although_a_warning_is_logged(tests: Path) -> None:
    rules = RULES.replace("for: 2m", 'message: "{{ labels.site }} is hot"')
    (tests / "rules.yaml").write_text(rules)
    (tests / "t.yaml").write_text(TEST % "0s")
    command = [*TOCSIN, "test", str(tests / "t.yaml"), "--json"]
    answer = subprocess.run(command, capture_output=True, timeout=60, check=False, text=True)
    assert [result["passed"] for result in json.loads(answer.stdout)] == [True]
    assert "message cannot be filled" in answer.stderr

"""`tocsin check` and `tocsin apply`: all problems at once, and all or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine
from tocsin.cli.rules.apply import _progress_printer

_GOOD = """\
schedule:
  name: heartbeat
  every: 5s
---
action_rule:
  name: show
  on: event
  when: 'schedule == "heartbeat"'
  action: say
---
action:
  name: say
  log:
    message: alive
"""
_BAD = """\
schedule:
  name: digest
  crn: "0 8 * * *"
---
schedule:
  name: other
  every: 5
"""


def _file(folder: Path, text: str, name: str = "rules.yaml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_check_counts_what_it_read_and_needs_no_server(alone: CommandLine, tmp_path: Path) -> None:
    file = _file(tmp_path, _GOOD)
    assert alone("check", file).out == "ok: 1 schedule, 1 action_rule, 1 action\n"
    assert alone("check", file, "--json").json == {
        "ok": True,
        "documents": {"schedule": 1, "action_rule": 1, "action": 1},
        "warnings": [],
    }


def test_check_lists_every_problem_of_every_file_with_its_place(alone: CommandLine, tmp_path: Path) -> None:
    first, second = _file(tmp_path, _BAD), _file(tmp_path, "schedule: {name: x}\n", "second.yaml")
    answer = alone("check", first, second, exit_code=1)
    lines = answer.err.splitlines()
    assert lines[0] == f"{first}:3:3: unknown key 'crn' in schedule 'digest', did you mean 'cron'?"
    assert any(line.startswith(f"{first}:7:") for line in lines)
    assert lines[-1].startswith(f"{second}:1:")
    problems = alone("check", first, second, "--json", exit_code=1).json["error"]["problems"]
    assert [f"{p['file']}:{p['line']}:{p['column']}: {p['message']}" for p in problems] == lines


def test_a_missing_file_is_one_line(alone: CommandLine, tmp_path: Path) -> None:
    answer = alone("check", str(tmp_path / "nope.yaml"), exit_code=1)
    assert answer.err.count("\n") == 1
    assert "nope.yaml" in answer.err


def test_apply_lists_the_changes_and_the_second_apply_none(tocsin: CommandLine, tmp_path: Path) -> None:
    file = _file(tmp_path, _GOOD)
    header, first, *rest = tocsin("apply", file, "--by", "ann").lines
    assert header.split() == ["OUTCOME", "KIND", "NAME", "NEXT", "FIRE"]
    assert first.split()[:3] == ["added", "schedule", "heartbeat"]
    assert rest[-1] == "applied at seq 1"
    again = tocsin("apply", file, "--json").json
    assert again["seq"] is None
    assert (again["changes"], again["counts"]) == ([], {"unchanged": 3})
    assert tocsin("audit", "heartbeat", "--json").json[0]["who"] == "ann"


def test_a_bad_file_among_good_ones_applies_nothing(tocsin: CommandLine, tmp_path: Path) -> None:
    bad = _file(tmp_path, _BAD, "bad.yaml")
    answer = tocsin("apply", _file(tmp_path, _GOOD), bad, exit_code=1)
    assert answer.err.splitlines()[0].startswith(f"{bad}:3:3: ")
    assert tocsin("schedules", "--json").json == []
    assert tocsin("events", "--json").json == []


def test_apply_checks_conditions_against_the_types_that_were_applied_before(
    tocsin: CommandLine, tmp_path: Path
) -> None:
    tocsin("apply", _file(tmp_path, "datapoint_type: {name: t, key: k, value: string}"))
    rule = _file(tmp_path, "event_rule: {name: r, datapoint: k, above: 5}", "rule.yaml")
    refused = tocsin("apply", rule, exit_code=1)
    assert "'above' of event_rule 'r' cannot be used: '>' cannot be applied to string" in refused.err


def test_apply_knows_what_was_applied_before(tocsin: CommandLine, tmp_path: Path) -> None:
    tocsin("apply", _file(tmp_path, _GOOD))
    rule = _GOOD.split("---\n")[1].replace("show", "show-again")
    assert tocsin("apply", _file(tmp_path, rule, "more.yaml")).lines[-1] == "applied at seq 2"
    assert (
        tocsin("schedule", "add", "x", "--every", "1h", "--action", "say", "--json").json["action"] == "say"
    )


def test_every_document_that_an_apply_changes_is_in_the_audit(tocsin: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("event_rule: {name: hot, datapoint: a.b, above: 5}\n")
    tocsin("apply", str(path))
    path.write_text("event_rule: {name: hot, datapoint: a.b, above: 7}\n")
    tocsin("apply", str(path))
    tocsin("apply", str(path))
    found = tocsin("audit", "hot", "--json").json
    assert [(change["kind"], change["verb"]) for change in found] == [
        ("event_rule", "add"),
        ("event_rule", "change"),
    ]
    assert "above 5.0 -> 7.0" in tocsin("audit", "hot").lines[-1]


def test_a_backlog_is_reported_in_tenths(capsys: pytest.CaptureFixture[str]) -> None:
    report = _progress_printer()
    for done in range(250, 5001, 250):
        report(done, 5000)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "processing overdue staleness checks: 5,000 of 5,000"


def test_a_one_shot_in_the_past_is_a_warning_in_a_new_database(tocsin: CommandLine, tmp_path: Path) -> None:
    past = (
        "schedule: {name: past, at: '2020-01-01T00:00:00Z'}\n---\nschedule: {name: later, cron: '@daily'}\n"
    )
    (tmp_path / "r.yaml").write_text(past)
    planned = tocsin("plan", "r.yaml")
    assert "r.yaml:1:28: warning: 'at' of schedule 'past' lies in the past" in planned.err
    assert "next fires: never" in planned.out
    applied = tocsin("apply", "r.yaml")
    assert "lies in the past" in applied.err
    assert "later" in applied.out
    assert tocsin("apply", "r.yaml").lines[-1] == "nothing changed"
    names = [schedule["name"] for schedule in tocsin("schedules", "--json").json]
    assert names == ["later"]


def test_a_schedule_that_moves_into_the_past_ends(tocsin: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("schedule: {name: s, at: '2099-01-01T00:00:00Z'}\n")
    tocsin("apply", "r.yaml")
    (tmp_path / "r.yaml").write_text("schedule: {name: s, at: '2020-01-01T00:00:00Z'}\n")
    tocsin("apply", "r.yaml")
    (schedule,) = tocsin("schedules", "--json").json
    assert schedule["status"] == "cancelled"


def test_warnings_are_part_of_the_json_of_an_apply(tocsin: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("event_rule: {name: hot, datapoint: t, above: 5}\n")
    (planned,) = tocsin("plan", "r.yaml", "--json").json["warnings"]
    (applied,) = tocsin("apply", "r.yaml", "--json").json["warnings"]
    assert planned == applied
    assert "reaches no channel" in applied["message"]

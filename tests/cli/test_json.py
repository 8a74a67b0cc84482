"""`--json` of every command: exactly one document on stdout, errors included, and logs on stderr."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
import typer
from typer.testing import CliRunner

from tests.cli.conftest import CommandLine
from tests.paths import ROOT
from tocsin.cli.app import app

QUICKSTART = str(ROOT / "examples" / "quickstart.yaml")
TESTS = str(ROOT / "examples" / "tests")
IMPORTED = Path(__file__).parents[1] / "rules" / "importer" / "files"
ID = "aaaaaaaa"
# Words for each command that has --json, and whether it needs Postgres or NATS.
COMMANDS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "check": ((QUICKSTART,), None),
    "plan": ((QUICKSTART,), "postgres"),
    "apply": ((QUICKSTART,), "postgres"),
    "test": ((TESTS,), None),
    "import prometheus": ((str(IMPORTED / "alerts.yml"),), None),
    "import crontab": ((str(IMPORTED / "crontab"),), None),
    "rules": ((), "postgres"),
    "channels": ((), "postgres"),
    "channels test": (("ops",), "postgres"),
    "backtest": (("--since", "1h"), "postgres"),
    "export": (("-o", "out.gz", "--since", "1h"), "postgres"),
    "calendar show": (("holidays",), "postgres"),
    "next": (("--every", "5s"), None),
    "parse-time": (("tomorrow at 9am",), None),
    "alarms": ((), "postgres"),
    "series": ((), "postgres"),
    "health": ((), "postgres"),
    "heartbeats": ((), "postgres"),
    "schedules": ((), "postgres"),
    "upcoming": ((), "postgres"),
    "timers": ((), "postgres"),
    "timers retry": (("schedule-tick", "x"), "postgres"),
    "events": ((), "postgres"),
    "actions": ((), "postgres"),
    "actions show": ((ID,), "postgres"),
    "actions retry": ((ID,), "postgres"),
    "actions cancel": ((ID,), "postgres"),
    "history": ((), "postgres"),
    "stats": ((), "postgres"),
    "explain": (("x",), "postgres"),
    "audit": ((), "postgres"),
    "audit verify": ((), "postgres"),
    "dead-letters": ((), "nats"),
    "dead-letters retry": (("--all",), "postgres"),
    "ack": ((ID,), "postgres"),
    "snooze": ((ID, "1h"), "postgres"),
    "resolve": ((ID,), "postgres"),
    "notifications": ((), "postgres"),
    "forget": (("customer-4711", "--yes"), "postgres"),
    "env": ((), None),
    "roles check": ((), "postgres"),
    "roles grants": ((), "postgres"),
    "silence add": (("--where", "true", "--for", "1h", "--yes"), "postgres"),
    "silence list": ((), "postgres"),
    "silence expire": ((ID,), "postgres"),
    "send": (("plant", "a", "1"), "nats"),
    "emit": (("order-shipped",), "nats"),
    "checkin": (("nightly-backup",), "nats"),
    "schedule add": (("x", "--every", "1h"), "postgres"),
    "schedule show": (("x",), "postgres"),
    "schedule pause": (("x",), "postgres"),
    "schedule resume": (("x",), "postgres"),
    "schedule run": (("x",), "postgres"),
    "schedule cancel": (("x",), "postgres"),
    "token add": (("grafana", "--grant", "viewer:*"), "postgres"),
    "token ping": (("nightly-backup",), "postgres"),
    "token list": ((), "postgres"),
    "token revoke": ((ID,), "postgres"),
    "token login": ((), "postgres"),
    "migrate": ((), "postgres"),
    "streams create": ((), "postgres"),
    "doctor": ((), None),
    "prune": ((), "postgres"),
    "cdc status": ((), "postgres"),
    "cdc verify": ((), "postgres"),
    "cdc adopt": ((), "postgres"),
    "cdc rebuild": (("--yes",), "postgres"),
}
SERVED = [name for name, (_, server) in COMMANDS.items() if server is not None]


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        yield (*path, name), command


def _document(out: str) -> Any:
    return json.loads(out, parse_constant=pytest.fail)


def _error(out: str) -> dict[str, Any]:
    document = _document(out)
    assert list(document) == ["error"]
    error: dict[str, Any] = document["error"]
    assert error["message"]
    assert isinstance(error["remedy"], str)
    return error


def test_the_table_has_every_command_with_json() -> None:
    with_json = {
        " ".join(path)
        for path, command in _commands(typer.main.get_command(app))
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert set(COMMANDS) == with_json


@pytest.mark.parametrize("name", COMMANDS)
def test_an_answer_is_one_document(tocsin: CommandLine, name: str) -> None:
    """On an empty instance; some commands find nothing, and their error is the document."""
    answer = tocsin.answer(*name.split(), *COMMANDS[name][0], "--json")
    document = _document(answer.out)
    if answer.exit_code and name != "doctor":
        _error(answer.out)
    else:
        assert document is not None
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("name", SERVED)
def test_without_a_server_the_error_is_one_document(alone: CommandLine, name: str) -> None:
    words, server = COMMANDS[name]
    error = _error(alone(*name.split(), *words, "--json", exit_code=2).out)
    assert error["message"] == f"TOCSIN_{str(server).upper()} is not set"
    assert error["remedy"].startswith(f"set TOCSIN_{str(server).upper()}, for example ")


@pytest.mark.parametrize("name", SERVED)
def test_an_unreachable_server_is_one_document(alone: CommandLine, tmp_path: Path, name: str) -> None:
    words, server = COMMANDS[name]
    alone.environment["TOCSIN_POSTGRES"] = f"postgresql:///tocsin?host={tmp_path}"
    alone.environment["TOCSIN_NATS"] = "nats://127.0.0.1:1"
    error = _error(alone(*name.split(), *words, "--json", exit_code=2).out)
    assert error["message"].startswith(f"cannot reach {server} at ")
    assert error["remedy"].startswith("start it, or set TOCSIN_")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_option_is_one_document(alone: CommandLine, name: str) -> None:
    answer = alone(*name.split(), *COMMANDS[name][0], "--json", "--wrong", exit_code=2)
    error = _error(answer.out)
    assert "--wrong" in error["message"]
    assert error["remedy"] == f"see `tocsin {name} --help`"
    assert answer.err == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("events", "--limit", "0"),
            "Invalid value for '--limit' / '-n': must be greater than or equal to 1",
        ),
        (("explain",), "Missing argument"),
        (("alarmss",), "No such command 'alarmss'. Did you mean 'alarms'"),
        (("when", "now"), "'tocsin when' is now 'tocsin parse-time'."),
    ],
)
def test_a_wrong_command_line_is_one_document(
    alone: CommandLine, words: tuple[str, ...], message: str
) -> None:
    assert _error(alone(*words, "--json", exit_code=2).out)["message"].startswith(message)


@pytest.mark.parametrize("command", ["check", "plan", "apply"])
def test_problems_of_rule_files_are_one_document(tocsin: CommandLine, tmp_path: Path, command: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("schedule: {name: x, crn: 1}\n---\nschedule: {name: y}\n")
    error = _error(tocsin(command, str(path), "--json", exit_code=1).out)
    assert error["message"] == "2 problems in the rule files"
    assert {problem["file"] for problem in error["problems"]} == {str(path)}


def test_a_setting_out_of_range_is_one_document(tocsin: CommandLine) -> None:
    tocsin.environment["TOCSIN_TICK_MS"] = "0"
    assert "TOCSIN_TICK_MS='0'" in _error(tocsin("events", "--json", exit_code=1).out)["message"]


def test_json_lines_have_their_error_as_one_line(alone: CommandLine) -> None:
    error = _error(alone("tail", "--json-lines", exit_code=2).out)
    assert error["message"] == "TOCSIN_NATS is not set"


def test_warnings_of_a_rule_test_go_to_stderr(alone: CommandLine, tmp_path: Path) -> None:
    """A message template that names a label which the datapoint lacks logs a warning."""
    (tmp_path / "rules.yaml").write_text(
        "event_rule: {name: hot, datapoint: a.b, above: 5, message: '{{ owner }} in {{ labels.site }}'}\n"
    )
    (tmp_path / "t.yaml").write_text(
        "test:\n  name: it opens\n  rules: [rules.yaml]\n"
        "  given: [{series: a.b, owner: x, every: 1m, values: 9x5}]\n  until: 10m\n"
        "  expect: [{at: 0s, opened: hot}]\n"
    )
    answer = alone("test", str(tmp_path / "t.yaml"), "--json")
    assert _document(answer.out)[0]["passed"]
    (line,) = answer.err.splitlines()
    assert json.loads(line)["level"] == "warning"


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("next", "parse-time", "env")])
def test_every_command_configures_its_logs(tocsin: CommandLine, name: str) -> None:
    """Without a configuration structlog prints to stdout."""
    words = [*name.split(), *COMMANDS[name][0], "--json"]
    try:
        CliRunner().invoke(app, words, env=tocsin.environment, prog_name="tocsin")
        assert structlog.is_configured()
    finally:
        structlog.reset_defaults()

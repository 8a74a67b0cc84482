"""Crontabs: what cron runs and when, as schedules."""

from __future__ import annotations

from typing import Any

import pytest

from rules.documents.load import load_text
from rules.importer import translate_crontab
from tocsin.core.errors import InvalidInput


def schedule(line: str, **options: Any) -> dict[str, Any]:
    (rule,) = translate_crontab({"crontab": line}, **options).rules
    assert rule.problem == ""
    ((kind, document),) = rule.documents
    assert kind == "schedule"
    return dict(document)


def test_a_line_is_a_paused_schedule_with_the_command() -> None:
    assert schedule("30 2 * * 1-5  /usr/local/bin/backup --full db", tz="Europe/Amsterdam") == {
        "name": "backup-full-db",
        "cron": "30 2 * * 1-5",
        "tz": "Europe/Amsterdam",
        "payload": {"command": "/usr/local/bin/backup --full db"},
        "enabled": False,
    }


def test_an_enabled_schedule_has_no_note() -> None:
    (rule,) = translate_crontab({"crontab": "@daily x"}, enabled=True).rules
    assert "enabled" not in rule.documents[0].document
    assert not rule.notes


@pytest.mark.parametrize(
    ("line", "cron"),
    [
        ("@daily x", "@daily"),
        ("@midnight x", "@daily"),
        ("@annually x", "@yearly"),
        ("*/5\t*  * * * x", "*/5 * * * *"),
    ],
)
def test_times(line: str, cron: str) -> None:
    assert schedule(line)["cron"] == cron


def test_variables_of_timezones_count_for_the_lines_below_them() -> None:
    text = 'MAILTO=ops\n@daily a\nCRON_TZ = "Asia/Tokyo"\n@daily b\n# TZ=UTC\n@daily c\n'
    rules = translate_crontab({"crontab": text}).rules
    assert [rule.documents[0].document["tz"] for rule in rules] == ["UTC", "Asia/Tokyo", "Asia/Tokyo"]
    assert [rule.line for rule in rules] == [2, 4, 6]


def test_a_percent_sign_begins_the_standard_input() -> None:
    payload = schedule(r"0 0 * * * date +\%F; mail ops%Hello%all")["payload"]
    assert payload == {"command": "date +%F; mail ops", "stdin": "Hello\nall"}


def test_lines_of_the_system_name_a_user() -> None:
    payload = schedule("17 * * * * root run-parts /etc/cron.hourly", has_user=True)["payload"]
    assert payload == {"command": "run-parts /etc/cron.hourly", "user": "root"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("@reboot x", "'@reboot' is not a time"),
        ("1 2 3 * x", "it has no command"),
        ("99 * * * * x", "99"),
        ("@daily", "it has no command"),
        ("hello", "it has no command"),
        ("CRON_TZ=Mars/Base\n@daily x", "Mars/Base"),
    ],
)
def test_what_has_no_translation_says_why(line: str, problem: str) -> None:
    (rule,) = translate_crontab({"crontab": line}).rules
    assert problem in rule.problem


def test_names_are_unique_and_the_file_is_valid() -> None:
    loaded = load_text(translate_crontab({"crontab": "@daily x\n@hourly x\n@weekly 1 2 3"}).yaml())
    assert [document.name for document in loaded.of_kind("schedule")] == ["x", "x-2", "job"]


def test_a_file_has_a_bound() -> None:
    with pytest.raises(InvalidInput, match="at most 10,000"):
        translate_crontab({"crontab": "@daily x\n" * 10_001})

"""An apply of a calendar changes the schedules that use it, whether they are in the files or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

HOLIDAYS = 'calendar: {name: holidays, yearly: ["12-25"], dates: [%s]}\n'
USERS = """\
calendar: {name: business, weekdays: [mon, tue, wed, thu, fri], none_of: [holidays]}
---
schedule: {name: yearly-close, cron: "0 9 31 12 *", tz: Europe/London, only_in: [business], shift: previous}
---
maintenance: {name: closed, where: "true", cron: "0 0 * * *", duration: 20h, only_in: [holidays]}
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    holidays, users = tmp_path / "holidays.yaml", tmp_path / "users.yaml"
    holidays.write_text(HOLIDAYS % "")
    users.write_text(USERS)
    return holidays, users


def armed(tocsin: CommandLine, name: str) -> str:
    return str(tocsin("schedule", "show", name, "--json").json["next_at"])


def test_a_changed_calendar_changes_the_schedules_that_use_it(
    tocsin: CommandLine, files: tuple[Path, Path]
) -> None:
    holidays, users = files
    tocsin("apply", str(holidays), str(users))
    before = armed(tocsin, "yearly-close")
    day = before[:10]
    holidays.write_text(HOLIDAYS % f'"{day}"')
    plan = tocsin("plan", str(holidays)).out
    assert "~ calendar holidays" in plan
    assert "~ schedule yearly-close" in plan
    tocsin("apply", str(holidays))
    after = armed(tocsin, "yearly-close")
    assert after[:10] < day
    assert tocsin("plan", str(holidays), "--exit-code").exit_code == 0

    explained = tocsin("explain", "yearly-close", "--at", before).out
    assert "not in calendar business, moved to the previous day that is allowed (generation 2)" in explained


def test_the_documents_in_force_as_yaml_change_nothing(
    tocsin: CommandLine, files: tuple[Path, Path], tmp_path: Path
) -> None:
    tocsin("apply", *map(str, files))
    text = tocsin("rules", "--yaml").out
    assert "none_of" in text
    (tmp_path / "again.yaml").write_text(text)
    assert tocsin("plan", str(tmp_path / "again.yaml"), "--exit-code").exit_code == 0
    assert tocsin("plan", str(tmp_path / "again.yaml"), "--prune", "--exit-code").exit_code == 0


def test_a_calendar_in_use_cannot_be_pruned(tocsin: CommandLine, files: tuple[Path, Path]) -> None:
    holidays, users = files
    tocsin("apply", str(holidays), str(users))
    answer = tocsin("plan", str(users), "--prune", exit_code=1)
    assert "unknown calendar 'holidays' in calendar 'business'" in answer.err

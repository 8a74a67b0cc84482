"""`tocsin import`: files in, documents out, and what has no translation on stderr."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine

ALERTS = """groups:
- rules:
  - {alert: Hot, expr: temperature > 90}
  - {alert: Odd, expr: "topk(3, x) > 1"}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "alerts.yml").write_text(ALERTS)
    return tmp_path


def test_documents_are_printed_and_the_rest_is_reported(alone: CommandLine, folder: Path) -> None:
    answer = alone("import", "prometheus", "alerts.yml")
    assert answer.out.startswith("# alerts.yml:3: temperature > 90\nevent_rule:\n  name: hot\n")
    assert answer.err.splitlines() == [
        "alerts.yml:4: Odd: 'topk' has no translation",
        "1 of 2 translated into 1 documents; 0 have notes in their comments",
    ]


def test_what_is_written_passes_the_check(alone: CommandLine, folder: Path) -> None:
    assert alone("import", "prometheus", "alerts.yml", "-o", "rules.yaml").out == ""
    assert alone("check", "rules.yaml").out.startswith("ok: 1 event_rule")


def test_strict_writes_nothing(alone: CommandLine, folder: Path) -> None:
    answer = alone("import", "prometheus", "alerts.yml", "-o", "rules.yaml", "--strict", exit_code=1)
    assert "Odd" in answer.err
    assert not (folder / "rules.yaml").exists()


def test_json_has_every_rule(alone: CommandLine, folder: Path) -> None:
    answer = alone("import", "prometheus", "alerts.yml", "--json").json
    assert [(rule["name"], rule["line"], rule["problem"]) for rule in answer["rules"]] == [
        ("Hot", 3, ""),
        ("Odd", 4, "'topk' has no translation"),
    ]


def test_a_folder_stands_for_its_files(alone: CommandLine, folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / "b.yaml").write_text(ALERTS.replace("Hot", "Cold"))
    (folder / "notes.txt").write_text("no rules")
    assert "2 of 4 translated" in alone("import", "prometheus", ".").err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("prometheus", "missing.yml"), "missing.yml cannot be read: No such file or directory"),
        (("prometheus", "empty"), "empty has no files to import"),
        (("prometheus", "latin.yml"), "latin.yml is not UTF-8 at byte 0"),
        (("prometheus", "alerts.yml", "-o", "no/such/folder.yaml"), "cannot be written"),
        (("crontab", "missing"), "missing cannot be read"),
    ],
)
def test_bad_input_is_named(alone: CommandLine, folder: Path, words: tuple[str, ...], problem: str) -> None:
    (folder / "empty").mkdir()
    (folder / "latin.yml").write_bytes(b"\xff")
    assert problem in alone("import", *words, exit_code=1).err


def test_a_crontab(alone: CommandLine, folder: Path) -> None:
    (folder / "crontab").write_text("0 2 * * * root backup\n@reboot root x\n")
    answer = alone("import", "crontab", "crontab", "--system", "--tz", "Asia/Tokyo", "--enabled")
    assert "cron: 0 2 * * *\n  tz: Asia/Tokyo\n" in answer.out
    assert "crontab:2: x: '@reboot' is not a time" in answer.err

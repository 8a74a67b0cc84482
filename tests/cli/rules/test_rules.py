"""`tocsin rules`: the documents in force, as a list, as JSON and as a rule file."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.cli.conftest import CommandLine
from tests.paths import ROOT
from tocsin.core.settings import Settings

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
RULE = "event_rule: {name: hot, datapoint: a.b, above: %d}\n"


def _apply(tocsin: CommandLine, tmp_path: Path, text: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    tocsin("apply", str(path), "--by", "ann")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_yaml_of_every_example_is_checked_and_planned_without_changes(
    tocsin: CommandLine, tmp_path: Path, path: Path
) -> None:
    tocsin("apply", str(path))
    shown = tmp_path / "shown.yaml"
    shown.write_text(tocsin("rules", "--yaml").out, encoding="utf-8")
    checked = tocsin("check", str(shown), "--json").json["documents"]
    assert checked == tocsin("check", str(path), "--json").json["documents"]
    for words in (("plan", "--exit-code"), ("plan", "--exit-code", "--prune")):
        assert tocsin(*words, str(shown)).out.startswith("no changes: ")


def test_the_list_has_version_seq_time_and_author(tocsin: CommandLine, tmp_path: Path) -> None:
    _apply(tocsin, tmp_path, RULE % 5)
    _apply(tocsin, tmp_path, RULE % 7 + "---\nschedule: {name: beat, every: 5s, title: The pulse}\n")
    header, first, second = tocsin("rules").lines
    assert first.endswith("ann  The pulse")
    assert header.split() == ["KIND", "NAME", "VERSION", "SINCE", "SEQ", "APPLIED", "AT", "BY", "TITLE"]
    assert first.split()[:4] == ["schedule", "beat", "1", "2"]
    assert second.split()[:4] == ["event_rule", "hot", "2", "2"]
    assert second.endswith("Z  ann")
    rows = tocsin("rules", "event_rule", "--json").json
    assert [(row["name"], row["version"], row["seq"], row["applied_by"], row["via"]) for row in rows] == [
        ("hot", 2, 2, "ann", "cli")
    ]


def test_one_document_is_shown_with_its_version(tocsin: CommandLine, tmp_path: Path) -> None:
    _apply(tocsin, tmp_path, RULE % 5)
    lines = tocsin("rules", "event_rule", "hot").lines
    assert lines[0] == "# version 1, in force since seq 1"
    assert lines[1].startswith("# applied at ")
    assert lines[1].endswith("Z by ann via cli")
    assert lines[2:] == ["event_rule:", "  name: hot", "  datapoint: a.b", "  above: 5.0"]
    assert tocsin("rules", "event_rule", "hot", "--yaml").lines == lines[2:]
    assert tocsin("rules", "event_rule", "hot", "--json").json["document"]["above"] == 5


def test_without_the_event_of_the_apply_its_time_and_author_are_unknown(
    tocsin: CommandLine, tmp_path: Path, settings: Settings
) -> None:
    _apply(tocsin, tmp_path, RULE % 5)
    with psycopg.connect(settings.postgres, autocommit=True) as session:
        session.execute("delete from tocsin.event")
    assert tocsin("rules").lines[1].split() == ["event_rule", "hot", "1", "1"]
    assert tocsin("rules", "event_rule", "hot").lines[1] == "event_rule:"


def test_removed_documents_are_not_listed(tocsin: CommandLine, tmp_path: Path) -> None:
    _apply(tocsin, tmp_path, RULE % 5 + "---\nschedule: {name: beat, every: 5s}\n")
    path = tmp_path / "rules.yaml"
    path.write_text(RULE % 5)
    tocsin("apply", str(path), "--prune", "--yes")
    assert [row["name"] for row in tocsin("rules", "--json").json] == ["hot"]


def test_without_rules_the_answer_is_empty(tocsin: CommandLine) -> None:
    assert tocsin("rules").out == "no rules are applied\n"
    assert tocsin("rules", "system").out == "no system is applied\n"
    assert tocsin("rules", "--json").json == []
    assert tocsin("rules", "--yaml", exit_code=1).err == (
        "tocsin: no rules are applied: apply some with `tocsin apply`\n"
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("schedules",), "unknown kind 'schedules': did you mean 'schedule'?"),
        (("x",), "unknown kind 'x': use one of schedule, event_rule, action_rule, action, channel"),
        (("schedule", "beat"), "no schedule 'beat' is applied: `tocsin rules schedule` lists those"),
        (("--yaml", "--json"), '"--yaml and --json exclude each other"'),
    ],
)
def test_a_wrong_kind_or_name_is_refused(tocsin: CommandLine, words: tuple[str, ...], error: str) -> None:
    answer = tocsin("rules", *words, exit_code=1)
    assert error in answer.out + answer.err

"""Paths become texts: directories, missing and unreadable files, encodings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rules.documents.load import RulesInvalid, load_files
from rules.documents.load.files import MAX_FILE_BYTES, read_files
from rules.replay.rule_tests.load import load_tests

GOOD = "schedule: {{name: {name}, every: 5s}}\n"


def problems_of(*paths: Path) -> str:
    with pytest.raises(RulesInvalid) as refused:
        load_files(paths)
    return str(refused.value)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_a_directory_stands_for_its_yaml_files_in_order(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.yaml"):
        write(tmp_path / name, GOOD.format(name=name[0]))
    write(tmp_path / "notes.txt", "not: [a rule")
    assert [document.name for document in load_files([tmp_path]).documents] == ["a", "b", "c"]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", GOOD.format(name="a"))
    assert len(load_files([path, tmp_path, path]).documents) == 1


def test_a_missing_file_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "nope.yaml"
    assert problems_of(path) == f"{path}:1:1: the file does not exist"


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    # A file where a directory is expected: unlike permissions, this also stops root.
    path = write(tmp_path / "file", "x") / "inside.yaml"
    assert problems_of(path) == f"{path}:1:1: the file cannot be read: not a directory"


def test_an_empty_directory_is_a_problem(tmp_path: Path) -> None:
    assert problems_of(tmp_path) == f"{tmp_path}:1:1: the directory contains no *.yaml or *.yml file"


@pytest.mark.parametrize("content", ["", "\n\n", "# only a comment\n", "---\n---\n", "null\n"])
def test_a_file_without_documents_is_a_problem(tmp_path: Path, content: str) -> None:
    path = write(tmp_path / "a.yaml", content)
    assert problems_of(path) == f"{path}:1:1: the file contains no document, write a schedule or a rule"


def test_a_file_that_is_not_utf8_is_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", "schedule:\n  owner: ü".encode() + b"\xff\n")
    assert problems_of(path) == f"{path}:2:11: the file is not UTF-8, save it as UTF-8"


def test_a_file_that_is_too_large_is_a_problem(tmp_path: Path) -> None:
    document = GOOD.format(name="a").encode()
    path = write(tmp_path / "a.yaml", document + b"#" * (MAX_FILE_BYTES - len(document)))
    assert len(load_files([path]).documents) == 1
    write(path, path.read_bytes() + b"#")
    assert problems_of(path) == f"{path}:1:1: the file is larger than 5 MB, split it"


def test_the_problems_of_all_files_are_reported_in_their_order(tmp_path: Path) -> None:
    late = write(tmp_path / "z.yaml", "schedule: {name: z, every: 5}\n---\nschedule: [")
    early = write(tmp_path / "a.yaml", "shedule: {name: a}\n")
    missing = tmp_path / "missing.yaml"
    lines = problems_of(late, missing, early).split("\n")
    assert [line.removeprefix(f"{tmp_path}/").split(": ")[0] for line in lines] == [
        "missing.yaml:1:1",
        "z.yaml:1:28",
        "z.yaml:4:1",
        "a.yaml:1:1",
    ]


def test_checking_a_file_imports_no_driver_of_a_server() -> None:
    """`tocsin check` takes less than a second, and unused imports would be a fifth of that."""
    code = (
        "import sys, rules.documents.load; "
        "print([name for name in ('psycopg', 'nats', 'httpx') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "[]\n"


def test_subfolders_are_read_in_order_without_hidden_entries(tmp_path: Path) -> None:
    for name in ("b.yaml", "a/z.yml", "a/deep/x.yaml", "c/y.yaml", ".git/config.yaml", "a/.hidden.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("schedule: {name: x, every: 1h}\n")
    (tmp_path / "c" / "notes.txt").write_text("no rules")
    sources, problems = read_files([tmp_path])
    names = [str(Path(source.name).relative_to(tmp_path)) for source in sources]
    assert names == ["a/deep/x.yaml", "a/z.yml", "b.yaml", "c/y.yaml"]
    assert problems == []


def test_a_folder_that_contains_itself_through_a_link_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "r.yaml").write_text("schedule: {name: x, every: 1h}\n")
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    sources, problems = read_files([tmp_path])
    assert len(sources) == 1
    (problem,) = problems
    assert problem.file == str(tmp_path / "a" / "again")
    assert "leads back to" in problem.message


def test_a_link_to_another_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "r.yaml").write_text("schedule: {name: x, every: 1h}\n")
    (tmp_path / "rules" / "common").symlink_to(tmp_path / "shared")
    sources, problems = read_files([tmp_path / "rules"])
    assert ([Path(source.name).name for source in sources], problems) == (["r.yaml"], [])


def test_a_folder_may_hold_rules_and_their_tests(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    rules = write(tmp_path / "a.yaml", GOOD.format(name="a"))
    tests = write(tmp_path / "tests" / "t.yaml", "test: {name: it, rules: [../a.yaml], until: 1m}\n")
    assert [document.name for document in load_files([tmp_path]).documents] == ["a"]
    assert [test.name for test in load_tests([tmp_path])] == ["it"]
    assert "unknown kind 'test'" in problems_of(tests)
    with pytest.raises(RulesInvalid, match="unknown kind 'schedule'"):
        load_tests([rules])

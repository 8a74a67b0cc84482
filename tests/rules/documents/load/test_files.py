"""Paths become texts: directories, missing and unreadable files, encodings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rules.documents.load import RulesInvalid, load_files
from rules.documents.load.files import MAX_FILE_BYTES

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

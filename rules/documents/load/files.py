"""Reads the texts of rule files from paths.

Guarantee: a directory stands for all `*.yaml` and `*.yml` files in it and in its subfolders, sorted
by path. Entries whose names begin with a dot are left out. A file that is named twice is read once.
A file that cannot be used becomes a problem with its name, and the others are still read. A link to
a folder that contains it is such a problem.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rules.documents.load.problems import RuleProblem

MAX_FILE_BYTES = 5_000_000


class SourceFile(NamedTuple):
    name: str
    text: str
    is_from_folder: bool = False
    """Found in a folder, not named itself. A folder may hold rules and their tests."""


def read_files(paths: Sequence[Path]) -> tuple[list[SourceFile], list[RuleProblem]]:
    problems: list[RuleProblem] = []
    files: dict[Path, bool] = {}
    for path in paths:
        if not path.is_dir():
            files[path] = False
            continue
        entries = list(_files_in(path, (), problems))
        if not entries:
            problems.append(RuleProblem(str(path), 1, 1, "the directory contains no *.yaml or *.yml file"))
        for entry in entries:
            files.setdefault(entry, True)
    sources = []
    for path, is_from_folder in files.items():
        text = _read(path, problems)
        if text is not None:
            sources.append(SourceFile(str(path), text, is_from_folder))
    return sources, problems


def _files_in(folder: Path, inside: tuple[Path, ...], problems: list[RuleProblem]) -> Iterator[Path]:
    """`inside` has the real paths of the folders around this one."""
    real = folder.resolve()
    if real in inside:
        message = f"the link leads back to {real}, which contains it, remove it"
        problems.append(RuleProblem(str(folder), 1, 1, message))
        return
    for entry in _entries(folder, problems):
        if entry.is_dir():
            yield from _files_in(entry, (*inside, real), problems)
        elif entry.suffix in (".yaml", ".yml"):
            yield entry


def _entries(folder: Path, problems: list[RuleProblem]) -> list[Path]:
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        problems.append(RuleProblem(str(folder), 1, 1, f"the folder cannot be read: {reason}"))
        return []


def _read(path: Path, problems: list[RuleProblem]) -> str | None:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            message = f"the file is larger than {MAX_FILE_BYTES // 1_000_000} MB, split it"
            problems.append(RuleProblem(str(path), 1, 1, message))
            return None
        raw = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        missing = isinstance(error, FileNotFoundError)
        message = "the file does not exist" if missing else f"the file cannot be read: {reason}"
        problems.append(RuleProblem(str(path), 1, 1, message))
        return None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        message = "the file is not UTF-8, save it as UTF-8"
        problems.append(RuleProblem(str(path), before.count(b"\n") + 1, column, message))
        return None

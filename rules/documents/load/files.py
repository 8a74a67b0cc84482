"""Reads the texts of rule files from paths.

Guarantee: a directory stands for its `*.yaml` and `*.yml` files, sorted by name. A file that is
named twice is read once. A file that cannot be used becomes a problem with its name, and the others
are still read.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rules.documents.load.problems import RuleProblem

MAX_FILE_BYTES = 5_000_000


class SourceFile(NamedTuple):
    name: str
    text: str


def read_files(paths: Sequence[Path]) -> tuple[list[SourceFile], list[RuleProblem]]:
    problems: list[RuleProblem] = []
    files: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            files[path] = None
            continue
        entries = sorted(entry for entry in path.iterdir() if entry.suffix in (".yaml", ".yml"))
        if not entries:
            problems.append(RuleProblem(str(path), 1, 1, "the directory contains no *.yaml or *.yml file"))
        files.update(dict.fromkeys(entries))
    sources = []
    for path in files:
        text = _read(path, problems)
        if text is not None:
            sources.append(SourceFile(str(path), text))
    return sources, problems


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

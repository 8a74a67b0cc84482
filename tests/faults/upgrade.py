"""`python -m tests.faults.upgrade [--from COMMIT]`: a rolling upgrade under load, and the way back.

An installation of the older commit is taken over by this tree, one process at a time, and then by the
older commit again. Nothing may be lost, doubled, out of order or wrong. Both trees must have the same
migrations: before the first release these files are edited, and services reject a database whose
checksums differ. The default is the oldest commit with the migrations of this tree. Producer, consumer
script and account are always those of this tree. The summary is JSON; the exit code is 1 after a problem.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from functools import partial
from pathlib import Path

from tests.faults.chaos.cell import CellResult, finish, wait_until_loaded
from tests.faults.chaos.installation import NAMES, Installation, Layout, installation
from tests.faults.chaos.signals import is_healthy
from tests.faults.chaos.vitals import wait_until_normal
from tocsin.core.logs import configure_logs
from tocsin.core.settings import Settings

_MIGRATIONS = "migrations/versions"
_RECOVERY_WITHIN_S = 90.0
# Readers before writers: a new publisher or worker must accept what an old clock writes, and the reverse.
_ORDER = ("cdc", "worker", "clock", "consumer")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.upgrade")
    parser.add_argument("--from", dest="commit", help="the older commit")
    options = parser.parse_args()
    configure_logs(Settings(log_level="warning"))
    commit = _git("rev-parse", "--short", options.commit or _oldest_with_these_migrations())
    if _git("diff", "--name-only", commit, "--", _MIGRATIONS):
        sys.stderr.write(
            f"{_MIGRATIONS} differs between {commit} and this tree, so neither accepts the database of the other: "
            f"choose {_oldest_with_these_migrations()} or a later commit\n"
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="tocsin-") as folder:
        result = _upgrade_and_back(commit, _extract(commit, Path(folder)), Path.cwd())
    sys.stdout.write(json.dumps(result.as_json(), indent=2) + "\n")
    return 1 if result.problems else 0


def _upgrade_and_back(commit: str, older: Path, newer: Path) -> CellResult:
    result = CellResult(f"upgrade from {commit} and back", "all", 0)
    with installation(Layout(), older) as chaos:
        wait_until_loaded(chaos)
        for tree in (newer, older):
            _replace_all(chaos, tree, result)
        finish(chaos, result)
    return result


def _replace_all(chaos: Installation, tree: Path, result: CellResult) -> None:
    """Replace one process after the other, while the others run."""
    for name in (name for part in _ORDER for name in NAMES if name.startswith(part)):
        chaos.sources[name] = tree
        code = chaos.processes.restart(name)
        if code != 0:
            result.problems.append(f"{name} exited with {code}")
        chaos.until(partial(_is_ready, chaos, name, _head(chaos)), f"{name} is ready", _RECOVERY_WITHIN_S)
        recovery = wait_until_normal(chaos, _RECOVERY_WITHIN_S)
        _print(
            f"{name} runs {_running_tree(chaos, name)}, normal after {recovery.seconds} s {recovery.aspects}"
        )
        result.happened[f"{name} replaced"] = result.happened.get(f"{name} replaced", 0) + (
            _running_tree(chaos, name) == str(tree)
        )
        if recovery.seconds < 0:
            result.problems.append(f"{name}: {recovery.aspects}")


def _head(chaos: Installation) -> int:
    return int(chaos.read("select coalesce(max(last_seq), 0) from tocsin.log_commit")[0][0])


def _is_ready(chaos: Installation, name: str, head: int) -> bool:
    """Whether the process works, as a deployment waits for it before it replaces the next one."""
    if name != "consumer":
        return is_healthy(chaos, name)
    return bool(chaos.read_service("select coalesce(max(seq), 0) from effect")[0][0] > head)


def _running_tree(chaos: Installation, name: str) -> str:
    """The source tree of the process, from the package that its interpreter finds."""
    environment = Path(f"/proc/{chaos.processes.pid(name)}/environ").read_bytes().split(b"\0")
    variables = dict(entry.decode().partition("=")[::2] for entry in environment if entry)
    answer = subprocess.run(
        [sys.executable, "-c", "import tocsin; print(tocsin.__file__)"],
        env=variables,
        capture_output=True,
        check=True,
        text=True,
    )
    return str(Path(answer.stdout.strip()).parents[1])


def _oldest_with_these_migrations() -> str:
    return _git("log", "-1", "--format=%h", "--", _MIGRATIONS)


def _extract(commit: str, folder: Path) -> Path:
    archive = subprocess.run(["git", "archive", commit], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder.resolve()


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout.strip()


def _print(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())

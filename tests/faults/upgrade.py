"""`python -m tests.faults.upgrade [--from COMMIT]`: a rolling upgrade under load, and the way back.

The older commit makes the database and the stream and runs under load. This tree takes them over, one
process at a time, and then the older commit again. Nothing may be lost, doubled, out of order or wrong,
and nothing may become a dead letter. The default is the oldest commit with the migrations of this tree.

If this tree has more migrations, `tocsin migrate` runs while the older processes work. From then on the
older workers must wait until they are replaced. On the way back the older services must end with the
reason, however often they are started, until this tree replaces them. A commit whose migrations were
edited since is refused, as services refuse its database.

Producer, consumer script and account are always those of this tree. The summary is JSON; the exit code
is 1 after a problem.
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
from tests.faults.chaos.installation import NAMES, SERVICES, Installation, Layout, installation
from tests.faults.chaos.signals import health_of, is_healthy
from tests.faults.chaos.vitals import wait_until_normal
from tocsin.core.logs import configure_logs
from tocsin.core.settings import Settings

_MIGRATIONS = "migrations/versions"
_WITHIN_S = 180.0
_BACKLOG_S = 10.0
_MIGRATE_ATTEMPTS = 5
_OLDER_WAITS = "which this version of tocsin does not know"
# Readers before writers: a new publisher or worker must accept what an old clock writes, and the reverse.
_ORDER = ("cdc", "worker", "clock", "consumer")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.upgrade")
    parser.add_argument("--from", dest="commit", help="the older commit")
    options = parser.parse_args()
    configure_logs(Settings(log_level="warning"))
    commit = _git("rev-parse", "--short", options.commit or _oldest_with_these_migrations())
    edited = _git("diff", "--name-only", "--diff-filter=a", commit, "--", _MIGRATIONS)
    if edited:
        sys.stderr.write(
            f"{commit} has other texts of {', '.join(edited.split())}, so neither accepts the database of the "
            f"other: choose {_oldest_with_these_migrations()} or a later commit\n"
        )
        return 2
    has_more = bool(_git("diff", "--name-only", commit, "--", _MIGRATIONS))
    with tempfile.TemporaryDirectory(prefix="tocsin-") as folder:
        take_over = _migrate_and_replace if has_more else _replace_and_back
        result = CellResult(f"upgrade from {commit} and back", "all", 0)
        take_over(_extract(commit, Path(folder)), Path.cwd(), result)
    sys.stdout.write(json.dumps(result.as_json(), indent=2) + "\n")
    return 1 if result.problems else 0


def _replace_and_back(older: Path, newer: Path, result: CellResult) -> None:
    with installation(Layout(), older) as chaos:
        wait_until_loaded(chaos)
        for tree in (newer, older):
            for name in _names():
                _replace(chaos, name, tree, result)
                chaos.until(partial(_is_ready, chaos, name, _head(chaos)), f"{name} is ready", _WITHIN_S)
                _expect_normal(chaos, name, result)
        _finish(chaos, result)


def _migrate_and_replace(older: Path, newer: Path, result: CellResult) -> None:
    with installation(Layout(), older) as chaos:
        wait_until_loaded(chaos)
        _migrate(chaos, result)
        _expect_waits(chaos, [name for name in _names() if name.startswith("worker")], result)
        _replace_each(chaos, newer, result)
        _expect_normal(chaos, "the upgrade", result)
        for name in SERVICES:
            chaos.sources[name] = older
            chaos.processes.restart(name)
        for name in SERVICES:
            _expect_refusal(chaos, name, result)
        chaos.wait(_BACKLOG_S)
        _replace_each(chaos, newer, result)
        _expect_normal(chaos, "the second upgrade", result)
        _finish(chaos, result)


def _names() -> list[str]:
    return [name for part in _ORDER for name in NAMES if name.startswith(part)]


def _migrate(chaos: Installation, result: CellResult) -> None:
    """Migrate while all processes work. A migration that gets no lock changes nothing, and is repeated."""
    for _ in range(_MIGRATE_ATTEMPTS):
        done = chaos.run_command("migrate", within=_WITHIN_S)
        _print(f"migrate: {done.returncode} {done.stdout}{done.stderr}")
        if done.returncode == 0:
            result.happened["migrated under load"] = len(done.stdout.splitlines())
            return
    result.problems.append(f"migrate: {done.stderr}")


def _expect_waits(chaos: Installation, names: list[str], result: CellResult) -> None:
    for name in names:
        chaos.until(lambda name=name: _OLDER_WAITS in health_of(chaos, name), f"{name} waits", _WITHIN_S)  # type: ignore[misc]
        _print(f"{name} waits: {health_of(chaos, name)}")
        result.happened[f"{name} waits"] = result.happened.get(f"{name} waits", 0) + 1


def _expect_refusal(chaos: Installation, name: str, result: CellResult) -> None:
    def is_refused() -> bool:
        return any(line.startswith(f"{name}: ") and _OLDER_WAITS in line for line in chaos.restarted)

    chaos.until(is_refused, f"{name} ends with the reason", _WITHIN_S)
    result.happened[f"{name} refused"] = 1


def _replace_each(chaos: Installation, tree: Path, result: CellResult) -> None:
    """Replace one process after the other, each as soon as the one before is ready."""
    for name in _names():
        _replace(chaos, name, tree, result)
        if name != "consumer":
            chaos.until(partial(is_healthy, chaos, name), f"{name} is healthy", _WITHIN_S)


def _replace(chaos: Installation, name: str, tree: Path, result: CellResult) -> None:
    chaos.sources[name] = tree
    code = chaos.processes.restart(name)
    if code != 0:
        result.problems.append(f"{name} exited with {code}")
    runs = _running_tree(chaos, name)
    _print(f"{name} runs {runs}")
    result.happened[f"{name} replaced"] = result.happened.get(f"{name} replaced", 0) + (runs == str(tree))


def _expect_normal(chaos: Installation, what: str, result: CellResult) -> None:
    recovery = wait_until_normal(chaos, _WITHIN_S)
    _print(f"{what}: normal after {recovery.seconds} s {recovery.aspects}")
    if recovery.seconds < 0:
        result.problems.append(f"{what}: {recovery.aspects}")


def _finish(chaos: Installation, result: CellResult) -> None:
    finish(chaos, result)
    if dead := chaos.last_sequence(chaos.settings.dead_stream):
        result.problems.append(f"dead letters: {dead}")


def _head(chaos: Installation) -> int:
    return int(chaos.read("select coalesce(max(last_seq), 0) from tocsin.log_commit")[0][0])


def _is_ready(chaos: Installation, name: str, head: int) -> bool:
    """Whether the process works, as a deployment waits for it before it replaces the next one."""
    if name != "consumer":
        return is_healthy(chaos, name)
    return bool(chaos.read_service("select coalesce(max(seq), 0) from effect")[0][0] > head)


def _running_tree(chaos: Installation, name: str) -> str:
    """The source tree of the process, from the package that its interpreter finds."""
    path = Path(f"/proc/{chaos.processes.pid(name)}/environ")
    chaos.until(lambda: bool(path.read_bytes()), f"{name} has begun", _WITHIN_S)
    variables = dict(entry.decode().partition("=")[::2] for entry in path.read_bytes().split(b"\0") if entry)
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

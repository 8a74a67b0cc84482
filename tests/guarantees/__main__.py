"""`python -m tests.guarantees [WORDS]`: breaks each guarantee in a copy of the project and expects its tests to fail.

With words, only the breaks that mention them. Exits 1 if a test passes although its guarantee is broken.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.guarantees.breaks import BREAKS
from tests.guarantees.source_break import Break

_ROOT = Path(__file__).parent.parent.parent
_TESTS_FAILED = 1
"""The exit code of pytest. Any other one means that the tests did not run."""


def _copy_project(target: Path) -> None:
    files = subprocess.run(["git", "ls-files"], cwd=_ROOT, capture_output=True, text=True, check=True)
    for name in files.stdout.splitlines():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(_ROOT / name, target / name)


def _passing(project: Path, broken: Break) -> list[str]:
    """The tests that do not fail although the guarantee is broken."""
    path = project / broken.path
    original = path.read_text(encoding="utf-8")
    path.write_text(original.replace(broken.text, broken.replacement), encoding="utf-8")
    try:
        return [test for test in broken.tests if _run(project, test) != _TESTS_FAILED]
    finally:
        path.write_text(original, encoding="utf-8")


def _run(project: Path, test: str) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/{test}"]
    environment = {**os.environ, "PYTHONPATH": str(project)}
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, check=False).returncode


def main(words: list[str]) -> int:
    chosen = [broken for broken in BREAKS if all(word in " ".join(broken[:3]) for word in words)]
    unnoticed = 0
    with tempfile.TemporaryDirectory(prefix="tocsin-guarantees-") as folder:
        project = Path(folder)
        _copy_project(project)
        for broken in chosen:
            passing = _passing(project, broken)
            unnoticed += bool(passing)
            result = f"NOT NOTICED by {', '.join(passing)}" if passing else "noticed"
            sys.stdout.write(f"{broken.guarantee}: {broken.what}: {result}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - unnoticed} of {len(chosen)} broken guarantees are noticed\n")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

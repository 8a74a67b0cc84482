"""`make lock`: writes the lock files from pyproject.toml, with the hashes of all platforms.

Versions that the files already have are kept while pyproject.toml allows them. `--upgrade` takes the
newest versions instead. No file names a registry: the one that pip is configured with is used, and
the hashes decide whether to trust it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.supply.lock_files import FOLDER, LOCK_FILES, ROOT, LockFile, requirements_of

_OPTIONS = (
    "--quiet",
    "--universal",
    "--python-version=3.11",
    "--generate-hashes",
    "--no-annotate",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--custom-compile-command=make lock",
)


def write_lock_files(uv: str, *, upgrade: bool = False) -> None:
    FOLDER.mkdir(exist_ok=True)
    for lock_file in LOCK_FILES:
        _write(uv, lock_file, upgrade=upgrade)


def _write(uv: str, lock_file: LockFile, *, upgrade: bool) -> None:
    first = LOCK_FILES[0]
    command = [uv, "pip", "compile", "-", *_OPTIONS, f"--output-file={lock_file.path}"]
    if lock_file is not first:
        command.append(f"--constraints={first.path}")
    if upgrade:
        command.append("--upgrade")
    text = "".join(f"{requirement}\n" for requirement in requirements_of(lock_file))
    subprocess.run(command, input=text, text=True, check=True, cwd=ROOT)


def main() -> None:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv is None:
        sys.exit("there is no 'uv' to write the lock files with; run `make lock`, which installs it")
    write_lock_files(uv, upgrade="--upgrade" in sys.argv[1:])


if __name__ == "__main__":
    main()

"""A virtual environment with exactly what a lock file names, made without network.

The packages are linked from the environment of the tests, which has the same versions
(`test_lock_files.py`).
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from tests.supply.lock_files import ROOT, LockFile, read_pins


def make_environment(folder: Path, lock_file: LockFile) -> Path:
    """The python of a new environment. The project itself is found in its checkout."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for pin in read_pins(lock_file):
        if pin.requirement.marker is None or pin.requirement.marker.evaluate():
            link_package(pin.name, packages)
    (packages / "tocsin.pth").write_text(f"{ROOT}\n")
    return folder / "bin" / "python"


def link_package(package: str, target: Path) -> None:
    """Put an installed distribution into another environment."""
    installed = distribution(package)
    tops = {file.parts[0] for file in installed.files or () if file.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        link = target / top
        if not link.exists():
            link.symlink_to(Path(str(installed.locate_file(top))))

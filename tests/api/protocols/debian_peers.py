"""Prometheus and amtool: those of the machine, or from Debian's packages, unpacked without root.

`peer("prometheus")` is the path of the program. Where apt has no such package the test is skipped, and
the reason names what was not proven.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

_PACKAGES = {"prometheus": "prometheus", "amtool": "prometheus-alertmanager"}
_FOLDER = Path(sys.prefix) / "peers"
_DOWNLOAD_S = 120


@cache
def peer(program: str) -> Path:
    """The program, downloaded once into the virtual environment."""
    found = shutil.which(program)
    if found is not None:
        return Path(found)
    unpacked = _FOLDER / "usr" / "bin" / program
    _FOLDER.mkdir(exist_ok=True)
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not unpacked.exists():
            _unpack(_PACKAGES[program])
    if not unpacked.exists():
        pytest.skip(f"NOT PROVEN WITH {program}: it is not installed, and apt cannot download it")
    return unpacked


def _unpack(package: str) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        return
    try:
        subprocess.run(
            ["apt-get", "download", package],
            cwd=_FOLDER,
            check=True,
            capture_output=True,
            timeout=_DOWNLOAD_S,
        )
        for archive in _FOLDER.glob(f"{package}_*.deb"):
            subprocess.run(["dpkg", "-x", archive, _FOLDER], check=True, capture_output=True)
            archive.unlink()
    except (subprocess.SubprocessError, OSError):
        return

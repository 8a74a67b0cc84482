"""Releases of the tz database: wheels of `tzdata` from the package index, kept in the cache of the user."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
import zoneinfo
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from timers.recurrence.zones import tz_version

# The package index has no older ones. 2020a to 2026f in the names of IANA.
WHEELS = (
    *(f"2020.{number}" for number in (1, 2, 3, 4, 5)),
    *(f"2021.{number}" for number in (1, 2, 3, 4, 5)),
    *(f"2022.{number}" for number in (1, 2, 3, 4, 5, 6, 7)),
    *(f"2023.{number}" for number in (1, 2, 3, 4)),
    *(f"2024.{number}" for number in (1, 2)),
    *(f"2025.{number}" for number in (1, 2, 3)),
    *(f"2026.{number}" for number in (1, 2, 3, 4, 5, 6)),
)
_DOWNLOAD_S = 120


class TzRelease(NamedTuple):
    version: str
    """The IANA name, such as `2024a`."""
    zones: Path

    def keys(self) -> set[str]:
        return set((self.zones.parent / "zones").read_text().split())

    def file(self, key: str) -> bytes:
        return (self.zones / key).read_bytes()


def fetch_release(wheel: str) -> TzRelease:
    """The files of one wheel. Skips the test if the package index cannot be reached outside of CI."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tocsin-tests" / "tzdata"
    folder = cache / wheel
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        _download(wheel, folder)
    spec = importlib.util.spec_from_file_location("release", folder / "tzdata" / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return TzRelease(module.IANA_VERSION, folder / "tzdata" / "zoneinfo")


def _download(wheel: str, folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as draft:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--no-deps", "--only-binary=:all:", "--dest", draft, f"tzdata=={wheel}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_S, check=False)
        if done.returncode != 0:
            message = f"pip cannot download tzdata {wheel}: {done.stderr.strip()[-200:]}"
            if "CI" in os.environ:
                pytest.fail(message)
            pytest.skip(message)
        (file,) = Path(draft).glob("*.whl")
        unpacked = Path(draft) / "unpacked"
        with zipfile.ZipFile(file) as archive:
            archive.extractall(unpacked)
        if not folder.exists():
            unpacked.rename(folder)


@contextmanager
def using(release: TzRelease) -> Iterator[None]:
    """Let this process read the zones of a release."""
    version = tz_version()
    _read_from((str(release.zones),), release.version)
    try:
        yield
    finally:
        _read_from((), version)


def _read_from(path: tuple[str, ...], version: str) -> None:
    zoneinfo.reset_tzpath(to=path)
    zoneinfo.ZoneInfo.clear_cache()
    vars(importlib.import_module("tzdata"))["IANA_VERSION"] = version
    for name, module in list(sys.modules.items()):
        if name.startswith(("timers.", "clock.ticks")):
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()

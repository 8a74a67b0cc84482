"""The lock files: which there are, what each covers, and a reader for them.

One file per purpose, each complete in itself, all with the same versions. `dev.txt` covers all the
others but `assets.txt`, whose node is installed where and when the console's assets are built, and
`supply.txt`, whose tools have a virtual environment of their own.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "requirements"
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


@dataclass(frozen=True)
class LockFile:
    """A lock file, and the parts of pyproject.toml that it covers."""

    name: str
    project: bool = True
    extras: tuple[str, ...] = ()
    build: bool = False

    @property
    def path(self) -> Path:
        return FOLDER / self.name


@dataclass(frozen=True)
class Pin:
    """One entry of a lock file."""

    requirement: Requirement
    hashes: frozenset[str]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        (specifier,) = self.requirement.specifier
        return specifier.version


# The first file decides the versions, the others follow it.
LOCK_FILES = (
    LockFile("dev.txt", extras=("dev",), build=True),
    LockFile("runtime.txt"),
    LockFile("apprise.txt", extras=("apprise",)),
    LockFile("nkeys.txt", extras=("nkeys",)),
    LockFile("parquet.txt", extras=("parquet",)),
    LockFile("import.txt", extras=("import",)),
    LockFile("embedded.txt", extras=("embedded",)),
    LockFile("build.txt", project=False, build=True),
    LockFile("assets.txt", project=False, extras=("assets",)),
    LockFile("supply.txt", project=False, extras=("supply",)),
)


@cache
def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def requirements_of(lock_file: LockFile) -> list[Requirement]:
    """The direct requirements that a lock file covers; extras of the project itself are replaced by theirs."""
    project = _pyproject()["project"]
    texts = list(project["dependencies"]) if lock_file.project else []
    pending = list(lock_file.extras)
    while pending:
        for text in project["optional-dependencies"][pending.pop()]:
            requirement = Requirement(text)
            if requirement.name == project["name"]:
                pending.extend(requirement.extras)
            else:
                texts.append(text)
    if lock_file.build:
        texts += _pyproject()["build-system"]["requires"]
    return [Requirement(text) for text in texts]


def read_pins(lock_file: LockFile) -> list[Pin]:
    text = lock_file.path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return [
        Pin(Requirement(line.partition("--hash=")[0].strip()), frozenset(_HASH.findall(line)))
        for line in lines
    ]

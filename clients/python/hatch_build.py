"""Collects the modules of `tocsin.client` for the distribution `tocsin-client`.

Guarantee: the wheel has the modules that `tocsin.client` imports, and no other one; all of them are in
the package `tocsin`. The packages `schemas` and `timers`, whose names would collide with those of
other projects, move to `tocsin.client._parts`, and the imports and names of statements with them.
Nothing else of a module is changed.
"""

from __future__ import annotations

import ast
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

START = "tocsin.client"
# They need the embedded servers, and pytest.
LEFT_OUT = {"tocsin.client.testing", "tocsin.client.pytest_plugin"}
MOVED = ("schemas", "timers")
PARTS = "tocsin.client._parts"
_PACKAGES = ("tocsin", "clock", "cdc", "rules", "migrations", *MOVED)
_IMPORT = re.compile(rf"^(\s*)(from|import) ({'|'.join(MOVED)})\b", re.MULTILINE)
_STATEMENT = re.compile(rf'"({"|".join(MOVED)})((?:\.\w+)*)/(\w+)"')


class BundleClient(BuildHookInterface[Any]):
    """Adds the modules to the wheel, and to the source distribution below `collected/`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        source, collected = Path(self.root).parents[1], Path(self.root) / "collected"
        if not collected.is_dir():  # not unpacked from a source distribution
            collected = Path(tempfile.mkdtemp(prefix="tocsin-client-"))
            self._made = collected
            bundle(source, collected)
        target = "collected/tocsin" if self.target_name == "sdist" else "tocsin"
        build_data["force_include"][str(collected / "tocsin")] = target

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        made = getattr(self, "_made", None)
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)


def bundle(source: Path, target: Path) -> list[str]:
    """Write the modules below `target`; returns their names in the source tree."""
    names = sorted(closure(source))
    for name in names:
        path = _path(source, name)
        written = target / _moved_path(path.relative_to(source))
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(moved(path.read_text(encoding="utf-8")), encoding="utf-8")
    parts = target / "tocsin" / "client" / "_parts"
    parts.mkdir(parents=True, exist_ok=True)
    (parts / "__init__.py").write_text(
        '"""Packages that `tocsin.client` needs. Import names from there."""\n'
    )
    for folder in {_path(source, name).parent for name in names}:
        for statement in folder.glob("sql/*.sql"):
            copied = target / _moved_path(statement.relative_to(source))
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(statement, copied)
    (target / "tocsin" / "py.typed").touch()
    return names


def closure(source: Path) -> set[str]:
    """The names of all modules that the client imports, also inside of functions."""
    found: set[str] = set()
    left = [START, *_parents(START)]
    while left:
        name = left.pop()
        if name in found or name in LEFT_OUT:
            continue
        found.add(name)
        for imported in _imports(source, name):
            left += [imported, *_parents(imported)]
    return found


def moved(text: str) -> str:
    text = _IMPORT.sub(rf"\1\2 {PARTS}.\3", text)
    return _STATEMENT.sub(rf'"{PARTS}.\1\2/\3"', text)


def _imports(source: Path, name: str) -> Iterator[str]:
    module = ast.parse(_path(source, name).read_text(encoding="utf-8"))
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _exists(source, alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module and _exists(source, node.module):
            yield node.module
            members = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (member for member in members if _exists(source, member))


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _exists(source: Path, name: str) -> bool:
    return name.split(".")[0] in _PACKAGES and _path(source, name).is_file()


def _path(source: Path, name: str) -> Path:
    path = source.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _moved_path(path: Path) -> Path:
    return Path("tocsin", "client", "_parts", path) if path.parts[0] in MOVED else path

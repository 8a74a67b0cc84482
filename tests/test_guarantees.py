"""docs/guarantees.md names the tests of each guarantee, and the breaks fit the sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.guarantees.breaks import BREAKS
from tests.guarantees.source_break import Break

_ROOT = Path(__file__).parent.parent
_MIGRATIONS = "migrations/versions/"
_DEFINITION = re.compile(r"create (?:or replace )?(function|procedure|table) tocsin\.(\w+)")
_PAGE = (_ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")


def _title(broken: Break) -> str:
    return f"{broken.guarantee}: {broken.what}"


@pytest.mark.parametrize("broken", BREAKS, ids=_title)
def test_a_break_changes_one_place(broken: Break) -> None:
    assert (_ROOT / broken.path).read_text(encoding="utf-8").count(broken.text) == 1


@pytest.mark.parametrize("test", sorted({test for broken in BREAKS for test in broken.tests}))
def test_a_test_of_a_guarantee_exists_and_is_on_the_page(test: str) -> None:
    module, _, name = test.partition("::")
    assert re.search(rf"^(async )?def {name}\(", (_ROOT / "tests" / module).read_text(encoding="utf-8"), re.M)
    assert f"`{name}`" in _PAGE


def test_every_guarantee_has_a_break() -> None:
    invariants = set(re.findall(r"^\*\*(I\d)\.", _PAGE, re.M))
    assert invariants
    assert invariants <= {broken.guarantee for broken in BREAKS}


@pytest.mark.parametrize(
    "broken", [broken for broken in BREAKS if broken.path.startswith(_MIGRATIONS)], ids=_title
)
def test_a_break_of_a_migration_changes_what_is_in_force(broken: Break) -> None:
    """A later migration may replace the function that a break is in."""
    path = _ROOT / broken.path
    before = path.read_text(encoding="utf-8").partition(broken.text)[0]
    kind, name = _DEFINITION.findall(before)[-1]
    again = re.compile(rf"create (?:or replace )?{kind} tocsin\.{name}\b")
    later = [other.name for other in path.parent.iterdir() if other.name > path.name]
    assert [other for other in later if again.search((path.parent / other).read_text("utf-8"))] == []

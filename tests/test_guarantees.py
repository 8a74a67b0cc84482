"""docs/guarantees.md names the tests of each guarantee, and the breaks fit the sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.guarantees.breaks import BREAKS
from tests.guarantees.source_break import Break

_ROOT = Path(__file__).parent.parent
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

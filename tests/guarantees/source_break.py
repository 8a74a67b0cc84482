"""A change of the source that breaks one guarantee, and the tests that notice."""

from __future__ import annotations

from typing import NamedTuple


class Break(NamedTuple):
    guarantee: str
    """The invariant, or the section of docs/guarantees.md."""
    what: str
    path: str
    text: str
    replacement: str
    tests: tuple[str, ...]
    """Tests of which each must fail: `module::name` below tests/."""

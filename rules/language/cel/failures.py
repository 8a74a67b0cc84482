"""Conditions that failed to evaluate in this process, for the worker to report.

Guarantee: the failures since the last `take_failures`, one per condition, at most `MAX_FAILURES`. A
condition that fails decides nothing: its rule neither opens nor resolves an alarm, and starts nothing.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_FAILURES = 100


class FailedCondition(NamedTuple):
    rule: str
    text: str
    error: str
    hint: str


_failures: dict[tuple[str, str], FailedCondition] = {}


def note_failure(failed: FailedCondition) -> None:
    key = failed.rule, failed.text
    if key in _failures or len(_failures) < MAX_FAILURES:
        _failures[key] = failed


def take_failures() -> list[FailedCondition]:
    """The failures since the last call."""
    taken = list(_failures.values())
    _failures.clear()
    return taken

"""F17: the cost of checking a text that a stranger wrote."""

from __future__ import annotations

import time

import pytest

from rules.documents.load import RulesInvalid, load_text, loader
from tocsin.core.near_name import limited_hints, near_name


def test_many_wrong_references_are_checked_in_a_bounded_time() -> None:
    """65 kB with 200 rules that miss 200 actions took 23 s."""
    name = "a" * 80
    actions = "".join(
        f"---\naction: {{name: {name}-{number:03}, log: {{message: x}}}}\n" for number in range(200)
    )
    rules = "".join(
        f"---\naction_rule: {{name: r{number}, on: event, when: 'true', action: {name}-{number:03}x}}\n"
        for number in range(200)
    )
    began_s = time.thread_time()
    with pytest.raises(RulesInvalid) as refused:
        load_text(actions + rules)
    assert time.thread_time() - began_s < 8
    assert len(refused.value.problems) >= 200


def test_hints_are_given_for_the_first_problems_only() -> None:
    with limited_hints():
        hints = [near_name("colour", ["color"]) for _ in range(30)]
    assert hints == ["color"] * 20 + [None] * 10
    assert near_name("x" * 41, ["x" * 40]) is None
    assert near_name("colour", ["color"]) == "color"


def test_a_text_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_MAX_LENGTH", 100)
    with pytest.raises(RulesInvalid, match="the files have more than 100 characters"):
        load_text("# " + "x" * 100)
    monkeypatch.setattr(loader, "_MAX_LENGTH", 10_000)
    monkeypatch.setattr(loader, "_MAX_DOCUMENTS", 3)
    with pytest.raises(RulesInvalid, match="there are more than 3 documents"):
        load_text("".join(f"---\nschedule: {{name: s{number}, every: 1h}}\n" for number in range(4)))


def test_the_number_of_problems_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_MAX_PROBLEMS", 5)
    with pytest.raises(RulesInvalid) as refused:
        load_text("".join(f"---\nschedule: {{name: s{number}}}\n" for number in range(9)))
    assert len(refused.value.problems) == 5
    assert refused.value.problems[-1].message == "and 5 more problems, solve these first"

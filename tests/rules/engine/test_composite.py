"""The condition of a rule over alarms is the one that its clauses state."""

from __future__ import annotations

from itertools import product

import pytest
from pydantic import ValidationError

from rules.engine.composite import Composite
from schemas.documents.alarms_condition import AlarmsDocument

COUNTS = [dict(zip("abc", counts, strict=True)) for counts in product(range(3), repeat=3)]


def holds(**clauses: object) -> list[bool]:
    composite = Composite(AlarmsDocument.model_validate(clauses))
    return [composite.holds(counts) for counts in COUNTS]


def test_all_of_holds_while_each_rule_has_an_open_alarm() -> None:
    assert holds(all_of=["a", "b"]) == [bool(n["a"] and n["b"]) for n in COUNTS]


def test_any_of_holds_while_one_rule_has_an_open_alarm() -> None:
    assert holds(any_of=["a", "c"]) == [bool(n["a"] or n["c"]) for n in COUNTS]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_n_of_m_counts_rules_and_not_their_alarms(number: int) -> None:
    expected = [sum(bool(count) for count in n.values()) >= number for n in COUNTS]
    assert holds(at_least=number, of=["a", "b", "c"]) == expected


def test_a_reference_can_ask_for_several_alarms_of_a_rule() -> None:
    assert holds(any_of=[{"rule": "a", "at_least": 2}]) == [n["a"] >= 2 for n in COUNTS]


def test_every_clause_must_hold() -> None:
    expected = [bool(n["a"]) and not n["b"] for n in COUNTS]
    assert holds(all_of=["a"], none_of=["b"]) == expected


def test_the_text_names_every_clause() -> None:
    document = AlarmsDocument.model_validate(
        {"all_of": ["a"], "none_of": ["b"], "at_least": 1, "of": [{"rule": "c", "at_least": 3}]}
    )
    assert Composite(document).text == "all of a and 1 of c (3 alarms) and none of b"


@pytest.mark.parametrize(
    ("clauses", "text"),
    [
        ({}, "needs 'all_of', 'any_of', or 'at_least' and 'of'"),
        ({"none_of": ["a"]}, "needs 'all_of', 'any_of', or 'at_least' and 'of'"),
        ({"of": ["a"]}, "has 'of' without 'at_least'"),
        ({"at_least": 1}, "has 'at_least' without 'of'"),
        ({"at_least": 3, "of": ["a", "b"]}, "asks for 3 of 2 rules: write at most 2"),
        ({"all_of": ["a", {"rule": "a"}]}, "names 'a' twice in 'all_of': keep one"),
    ],
)
def test_clauses_without_a_meaning_are_rejected(clauses: dict[str, object], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        AlarmsDocument.model_validate(clauses)

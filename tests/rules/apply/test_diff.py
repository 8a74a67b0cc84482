"""Differences are complete and as deep as possible; equal documents have none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.apply.diff import ABSENT, FieldDifference, differences


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("a", 1, 2)]),
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 3, "d": 2}}}, [("a.b.c", 1, 3)]),
        ({"a": 1}, {}, [("a", 1, ABSENT)]),
        ({}, {"a": None}, [("a", ABSENT, None)]),
        ({"a": True}, {"a": 1}, [("a", True, 1)]),
        ({"a": 0}, {"a": False}, [("a", 0, False)]),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": None}, {"a": {}}, [("a", None, {})]),
        ({"n": ["a", "b"]}, {"n": ["a", "c", "b"]}, [("n[1]", ABSENT, "c")]),
        ({"n": ["a", "b"]}, {"n": ["b"]}, [("n[0]", "a", ABSENT)]),
        ({"n": ["a", "b"]}, {"n": ["a", "c"]}, [("n[1]", "b", "c")]),
        (
            {"steps": [{"wait": {"for": "10m"}}, {"log": {"message": "x"}}]},
            {"steps": [{"wait": {"for": "5m"}}, {"log": {"message": "x"}}, {"log": {"message": "y"}}]},
            [("steps[0].wait.for", "10m", "5m"), ("steps[2]", ABSENT, {"log": {"message": "y"}})],
        ),
    ],
)
def test_each_difference_has_its_path(old: Any, new: Any, expected: list[tuple[str, Any, Any]]) -> None:
    assert list(differences(old, new)) == [FieldDifference(*one) for one in expected]


def test_as_json_an_absent_side_is_left_out() -> None:
    assert FieldDifference("a", ABSENT, None).as_json() == {"path": "a", "new": None}
    assert FieldDifference("a", 1, ABSENT).as_json() == {"path": "a", "old": 1}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("xyz", max_size=1), inner, max_size=3)
    ),
    max_leaves=12,
)


def same(old: Any, new: Any) -> bool:
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(same(old[key], new[key]) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(same, old, new))
    return type(old) is type(new) and old == new


@given(_JSON, _JSON)
def test_there_is_a_difference_exactly_when_something_differs(old: Any, new: Any) -> None:
    assert (not list(differences(old, new))) == same(old, new)

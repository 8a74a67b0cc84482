"""Key patterns match whole parts of a key, as a regular expression of the same meaning does."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from schemas.values.key_pattern import check_key, check_pattern, covers, overlap, specificity
from tests.schemas.values.key_strategies import keys, patterns


@pytest.mark.parametrize(
    ("pattern", "key", "is_covered"),
    [
        ("dsp.temperature", "dsp.temperature", True),
        ("dsp.temperature", "dsp.temperature.max", False),
        ("dsp.*", "dsp.temperature", True),
        ("dsp.*", "dsp", False),
        ("dsp.*", "dsp.a.b", False),
        ("dsp.**", "dsp.a.b", True),
        ("dsp.**", "dsp", False),
        ("**.temperature", "a.b.temperature", True),
        ("**.temperature", "temperature", False),
        ("a.**.c.*", "a.b.c.c.d", True),
        ("**", "a", True),
    ],
)
def test_a_pattern_covers(pattern: str, key: str, is_covered: bool) -> None:
    assert covers(pattern, key) is is_covered


def as_regex(pattern: str) -> str:
    whole = {"*": "[^.]+", "**": r"[^.]+(\.[^.]+)*"}
    return r"\.".join(whole.get(part, part) for part in pattern.split("."))


@given(patterns, keys)
def test_a_pattern_covers_what_the_same_regular_expression_matches(pattern: str, key: str) -> None:
    assert covers(pattern, key) is bool(re.fullmatch(as_regex(pattern), key))


@given(patterns, patterns, keys)
def test_patterns_that_cover_one_key_overlap(one: str, other: str, key: str) -> None:
    if covers(one, key) and covers(other, key):
        assert overlap(one, other)
    assert overlap(one, other) is overlap(other, one)


@pytest.mark.parametrize(("one", "other"), [("a.b", "a.c"), ("a.*", "a"), ("a.**", "b.**"), ("*.a", "a.b")])
def test_patterns_without_a_common_key_do_not_overlap(one: str, other: str) -> None:
    assert not overlap(one, other)


def test_what_says_more_comes_first() -> None:
    ordered = ["dsp.a.temperature", "dsp.a.*", "dsp.*.temperature", "dsp.**", "*.a.temperature", "**"]
    assert sorted(reversed(ordered), key=specificity) == ordered


@pytest.mark.parametrize(
    "text", ["", "a..b", ".a", "a b", "a.b*", "a.***", "a>b", "a\0", "a" * 256, ".".join("a" * 17), "\ud800"]
)
def test_what_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"key"):
        check_pattern(text)


def test_a_key_has_no_wildcards() -> None:
    assert check_key("dsp.λ-1.temperature/max") == "dsp.λ-1.temperature/max"
    with pytest.raises(ValueError, match="is not a key"):
        check_key("dsp.*")

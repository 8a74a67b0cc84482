"""Matchers of alarms: what they can read, and how their mistakes are reported."""

from __future__ import annotations

from typing import Any

import pytest

from rules.language.cel import ExpressionInvalid, compile_matcher

_ALARM: dict[str, Any] = {
    "rule": "cpu-hot",
    "owner": "plant-7",
    "key": "cpu.temp",
    "instance": 'cpu.temp{core="0"}',
    "labels": {"site": "ams"},
    "severity": 4,
    "title": "CPU is hot",
    "type": "",
}


@pytest.mark.parametrize(
    ("text", "fields", "expected"),
    [
        ("true", {}, True),
        ('labels.site == "ams"', {}, True),
        ('labels.site == "ams"', {"labels": {"site": "fra"}}, False),
        ('labels.site == "ams"', {"labels": {}}, False),
        ('labels.site != "ams"', {"labels": {}}, False),
        ('!has(labels.site) || labels.site != "ams"', {"labels": {}}, True),
        ("severity >= high", {}, True),
        ("severity >= critical", {}, False),
        ('rule.startsWith("stale:")', {"rule": "stale:load"}, True),
        ('owner in ["plant-7", "plant-8"] && key == "cpu.temp"', {}, True),
        ('instance == "cpu.temp{core=\\"0\\"}"', {}, True),
        ('title.contains("hot")', {}, True),
        ('type == "link-down"', {"type": "link-down"}, True),
        ('key == ""', {"key": None}, True),
    ],
)
def test_a_matcher_reads_the_facts_of_an_alarm(text: str, fields: dict[str, Any], expected: bool) -> None:
    assert compile_matcher(text).matches({**_ALARM, **fields}) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('ownr == "x"', "column 1: undeclared reference to 'ownr', did you mean 'owner'?"),
        ('severity >= "high"', "column 10: '>=' cannot be applied to int and string, compare with a level"),
        ("owner", "column 1: a condition must be true or false, this is of type string"),
        ('value > 3 && owner == "x"', "column 1: undeclared reference to 'value'"),
        ('lables.site == "ams"', "column 1: undeclared reference to 'lables', did you mean 'labels'?"),
        (
            'true && site == "ams"',
            "column 9: undeclared reference to 'site', write labels.site if it is a label",
        ),
        ('payload.a == "x"', "column 1: undeclared reference to 'payload', known are rule, owner"),
        ('owner == "x" and true', "column 14: unexpected 'and', write &&"),
        ('owner == "' + "x" * 2_000 + '"', "at most 2000 are accepted"),
        ("", "the condition is empty, write true to match everything"),
    ],
)
def test_a_mistake_in_a_matcher_has_its_column_and_a_hint(text: str, message: str) -> None:
    with pytest.raises(ExpressionInvalid) as error:
        compile_matcher(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ('rule == "a" && labels.site == "x"', "rule", {"a"}),
        ('rule in ["a", "b"]', "rule", {"a", "b"}),
        ('rule == "a" || owner == "b"', "rule", None),
        ('rule != "a"', "rule", None),
        ('owner == "o" && rule in ["a"]', "owner", {"o"}),
        ('key == "k"', "key", {"k"}),
    ],
)
def test_the_literals_of_a_matcher_narrow_what_is_read(
    text: str, field: str, values: set[str] | None
) -> None:
    assert compile_matcher(text).only(field) == values

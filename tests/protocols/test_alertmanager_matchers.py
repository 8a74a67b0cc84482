from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.language.cel import compile_matcher
from tocsin.core.errors import InvalidInput
from tocsin.protocols.alertmanager_matchers import LabelMatcher, condition_of, matchers_of, parse_filter

ALARM: dict[str, Any] = {
    "rule": "cpu-hot",
    "owner": "web-1",
    "severity": 2,
    "key": "cpu.temp",
    "instance": 'cpu.temp{core="0"}',
    "labels": {"site": "ams-1", "a b": 'x"y'},
}


@pytest.mark.parametrize(
    ("text", "matcher"),
    [
        ('alertname="cpu-hot"', LabelMatcher("alertname", "cpu-hot")),
        ("alertname=cpu-hot", LabelMatcher("alertname", "cpu-hot")),
        ('site!="a"', LabelMatcher("site", "a", is_equal=False)),
        ('site=~"a|b"', LabelMatcher("site", "a|b", is_regex=True)),
        (r'site!~"a\\d\"x"', LabelMatcher("site", 'a\\d"x', is_regex=True, is_equal=False)),
        (r'site=~"a\d"', LabelMatcher("site", r"a\d", is_regex=True)),
        ('"a b" = "c"', LabelMatcher("a b", "c")),
        ('site=""', LabelMatcher("site", "")),
    ],
)
def test_a_filter_of_amtool_is_read(text: str, matcher: LabelMatcher) -> None:
    assert parse_filter(text) == matcher


@pytest.mark.parametrize("text", ["", "site", '="a"', 'site="a', '{site="a"}', "x" * 2_000])
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a matcher"):
        parse_filter(text)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ('alertname="cpu-hot"', True),
        ('alertname!="cpu-hot"', False),
        ('alertname=~"cpu"', False),
        ('alertname=~"cpu.*"', True),
        ('owner="web-1"', True),
        ('severity="warning"', True),
        ('severity=~"warning|high"', True),
        ('severity!="warning"', False),
        ('key="cpu.temp"', True),
        ('site="ams-1"', True),
        ('site!="ams-1"', False),
        ('site=~"ams-.*"', True),
        ('site!~"ams-.*"', False),
        ('rack=""', True),
        ('rack!=""', False),
        ('rack!="7"', True),
        ('rack=~".*"', True),
        ('rack=~".+"', False),
        (r'"a b"="x\"y"', True),
    ],
)
def test_a_condition_matches_as_alertmanager_does(text: str, matches: bool) -> None:
    condition = condition_of([parse_filter(text)])
    assert compile_matcher(condition).matches(ALARM) is matches


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)
PLAIN = st.builds(LabelMatcher, TEXTS, TEXTS, st.just(False), st.booleans())
REGEX = st.builds(
    LabelMatcher, TEXTS, st.sampled_from([".*", "a|b", r"\d+", "[x-z]"]), st.just(True), st.booleans()
)
LEVELS = st.builds(LabelMatcher, st.just("severity"), st.just("warning|high"), st.just(True), st.booleans())


@given(st.lists(PLAIN | REGEX | LEVELS, min_size=1, max_size=4))
def test_matchers_survive_the_way_through_a_condition(matchers: list[LabelMatcher]) -> None:
    for matcher in matchers:
        if matcher.name == "severity" and matcher.value != "warning|high":
            return
    condition = condition_of(matchers)
    assert matchers_of(condition) == matchers
    compile_matcher(condition)


@pytest.mark.parametrize(
    "condition", ["true", 'rule == "a" || owner == "b"', 'labels.site == "ams"', "", 'rule == "a" && ']
)
def test_a_condition_of_another_form_has_no_matchers(condition: str) -> None:
    assert matchers_of(condition) is None


@pytest.mark.parametrize(
    ("matchers", "reason"),
    [
        ([], "0 matchers"),
        ([LabelMatcher("a", "b")] * 33, "33 matchers"),
        ([LabelMatcher("", "b")], "empty or too long"),
        ([LabelMatcher("a", "b" * 600)], "empty or too long"),
        ([LabelMatcher("a", "\0")], "NUL"),
        ([LabelMatcher("severity", "loud")], "names no severity"),
    ],
)
def test_matchers_that_cannot_be_used_are_refused(matchers: list[LabelMatcher], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        condition_of(matchers)

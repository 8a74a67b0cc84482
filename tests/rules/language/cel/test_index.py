from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.language.cel import RuleIndex, compile_event_condition, event_activation, event_environment
from tests.rules.language.cel.events import event


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ('schedule == "a"', (("schedule", "a"),)),
        ('"a" == schedule', (("schedule", "a"),)),
        ('type == "t"', (("type", "t"),)),
        ('schedule in ["a", "b", "a"]', (("schedule", "a"), ("schedule", "b"))),
        ("schedule in []", ()),
        ('origin == "scheduled" && schedule == "a" && seq > 1', (("schedule", "a"),)),
        ('(origin == "scheduled" && (seq > 1 && rule == "r"))', (("rule", "r"),)),
        ('schedule in ["a", "b"] && schedule == "b"', (("schedule", "b"),)),
        ('payload.schedule == "a" && origin == "derived"', (("origin", "derived"),)),
        ("true", None),
        ('schedule != "a"', None),
        ('!(schedule == "a")', None),
        ('schedule == "a" || schedule == "b"', None),
        ('schedule == "a" ? true : false', None),
        ('schedule.matches("a")', None),
        ('schedule.startsWith("a")', None),
        ("schedule == owner", None),
        ("schedule in [owner]", None),
        ('"a" in [schedule]', None),
        ("schedule in payload.l", None),
        ('schedule in {"a": "b"}', None),
        ('["a"].exists(schedule, schedule == "a")', None),
        ('(schedule == "a") == false', None),
        ("seq == 1", None),
        ('payload.schedule == "a"', None),
    ],
)
def test_the_index_holds_what_a_condition_requires(text: str, index: object) -> None:
    assert compile_event_condition(text).index == index


def test_only_the_rules_an_event_could_concern_are_candidates() -> None:
    texts = {
        "any": "seq > 0",
        "a": 'schedule == "a"',
        "ab": 'schedule in ["a", "b"]',
        "none": 'schedule == ""',
        "opened": 'type == "alarm-opened"',
        "never": "schedule in []",
    }
    index = RuleIndex({name: compile_event_condition(text) for name, text in texts.items()})
    assert index.candidates(event(schedule="a")) == ["any", "a", "ab"]
    assert index.candidates(event(schedule="b", type="alarm-opened")) == ["any", "ab", "opened"]
    assert index.candidates(event(schedule=None)) == ["any", "none"]
    assert index.matching(event(schedule="b", seq=0)) == ["ab"]
    assert index.matching(event(schedule="z", seq=1)) == ["any"]
    assert RuleIndex({}).matching(event()) == []


FIELDS = st.sampled_from(["schedule", "type", "owner", "origin"])
TEXTS = st.sampled_from(["", "a", "b", "ü"])


def quoted(text: str) -> str:
    return f'"{text}"'


ATOMS = st.one_of(
    st.builds(lambda field, text: f"{field} == {quoted(text)}", FIELDS, TEXTS),
    st.builds(lambda field, text: f"{quoted(text)} == {field}", FIELDS, TEXTS),
    st.builds(lambda field, text: f"{field} != {quoted(text)}", FIELDS, TEXTS),
    st.builds(
        lambda field, texts: f"{field} in [{', '.join(map(quoted, texts))}]",
        FIELDS,
        st.lists(TEXTS, max_size=3),
    ),
    st.builds(lambda left, right: f"{left} == {right}", FIELDS, FIELDS),
    st.builds(lambda field: f'{field}.matches("^a?$")', FIELDS),
    st.builds(
        lambda field, text: f"[{quoted(text)}].exists({field}, {field} == {quoted(text)})", FIELDS, TEXTS
    ),
    st.builds(lambda text: f"payload.x == {quoted(text)}", TEXTS),
    st.sampled_from(["true", "false", "1 / seq == 1", "payload.missing == 1"]),
)
CONDITIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds(lambda a, b: f"({a}) && ({b})", inner, inner),
        st.builds(lambda a, b: f"({a}) || ({b})", inner, inner),
        st.builds(lambda a: f"!({a})", inner),
        st.builds(lambda a, b, c: f"(({a}) ? ({b}) : ({c}))", inner, inner, inner),
        st.builds(lambda a, b: f"(({a}) == ({b}))", inner, inner),
    ),
    max_leaves=6,
)
EVENTS = st.fixed_dictionaries(
    {
        "schedule": st.none() | TEXTS,
        "type": TEXTS,
        "owner": st.none() | TEXTS,
        "origin": TEXTS,
        "seq": st.integers(0, 1),
        "payload": st.sampled_from([{}, {"x": "a"}, {"x": 1}]),
    }
)


@settings(max_examples=400)
@given(texts=st.lists(CONDITIONS, min_size=1, max_size=6), fields=st.lists(EVENTS, min_size=1, max_size=6))
def test_the_index_never_loses_a_match(texts: list[str], fields: list[dict[str, Any]]) -> None:
    conditions = {str(place): compile_event_condition(text) for place, text in enumerate(texts)}
    index = RuleIndex(conditions)
    for values in fields:
        one = event(**values)
        activation = event_activation(event_environment(), one)
        brute_force = [name for name, condition in conditions.items() if condition.matches(activation)]
        assert index.matching(one) == brute_force
        assert set(brute_force) <= set(index.candidates(one))

"""A token is one level of a subject for any text, and can be decoded."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.wire.subjects import action_subject, event_subject, text_of, token, tombstone_subject

LEGAL = re.compile(r"[A-Za-z0-9_%-]+")
TEXTS = st.text() | st.text(alphabet="_%.*> aA0é-5F", max_size=6)


@given(TEXTS)
def test_every_text_is_one_token_and_comes_back(text: str) -> None:
    assert LEGAL.fullmatch(token(text))
    assert text_of(token(text)) == text


@given(TEXTS, TEXTS)
def test_two_texts_never_share_a_token(one: str, other: str) -> None:
    assert (token(one) == token(other)) == (one == other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "_"),
        ("_", "%5F"),
        ("__", "__"),
        ("plant-7_b", "plant-7_b"),
        ("plant 7", "plant%207"),
        ("a.b", "a%2Eb"),
        ("*", "%2A"),
        (">", "%3E"),
        ("%2E", "%252E"),
        ("é", "%C3%A9"),
        ("鐘", "%E9%90%98"),
        ("a\tb\n", "a%09b%0A"),
    ],
)
def test_bytes_that_subjects_cannot_hold_are_encoded(text: str, expected: str) -> None:
    assert token(text) == expected


@given(TEXTS, TEXTS, TEXTS)
def test_no_name_adds_a_level_to_a_subject(type: str, name: str, owner: str) -> None:
    levels = event_subject("ns.v1", "caused", type, name, owner).split(".")
    assert levels[:4] == ["ns", "v1", "event", "caused"]
    assert [text_of(level) for level in levels[4:]] == [type, name, owner]
    assert action_subject("ns.v1", name).split(".") == ["ns", "v1", "action", token(name)]


def test_tombstones_have_a_subject_per_kind() -> None:
    assert tombstone_subject("ns.v1", "action-step") == "ns.v1.tombstone.action-step"

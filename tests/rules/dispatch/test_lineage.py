"""An event carries the rules that led to it, and does not start them again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.lanes.lineage import MAX_DEPTH, lineage_text, parse_lineage, suppression


def test_a_rule_is_not_started_by_an_event_that_it_led_to() -> None:
    assert suppression("a", []) is None
    assert suppression("a", ["b", "c"]) is None
    assert suppression("a", ["b", "a", "c"]) == "suppressed: it would start itself again, b -> a -> c -> a"


def test_nothing_is_started_at_the_end_of_a_long_chain() -> None:
    chain = [f"rule-{number}" for number in range(MAX_DEPTH)]
    assert suppression("next", chain[1:]) is None
    assert (
        suppression("next", chain)
        == "suppressed: 16 rules led to this event, at most 16 may follow each other"
    )


@given(
    st.lists(st.text(st.characters(codec="ascii", min_codepoint=32), min_size=1, max_size=20), max_size=10)
)
def test_a_lineage_survives_its_way_through_a_header(lineage: list[str]) -> None:
    text = lineage_text(lineage)
    assert "\n" not in text
    assert parse_lineage(text) == tuple(lineage)


@pytest.mark.parametrize("text", ["", ",,,", "a b", "%zz", "\n", "é"])
def test_an_unreadable_lineage_is_empty(text: str) -> None:
    assert parse_lineage(text) == ()


def test_a_header_of_any_length_is_cut() -> None:
    assert len(parse_lineage(",".join(["a"] * 10_000))) == MAX_DEPTH

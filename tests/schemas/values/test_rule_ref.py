"""References to rules, and their texts."""

from __future__ import annotations

import pytest

from schemas.values.rule_ref import RuleRef


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("digest", RuleRef("rule", "digest")),
        ("schedule:nightly", RuleRef("schedule", "nightly")),
        ("stale:load", RuleRef("stale", "load")),
        ("notify:hot:ops", RuleRef.of_notification("hot", "ops")),
        ("notify:stale:load:ops", RuleRef.of_notification("stale:load", "ops")),
        ("schedule", RuleRef("rule", "schedule")),
    ],
)
def test_a_reference_is_its_text_and_back(text: str, reference: RuleRef) -> None:
    assert RuleRef.parse(text) == reference
    assert str(reference) == text

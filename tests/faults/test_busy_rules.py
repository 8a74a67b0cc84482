"""The random rule sets of the recorded hour can all be applied."""

from __future__ import annotations

import random

import pytest

from rules.documents.load import load_text
from tests.faults.busy_rules import RULES, busy_rules


@pytest.mark.parametrize("seed", range(5))
def test_every_rule_set_loads(seed: int) -> None:
    chance = random.Random(seed)
    texts = [busy_rules(chance) for _ in range(10)]
    assert all(len(load_text(text).documents) > 5 for text in texts)
    assert all(any(f"name: {rule}," in text for text in texts) for rule in RULES)

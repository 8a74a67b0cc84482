"""A rule set is compiled in one place: unchanged rules are reused, unusable ones are left out."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from rules.documents.compiled_rules import CompiledRuleSet
from rules.documents.rule_book import RuleSet
from schemas.documents import DatapointTypeDocument, EventRuleDocument


def hot(name: str, **changes: Any) -> EventRuleDocument:
    facts = {"name": name, "datapoint": "dsp.*", "above": 65, "severity": "warning"}
    return EventRuleDocument.model_validate({**facts, **changes})


def compiled(*documents: BaseModel, before: CompiledRuleSet | None = None) -> CompiledRuleSet:
    return CompiledRuleSet(RuleSet(documents), before)


def test_a_rule_that_did_not_change_is_not_compiled_again() -> None:
    before = compiled(hot("a"), hot("b"))
    after = compiled(hot("a"), hot("b", above=70), before=before)
    assert after.rules["a"] is before.rules["a"]
    assert after.rules["b"] is not before.rules["b"]


def test_a_change_of_the_types_compiles_every_rule_again() -> None:
    before = compiled(hot("a"))
    celsius = DatapointTypeDocument.model_validate({"name": "t", "key": "dsp.*", "unit": "°C"})
    after = compiled(hot("a"), celsius, before=before)
    assert after.rules["a"] is not before.rules["a"]


def test_a_rule_that_cannot_be_compiled_is_left_out_and_the_others_stay() -> None:
    text = DatapointTypeDocument.model_validate({"name": "t", "key": "dsp.*", "value": "string"})
    rules = compiled(hot("a"), hot("b", datapoint="other"), text)
    assert list(rules.rules) == ["b"]
    assert list(rules.unusable) == ["a"]


def test_disabled_rules_are_named() -> None:
    rules = compiled(hot("a", enabled=False), hot("b"))
    assert (list(rules.rules), list(rules.disabled)) == (["b"], ["a"])

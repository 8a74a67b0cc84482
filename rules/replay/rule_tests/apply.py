"""Applies other rules in the middle of a rule test.

Guarantee: the documents that are not among the new ones are removed, as by `apply --prune`. States of
alarms are converted by the code of a live apply (`rules.alarms.rule_change`), at the instant of the
apply. A run that has started finishes with its document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rules.documents.rule_book import RuleSet
from schemas.documents import DOCUMENT_KINDS, ActionRuleDocument
from tocsin.core.records import NewEvent


def changed_documents(before: RuleSet, after: RuleSet) -> list[dict[str, Any]]:
    """The documents that differ, as the `rules-applied` event lists them."""
    changes = []
    for kind, model in DOCUMENT_KINDS.items():
        old, new = before.of(model), after.of(model)
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                outcome = "added" if name not in old else "removed" if name not in new else "changed"
                changes.append({"kind": kind, "name": name, "outcome": outcome})
    return changes


def applied_event(changes: Sequence[Mapping[str, Any]], now: datetime, who: str) -> NewEvent:
    payload = {"count": len(changes), "documents": list(changes), "who": who, "via": "test"}
    return NewEvent(now, "caused", "rules-applied", payload)


def ended_action_rules(before: RuleSet, after: RuleSet) -> dict[str, str]:
    """The action_rules that start no more runs, with the reason."""
    rules = after.of(ActionRuleDocument)
    ended = {name: "the rule was removed" for name in before.of(ActionRuleDocument) if name not in rules}
    return ended | {name: "the rule was disabled" for name, rule in rules.items() if not rule.enabled}

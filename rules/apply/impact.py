"""Computes the effect of a plan on alarms, series and systems that exist.

Guarantee: the documents that would hold after the plan are compiled together, so a change that
would break a rule which is applied already is rejected, and every rule whose states change is
named.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rules.alarms.rule_change import StateChange, state_changes
from rules.apply.plan import ApplyPlan, DocumentKey, StoredDocument
from rules.documents.compiled_rules import CompiledRuleSet
from rules.documents.members import Members
from rules.documents.rule_book import RuleSet, parse_document
from rules.engine import CompiledRules
from schemas.documents import SystemDocument
from tocsin.core.errors import Refused

_ALARM_KINDS = ("event_rule", "datapoint_type", "heartbeat")
_HEALTH_KINDS = (*_ALARM_KINDS, "system")
_NO_RULES = CompiledRules(())
_NO_MEMBERS = Members()


class Impact(NamedTuple):
    state_changes: Mapping[str, StateChange]
    """By the name of every event_rule whose states change."""
    before: CompiledRules = _NO_RULES
    after: CompiledRules = _NO_RULES
    systems: Sequence[SystemDocument] | None = None
    """The systems after the plan; None if nothing changes that their health depends on."""
    members: Members = _NO_MEMBERS
    """The members of the systems before the plan."""


def impact_of(stored: Sequence[StoredDocument], plan: ApplyPlan) -> Impact:
    """The effect of a plan.

    A change that would break an event_rule which is applied already is rejected.
    """
    changed = {change.kind for change in plan.effective}
    if not changed.intersection(_HEALTH_KINDS):
        return Impact({})
    before = {(document.kind, document.name): document.content for document in stored if document.in_force}
    after: dict[DocumentKey, Any] = {**before, **{change.key: change.after for change in plan.effective}}
    documents = _rule_set(after)
    systems = list(documents.of(SystemDocument).values())
    former = CompiledRuleSet(_rule_set(before))
    if not changed.intersection(_ALARM_KINDS):
        return Impact({}, former, former, systems, former.members)
    latter = CompiledRuleSet(documents, former)
    for name, error in latter.unusable.items():
        if name in former.rules:
            raise Refused(
                f"event_rule {name!r}, which is applied already, would not hold any more ({error})",
                remedy="change it in the same apply",
            )
    return Impact(state_changes(former, latter), former, latter, systems, former.members)


def _rule_set(documents: Mapping[DocumentKey, Any]) -> RuleSet:
    """The rule set without unreadable documents: the workers skip them, too."""
    models = (
        parse_document(kind, document)
        for (kind, _), document in documents.items()
        if kind in _HEALTH_KINDS and document is not None
    )
    return RuleSet(model for model in models if model is not None)

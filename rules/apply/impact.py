"""What a plan means for what the rules have begun. Pure.

Guarantee: the documents that would hold after the plan are compiled together, so a change that would break a rule which
is applied already is refused, and every rule whose states do not simply go on is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rules.alarms.rule_change import StateChange, state_changes
from rules.apply.plan import Key, Plan, Stored
from rules.documents.compiled_rules import CompiledRuleSet
from rules.documents.members import Members
from rules.documents.rule_book import RuleSet, parse_document
from rules.engine import CompiledRules
from schemas.documents import SystemDocument
from tocsin.core.errors import Refused

_OF_ALARMS = ("event_rule", "datapoint_type")
_OF_HEALTH = (*_OF_ALARMS, "system")
_NO_RULES = CompiledRules(())
_NO_MEMBERS = Members()


class Decided(NamedTuple):
    """What a plan means for what the rules have begun."""

    state_changes: Mapping[str, StateChange]
    """By the name of every rule whose states do not simply go on."""
    before: CompiledRules = _NO_RULES
    after: CompiledRules = _NO_RULES
    systems: Sequence[SystemDocument] | None = None
    """Those that hold after the plan; None if nothing changes that their health depends on."""
    members: Members = _NO_MEMBERS
    """Of those that held before."""


def decide(stored: Sequence[Stored], planned: Plan) -> Decided:
    """Of every event_rule, and of what the datapoint_types stand for.

    Refuses a change after which a rule that is applied already would not hold.
    """
    changed = {change.kind for change in planned.effective}
    if not changed.intersection(_OF_HEALTH):
        return Decided({})
    before = {(one.kind, one.name): one.document for one in stored if one.holds}
    after: dict[Key, Any] = {**before, **{change.key: change.after for change in planned.effective}}
    documents = _rule_set(after)
    systems = list(documents.of(SystemDocument).values())
    former = CompiledRuleSet(_rule_set(before))
    if not changed.intersection(_OF_ALARMS):
        return Decided({}, former, former, systems, former.members)
    latter = CompiledRuleSet(documents, former)
    for name, error in latter.unusable.items():
        if name in former.rules:
            raise Refused(
                f"event_rule {name!r}, which is applied already, would not hold any more ({error})",
                remedy="change it in the same apply",
            )
    return Decided(state_changes(former, latter), former, latter, systems, former.members)


def _rule_set(documents: Mapping[Key, Any]) -> RuleSet:
    """Without the documents that this version of Tocsin cannot read: the workers skip them, too."""
    models = (
        parse_document(kind, document)
        for (kind, _), document in documents.items()
        if kind in _OF_HEALTH and document is not None
    )
    return RuleSet(model for model in models if model is not None)

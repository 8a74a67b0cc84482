"""What a plan means for what the rules have begun. Pure.

Guarantee: the documents that would hold after the plan are compiled together, so a change that would break a rule which
is applied already is refused, and every rule whose states do not simply go on is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from rules.alarms.rule_change import Fate, fates
from rules.apply.plan import Key, Plan, Stored
from rules.documents.members import Members
from rules.engine import CompiledRules, Rule, TypeIndex, compile_rule
from schemas.documents import KINDS, DatapointTypeDocument, EventRuleDocument, SystemDocument
from tocsin.core.errors import InvalidInput, Refused

_OF_ALARMS = ("event_rule", "datapoint_type")
_OF_HEALTH = (*_OF_ALARMS, "system")
_NO_RULES = CompiledRules(())
_NO_MEMBERS = Members()


class Decided(NamedTuple):
    """What a plan means for what the rules have begun."""

    fates: Mapping[str, Fate]
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
    disabled = [
        change.name
        for change in planned.of_kind("event_rule")
        if change.after is not None and not change.after["enabled"]
    ]
    systems, members = _systems(after), Members(_systems(before))
    former, _ = _compiled(before)
    if not changed.intersection(_OF_ALARMS):
        return Decided({}, former, former, systems, members)
    latter, unusable = _compiled(after, former)
    for name, error in unusable.items():
        if name in former.rules:
            raise Refused(
                f"event_rule {name!r}, which is applied already, would not hold any more ({error})",
                remedy="change it in the same apply",
            )
    return Decided(fates(former, latter, disabled), former, latter, systems, members)


def _systems(documents: Mapping[Key, Any]) -> list[SystemDocument]:
    models = (_model(kind, document) for (kind, _), document in documents.items())
    return [model for model in models if isinstance(model, SystemDocument)]


def _compiled(
    documents: Mapping[Key, Any], before: CompiledRules | None = None
) -> tuple[CompiledRules, dict[str, InvalidInput]]:
    """With what cannot be used; what did not change is not compiled again."""
    models = [model for (kind, _), document in documents.items() if (model := _model(kind, document))]
    types = TypeIndex(one for one in models if isinstance(one, DatapointTypeDocument))
    known = before.rules if before is not None and before.types.types == types.types else {}
    rules: list[Rule] = []
    unusable: dict[str, InvalidInput] = {}
    for one in (one for one in models if isinstance(one, EventRuleDocument)):
        former = known.get(one.name)
        try:
            rules.append(
                former if former is not None and former.document == one else compile_rule(one, types)
            )
        except InvalidInput as error:
            unusable[one.name] = error
    return CompiledRules(rules, types), unusable


def _model(kind: str, document: Any) -> BaseModel | None:
    """One that this version of Tocsin cannot read is set aside by the workers, too."""
    with suppress(ValidationError):
        return KINDS[kind].model_validate(document) if kind in _OF_HEALTH and document is not None else None
    return None

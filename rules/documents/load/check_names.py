"""Checks the names that conditions over events compare with: rules, actions and event types.

Guarantee: a `rule` or `action` in a condition exists, a type of an alarm's event exists, and the
conditions of an event_rule compare `type` only with types that its pattern can bring. Other types
may come from producers, so they are only a warning, if a similar type is known.

Rules and actions are checked only if some are known, like schedules: a file of conditions alone,
checked without its database, does not show which exist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, get_args

from cel_expr_python import cel
from pydantic import BaseModel

from rules.documents.load.problems import RuleProblem, hint_about
from rules.documents.load.source import SourceDocument
from rules.documents.load.yaml_tree import Path
from rules.engine.rule import event_type_pattern
from rules.language.cel import event_environment
from rules.language.cel.compared import ComparedLiteral, compared_literals
from rules.language.cel.steps import branch_environment, wait_environment
from schemas.documents import (
    ActionDocument,
    ActionRuleDocument,
    DatapointTypeDocument,
    EventRuleDocument,
    HeartbeatDocument,
    ScheduleDocument,
)
from schemas.documents.runbook import walk
from schemas.values.rule_ref import RuleRef
from schemas.wire.alarm_events import Transition
from tocsin.core.near_name import near_name

_ALARM_PREFIX = "alarm-"
_SYSTEM_TYPES = {
    *("schedule-fired", "schedule-missed", "schedule-triggered", "rules-applied"),
    *("notification-failed", "silence-added", "silence-ended"),
    *("heartbeat-start", "heartbeat-success", "heartbeat-fail"),
}


class EventNames(NamedTuple):
    """The names that events can have. An empty set means that none is known."""

    rules: frozenset[str]
    actions: frozenset[str]
    types: frozenset[str]


class EventCondition(NamedTuple):
    """A condition over events in a document."""

    path: Path
    text: str
    env: cel.Env


def event_names(models: Sequence[BaseModel], known: Mapping[str, Collection[str]]) -> EventNames:
    """`models` are the new documents and the applied ones that stay."""
    rules, types = set(known.get("event_rule", ())), {*_SYSTEM_TYPES, *_alarm_types()}
    actions = {*known.get("action", ()), *(f"notify-{channel}" for channel in known.get("channel", ()))}
    for model in models:
        if isinstance(model, DatapointTypeDocument) and model.on_stale == "alarm":
            rules.add(str(RuleRef("stale", model.name)))
        elif isinstance(model, HeartbeatDocument):
            rules.add(str(RuleRef("heartbeat", model.name)))
        elif isinstance(model, ScheduleDocument):
            types.add(model.type)
        elif isinstance(model, ActionDocument):
            types |= {step.emit.type for step in model.runbook() if step.emit is not None}
            types |= {step.emit.type for _, step in walk(model.steps or ()) if step.emit is not None}
    return EventNames(frozenset(rules), frozenset(actions), frozenset(types))


def name_problems(document: SourceDocument, names: EventNames) -> Iterator[RuleProblem]:
    for condition in event_conditions(document.model):
        for literal in compared_literals(condition.env, condition.text, "rule", "action", "type"):
            message = _problem_of(literal, names) or _never_brought(document.model, literal)
            if message is not None:
                yield from document.problems_inside(condition.path, [(literal.line, literal.column, message)])


def type_warnings(document: SourceDocument, names: EventNames) -> Iterator[RuleProblem]:
    for condition in event_conditions(document.model):
        for literal in compared_literals(condition.env, condition.text, "type"):
            near = near_name(literal.text, sorted(names.types), cutoff=0.85)
            if literal.text not in names.types and near:
                message = (
                    f"no document of these files makes events of the type '{literal.text}', "
                    f"did you mean '{near}'?"
                )
                yield from document.problems_inside(condition.path, [(literal.line, literal.column, message)])


def event_conditions(model: BaseModel) -> Iterator[EventCondition]:
    if isinstance(model, ActionRuleDocument) and model.when is not None:
        yield EventCondition(("when",), model.when, event_environment())
    elif isinstance(model, EventRuleDocument) and model.event is not None:
        for key in ("where", "fire", "clear"):
            text = getattr(model, key)
            if text is not None:
                yield EventCondition((key,), text, event_environment())
    elif isinstance(model, ActionDocument):
        for path, step in walk(model.steps or ()):
            if step.branch is not None:
                yield EventCondition((*path, "branch", "when"), step.branch.when, branch_environment())
            elif step.wait is not None and step.wait.until_event is not None:
                yield EventCondition(
                    (*path, "wait", "until_event"), step.wait.until_event, wait_environment()
                )


def _problem_of(literal: ComparedLiteral, names: EventNames) -> str | None:
    if not literal.text:
        return None  # An event without the field has "".
    known = {"rule": names.rules, "action": names.actions}.get(literal.field)
    if known is not None and known and literal.text not in known:
        return f"unknown {literal.field} '{literal.text}', {hint_about(literal.field, literal.text, known)}"
    is_alarm_type = literal.field == "type" and literal.text.startswith(_ALARM_PREFIX)
    if is_alarm_type and literal.text not in _alarm_types():
        return (
            f"unknown event type '{literal.text}', {hint_about('event type', literal.text, _alarm_types())}"
        )
    return None


def _never_brought(model: BaseModel, literal: ComparedLiteral) -> str | None:
    if not isinstance(model, EventRuleDocument) or model.event is None or literal.field != "type":
        return None
    if event_type_pattern(model.event).fullmatch(literal.text):
        return None
    return f"the pattern '{model.event}' never brings the type '{literal.text}': widen 'event'"


def _alarm_types() -> set[str]:
    return {f"{_ALARM_PREFIX}{transition}" for transition in _flat(Transition)}


def _flat(literal: object) -> Iterator[str]:
    for argument in get_args(literal):
        if isinstance(argument, str):
            yield argument
        else:
            yield from _flat(argument)

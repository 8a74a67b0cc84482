"""Warnings about documents that can be applied and probably do not do what was meant.

Guarantee: documents with warnings can be applied. Each warning has its position and a remedy. A
warning is given only if all documents were read: a file that is cut short may contain what seems to
be missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from pydantic import BaseModel

from rules.documents.load.calendars import calendar_warnings
from rules.documents.load.check_names import EventNames, type_warnings
from rules.documents.load.lint_schedules import schedule_warnings
from rules.documents.load.lint_series import series_warnings
from rules.documents.load.problems import RuleProblem
from rules.documents.load.source import SourceDocument
from rules.engine import TypeIndex
from rules.language.cel import compile_event_condition
from schemas.documents import (
    ActionDocument,
    ActionRuleDocument,
    CalendarDocument,
    DatapointTypeDocument,
    EventRuleDocument,
    HeartbeatDocument,
    ScheduleDocument,
    SystemDocument,
)
from schemas.documents.runbook import walk
from schemas.values.rule_ref import RuleRef

_OPENED = "alarm-opened"


def lint(
    documents: Sequence[SourceDocument], models: Sequence[BaseModel], names: EventNames, now: datetime | None
) -> Iterator[RuleProblem]:
    """`models` are all documents that would be in force, with those that were applied before."""
    types = TypeIndex(model for model in models if isinstance(model, DatapointTypeDocument))
    for document in documents:
        model = document.model
        yield from type_warnings(document, names)
        yield from series_warnings(document, types)
        yield from _reach_warnings(document, models)
        if isinstance(model, ScheduleDocument) and model.enabled:
            yield from schedule_warnings(document, model, now)
        elif isinstance(model, CalendarDocument):
            yield from calendar_warnings(document, model, models, now)
        elif isinstance(model, ActionDocument):
            yield from _wait_warnings(document, model)


def _wait_warnings(document: SourceDocument, action: ActionDocument) -> Iterator[RuleProblem]:
    for path, step in walk(action.steps or ()):
        if step.wait is not None and step.wait.until_event is not None and step.wait.timeout is None:
            where = ".".join(str(part) for part in (*path, "wait"))
            message = f"'{where}' of {document.title} has no 'timeout': without the event it waits forever"
            yield document.problem(document.body.at((*path, "wait")), message)


def _reach_warnings(document: SourceDocument, models: Sequence[BaseModel]) -> Iterator[RuleProblem]:
    """An alarm that no channel and no action receives."""
    rule = _alarm_rule(document.model)
    if rule is None or any(_may_receive(model, rule) for model in models):
        return
    message = (
        f"the alarm of {document.title} reaches no channel and starts no action: "
        "add 'notify', or an action_rule with 'on: alarm'"
    )
    yield document.problem(document.body.at(("name",)), message)


def _alarm_rule(model: BaseModel) -> str | None:
    """The name of the alarms of a document that notifies no channel."""
    if isinstance(model, EventRuleDocument) and model.enabled and not model.notify:
        return model.name
    if isinstance(model, DatapointTypeDocument) and model.on_stale == "alarm" and not model.notify:
        return str(RuleRef("stale", model.name))
    if isinstance(model, HeartbeatDocument) and model.enabled and not model.notify:
        return str(RuleRef("heartbeat", model.name))
    return None


def _may_receive(model: BaseModel, rule: str) -> bool:
    """Whether an action_rule may start for the opened alarm, or a health or another rule depends on
    it."""
    if isinstance(model, SystemDocument):
        return True
    if isinstance(model, EventRuleDocument):
        if model.alarms is not None:
            return any(reference.rule == rule for reference in model.alarms.references())
        return model.event is not None and model.name != rule and model.event.startswith("alarm")
    if not isinstance(model, ActionRuleDocument) or not model.enabled:
        return False
    if model.on == "alarm" and "opened" not in model.transitions:
        return False
    # A condition that was applied compiles; `index` has the only values under which it can be true.
    index = compile_event_condition(model.condition).index
    facts = {"origin": "derived", "type": _OPENED, "rule": rule, "schedule": "", "action": ""}
    return index is None or any(facts.get(field, literal) == literal for field, literal in index)

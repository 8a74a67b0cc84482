"""Checks across documents: names, references, recurrences, conditions and templates.

Guarantee: documents that pass can be applied. Names are unique per kind, every action that is
referred to exists, every recurrence fires, every condition and template compiles, and the schedules
in conditions exist.

Schedule names are checked only if some are known: a file of rules alone, checked without its
database, does not show which schedules exist.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from pydantic import BaseModel

from rules.documents.load.calendars import resolve_calendars
from rules.documents.load.check_alarms import alarms_problems
from rules.documents.load.check_calc import calc_problems
from rules.documents.load.check_names import event_names, name_problems
from rules.documents.load.check_series import kept_documents, series_problems
from rules.documents.load.check_steps import runbook_problems
from rules.documents.load.check_suppression import suppression_problems
from rules.documents.load.check_templates import template_problems
from rules.documents.load.check_waits import wait_problems
from rules.documents.load.lint import lint
from rules.documents.load.problems import RuleProblem, unknown_name
from rules.documents.load.recurrences import ScheduleInvalid, recurrence_of
from rules.documents.load.source import ReadDocuments, SourceDocument
from rules.language.cel import ExpressionInvalid, compile_event_condition
from schemas.documents import (
    ActionDocument,
    ActionRuleDocument,
    ChannelDocument,
    HeartbeatDocument,
    ScheduleDocument,
)
from timers.recurrence.zones import zone
from tocsin.core.errors import InvalidInput


class CheckResult(NamedTuple):
    problems: list[RuleProblem]
    warnings: list[RuleProblem]


def check_all(
    read: ReadDocuments,
    known: Mapping[str, frozenset[str]],
    applied: Sequence[BaseModel],
    anchor: datetime | None,
) -> CheckResult:
    """Warnings are searched only in documents without problems."""
    names = {kind: set(of_kind) for kind, of_kind in known.items()}
    for kind, name in read.declared:
        names.setdefault(kind, set()).add(name)
    # A file that is cut short by a syntax error may contain the documents that seem to be missing.
    actions = None if read.is_cut_short else names.get("action", set())
    schedules = None if read.is_cut_short else names.get("schedule")
    channels = None if read.is_cut_short else names.get("channel", set())
    problems = resolve_calendars(read, applied)
    problems += [*_duplicate_problems(read.documents), *series_problems(read, names, applied)]
    problems += calc_problems(read, kept_documents(read, applied))
    for document in read.documents:
        if actions is not None:
            problems += _reference_problems(document, actions)
        problems += template_problems(document)
        problems += suppression_problems(document, anchor)
        if isinstance(document.model, ScheduleDocument):
            problems += _recurrence_problems(document, document.model, anchor)
        elif isinstance(document.model, HeartbeatDocument):
            problems += _expectation_problems(document, document.model)
        elif isinstance(document.model, ActionRuleDocument):
            problems += _condition_problems(document, document.model, schedules)
        elif isinstance(document.model, ChannelDocument):
            problems += _timezone_problems(document, document.model.tz)
        elif isinstance(document.model, ActionDocument):
            problems += runbook_problems(document, document.model, channels)
    problems += wait_problems(read.documents, applied)
    if problems or read.invalid:
        return CheckResult(problems, [])
    models = [*kept_documents(read, applied), *(document.model for document in read.documents)]
    events = event_names(models, names)
    if not read.is_cut_short:
        problems += alarms_problems(read, models, events.rules)
    problems += (problem for document in read.documents for problem in name_problems(document, events))
    return CheckResult(problems, [] if problems else list(lint(read.documents, models, events, anchor)))


def _timezone_problems(document: SourceDocument, tz: str) -> Iterable[RuleProblem]:
    try:
        zone(tz)
    except InvalidInput as error:
        yield document.problem(document.body.at(("tz",)), f"{document.title}: {error}")


def _duplicate_problems(documents: Sequence[SourceDocument]) -> Iterable[RuleProblem]:
    first: dict[tuple[str, str], SourceDocument] = {}
    for document in documents:
        earlier = first.setdefault((document.kind, document.name), document)
        if earlier is not document:
            node = earlier.body.at(("name",))
            position = f"{earlier.file}:{node.line + 1}:{node.column + 1}"
            message = f"{document.title} is defined twice, first at {position}"
            yield document.problem(document.body.at(("name",)), message)


def _reference_problems(document: SourceDocument, actions: set[str]) -> Iterable[RuleProblem]:
    action = getattr(document.model, "action", None)
    if action is not None and action not in actions:
        message = unknown_name("action", action, document.title, actions)
        yield document.problem(document.body.at(("action",)), message)


def _recurrence_problems(
    document: SourceDocument, schedule: ScheduleDocument, anchor: datetime | None
) -> Iterable[RuleProblem]:
    if schedule.retry is not None and schedule.action is None:
        message = f"{document.title} has 'retry', which is for the steps of its action: add 'action'"
        yield document.problem(document.body.key_at(("retry",)), message)
    try:
        recurrence_of(schedule, anchor=anchor, hash_id=schedule.name)
    except ScheduleInvalid as error:
        yield document.problem(document.body.at((error.key,)), f"{document.title}: {error}")


def _expectation_problems(document: SourceDocument, heartbeat: HeartbeatDocument) -> Iterable[RuleProblem]:
    if heartbeat.every is not None:
        return
    try:
        recurrence_of(heartbeat, anchor=None, hash_id=heartbeat.name)
    except ScheduleInvalid as error:
        yield document.problem(document.body.at((error.key,)), f"{document.title}: {error}")


def _condition_problems(
    document: SourceDocument, rule: ActionRuleDocument, schedules: set[str] | None
) -> Iterable[RuleProblem]:
    try:
        compile_event_condition(rule.condition, rule=rule.name, known_schedules=schedules)
    except ExpressionInvalid as invalid:
        yield from document.problems_inside(("when",), invalid.errors)

"""What can only be known when all documents are there: names, references, recurrences, conditions, templates.

Guarantee: documents that pass can be applied: names are unique per kind, every action that is named
exists, every recurrence fires, every condition and template compiles, and the schedules that conditions name
exist.

Why schedule names are only checked when some are known: a file of rules alone, checked away from
its database, says nothing about which schedules exist.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from pydantic import BaseModel

from rules.documents.load.check_series import series_problems
from rules.documents.load.check_steps import runbook_problems
from rules.documents.load.check_templates import template_problems
from rules.documents.load.locations import place_in_file
from rules.documents.load.problems import Problem
from rules.documents.load.recurrences import ScheduleInvalid, recurrence_of
from rules.documents.load.source import Placed, Read
from rules.language.cel import ExpressionInvalid, compile_event_condition
from schemas.documents import ActionDocument, ActionRuleDocument, ScheduleDocument


def check_all(
    read: Read,
    known: Mapping[str, frozenset[str]],
    applied: Sequence[BaseModel],
    anchor: datetime | None,
) -> list[Problem]:
    names = {kind: set(of_kind) for kind, of_kind in known.items()}
    for kind, name in read.declared:
        names.setdefault(kind, set()).add(name)
    # A file cut short by a syntax error may hold whatever seems to be missing.
    actions = None if read.is_cut_short else names.get("action", set())
    schedules = None if read.is_cut_short else names.get("schedule")
    channels = None if read.is_cut_short else names.get("channel", set())
    problems = [*_duplicates(read.placed), *series_problems(read, names, applied)]
    for one in read.placed:
        if actions is not None:
            problems += _reference_problems(one, actions)
        problems += template_problems(one)
        if isinstance(one.document.model, ScheduleDocument):
            problems += _recurrence_problems(one, one.document.model, anchor)
        elif isinstance(one.document.model, ActionRuleDocument):
            problems += _condition_problems(one, one.document.model, schedules)
        elif isinstance(one.document.model, ActionDocument):
            problems += runbook_problems(one, one.document.model, channels)
    return problems


def _duplicates(placed: Sequence[Placed]) -> Iterable[Problem]:
    first: dict[tuple[str, str], Placed] = {}
    for one in placed:
        earlier = first.setdefault((one.document.kind, one.name), one)
        if earlier is not one:
            node = earlier.document.body.at(("name",))
            message = (
                f"{one.title} is defined twice, first at {earlier.file}:{node.line + 1}:{node.column + 1}"
            )
            yield one.problem(one.document.body.at(("name",)), message)


def _reference_problems(one: Placed, actions: set[str]) -> Iterable[Problem]:
    action = getattr(one.document.model, "action", None)
    if action is not None and action not in actions:
        near = difflib.get_close_matches(action, sorted(actions), n=1)
        hint = f"did you mean '{near[0]}'?" if near else "no action of this name is defined"
        message = f"unknown action '{action}' in {one.title}, {hint}"
        yield one.problem(one.document.body.at(("action",)), message)


def _recurrence_problems(
    one: Placed, schedule: ScheduleDocument, anchor: datetime | None
) -> Iterable[Problem]:
    try:
        recurrence_of(schedule, anchor=anchor, hash_id=schedule.name)
    except ScheduleInvalid as error:
        yield one.problem(one.document.body.at((error.key,)), f"{one.title}: {error}")


def _condition_problems(
    one: Placed, rule: ActionRuleDocument, schedules: set[str] | None
) -> Iterable[Problem]:
    try:
        compile_event_condition(rule.condition, rule=rule.name, known_schedules=schedules)
    except ExpressionInvalid as invalid:
        node = one.document.body.at(("when",))
        for error in invalid.errors:
            line, column = place_in_file(one.lines, node, error.line, error.column)
            yield Problem(one.file, line, column, f"'when' of {one.title}: {error.message}")

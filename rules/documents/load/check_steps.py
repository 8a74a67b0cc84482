"""Checks the steps of an action, beyond the shape of each step.

Guarantee: an action that passes can be run. It compiles to a program, no two steps share a name,
its timezones and channels exist, and its conditions compile and refer only to answers of earlier
steps. Each problem has its position.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from rules.documents.load.problems import RuleProblem, unknown_name
from rules.documents.load.source import SourceDocument
from rules.documents.load.yaml_tree import Path
from rules.language.cel import (
    ExpressionInvalid,
    compile_branch_condition,
    compile_matcher,
    compile_wait_condition,
)
from rules.runbook import compile_runbook
from rules.runbook.wait import times_of_day
from schemas.documents.action import ActionDocument
from schemas.documents.runbook import Responses, StepDocument, walk
from tocsin.core.errors import InvalidInput


def runbook_problems(
    document: SourceDocument, action: ActionDocument, channels: Collection[str] | None
) -> Iterator[RuleProblem]:
    """`channels` is None if they are not known; then their names are not checked."""
    if channels is not None:
        yield from _channel_problems(document, action, channels)
    yield from _digest_problems(document, action)
    try:
        compile_runbook(action)
    except InvalidInput as error:
        yield document.problem(document.body.key_at(("steps",)), f"{document.title}: {error}")
    names: list[str] = []
    for path, step in (*walk(action.steps or ()), *walk(action.finally_ or (), ("finally",))):
        yield from _step_problems(document, path, step, names)
        if step.name is not None and step.name in names:
            message = f"two steps of {document.title} are named '{step.name}'"
            yield document.problem(document.body.at((*path, "name")), message)
        names += [step.name] if step.name is not None else []


def _step_problems(
    document: SourceDocument, path: Path, step: StepDocument, before: Sequence[str]
) -> Iterable[RuleProblem]:
    if step.branch is not None:
        yield from _condition_problems(document, (*path, "branch", "when"), step.branch.when, before)
    if step.wait is None:
        return
    if step.wait.until_event is not None:
        yield from _condition_problems(document, (*path, "wait", "until_event"), step.wait.until_event)
    if step.wait.until is not None:
        try:
            times_of_day(step.wait.until, step.wait.tz, None)
        except InvalidInput as error:
            yield document.problem(document.body.at((*path, "wait", "tz")), f"{document.title}: {error}")
            return
        try:
            times_of_day(step.wait.until, step.wait.tz, step.wait.days)
        except InvalidInput as error:
            yield document.problem(document.body.at((*path, "wait", "days")), f"{document.title}: {error}")


def _digest_problems(document: SourceDocument, action: ActionDocument) -> Iterable[RuleProblem]:
    steps: list[tuple[Path, Responses]] = [((), action), *walk(action.steps or ())]
    for path, step in steps:
        if step.digest is not None and step.digest.where is not None:
            try:
                compile_matcher(step.digest.where)
            except ExpressionInvalid as invalid:
                yield from document.problems_inside((*path, "digest", "where"), invalid.errors)


def _channel_problems(
    document: SourceDocument, action: ActionDocument, known: Collection[str]
) -> Iterable[RuleProblem]:
    steps: list[tuple[Path, Responses]] = [
        ((), action),
        *walk(action.steps or ()),
        *walk(action.finally_ or (), ("finally",)),
    ]
    for path, step in steps:
        references: list[tuple[Path, str]] = []
        if step.channel is not None:
            references.append(((*path, "channel", "name"), step.channel.name))
        if step.digest is not None and step.digest.channel is not None:
            references.append(((*path, "digest", "channel"), step.digest.channel))
        for reference, name in references:
            if name not in known:
                message = unknown_name("channel", name, document.title, known)
                yield document.problem(document.body.at(reference), message)


def _condition_problems(
    document: SourceDocument, path: Path, text: str, answers: Sequence[str] | None = None
) -> Iterable[RuleProblem]:
    try:
        if answers is None:
            compile_wait_condition(text)
        else:
            compile_branch_condition(text, known_answers=answers)
    except ExpressionInvalid as invalid:
        yield from document.problems_inside(path, invalid.errors)

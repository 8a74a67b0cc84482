"""What can be wrong with the steps of an action, beyond the shape of each.

Guarantee: an action that passes can be run: it compiles to a program, no two steps share a name, its timezones
exist, and its conditions compile and name only answers of earlier steps. Each problem has its place in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rules.expressions import ExpressionInvalid, compile_branch_condition, compile_wait_condition
from rules.loading.places import place_in_file
from rules.loading.problems import Problem
from rules.loading.reading import Placed
from rules.loading.yaml_tree import Path
from rules.runbook import compile_runbook
from rules.runbook.waiting import daily
from schemas.action_document import ActionDocument
from schemas.runbook import StepDocument, walk
from tocsin.core.errors import InvalidInput


def runbook_problems(one: Placed, action: ActionDocument) -> Iterator[Problem]:
    try:
        compile_runbook(action)
    except InvalidInput as error:
        yield one.problem(one.document.body.key_at(("steps",)), f"{one.title}: {error}")
    names: list[str] = []
    for path, step in walk(action.steps or ()):
        yield from _step_problems(one, path, step, names)
        if step.name is not None and step.name in names:
            yield one.problem(
                one.document.body.at((*path, "name")), f"two steps of {one.title} are named '{step.name}'"
            )
        names += [step.name] if step.name is not None else []


def _step_problems(one: Placed, path: Path, step: StepDocument, before: Sequence[str]) -> Iterable[Problem]:
    if step.branch is not None:
        yield from _condition_problems(one, (*path, "branch", "when"), step.branch.when, before)
    if step.wait is None:
        return
    if step.wait.until_event is not None:
        yield from _condition_problems(one, (*path, "wait", "until_event"), step.wait.until_event)
    if step.wait.until is not None:
        try:
            daily(step.wait.until, step.wait.tz)
        except InvalidInput as error:
            yield one.problem(one.document.body.at((*path, "wait", "tz")), f"{one.title}: {error}")


def _condition_problems(
    one: Placed, path: Path, text: str, answers: Sequence[str] | None = None
) -> Iterable[Problem]:
    try:
        if answers is None:
            compile_wait_condition(text)
        else:
            compile_branch_condition(text, known_answers=answers)
    except ExpressionInvalid as invalid:
        node = one.document.body.at(path)
        where = ".".join(str(part) for part in path)
        for error in invalid.errors:
            line, column = place_in_file(one.lines, node, error.line, error.column)
            yield Problem(one.file, line, column, f"'{where}' of {one.title}: {error.message}")

"""What can be wrong with the steps of an action, beyond the shape of each.

Guarantee: an action that passes can be run: it compiles to a program, no two steps share a name, its timezones and
channels exist, and its conditions compile and name only answers of earlier steps. Each problem has its place.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence

from rules.documents.load.locations import place_in_file
from rules.documents.load.problems import Problem
from rules.documents.load.source import Placed
from rules.documents.load.yaml_tree import Path
from rules.language.cel import ExpressionInvalid, compile_branch_condition, compile_wait_condition
from rules.runbook import compile_runbook
from rules.runbook.wait import daily
from schemas.documents.action import ActionDocument
from schemas.documents.runbook import Responses, StepDocument, walk
from tocsin.core.errors import InvalidInput


def runbook_problems(
    one: Placed, action: ActionDocument, channels: Collection[str] | None
) -> Iterator[Problem]:
    """`channels` is None when they are not known; then their names are not checked."""
    if channels is not None:
        yield from _channel_problems(one, action, channels)
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


def _channel_problems(one: Placed, action: ActionDocument, known: Collection[str]) -> Iterable[Problem]:
    steps: list[tuple[Path, Responses]] = [((), action), *walk(action.steps or ())]
    for path, step in steps:
        named: list[tuple[Path, str]] = []
        if step.channel is not None:
            named.append(((*path, "channel", "name"), step.channel.name))
        if step.digest is not None and step.digest.channel is not None:
            named.append(((*path, "digest", "channel"), step.digest.channel))
        for place, name in named:
            if name not in known:
                near = difflib.get_close_matches(name, sorted(known), n=1)
                hint = f"did you mean '{near[0]}'?" if near else "no channel of this name is defined"
                yield one.problem(
                    one.document.body.at(place), f"unknown channel '{name}' in {one.title}, {hint}"
                )


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

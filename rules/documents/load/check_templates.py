"""Checks the templates of a document.

Guarantee: every text that the schema marks as a template is checked, at any depth of the document,
and a problem has the line and column of the exact character in the file.
"""

from collections.abc import Collection, Iterator
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel

from rules.documents.load.problems import RuleProblem
from rules.documents.load.source import SourceDocument
from rules.documents.load.yaml_tree import Path
from rules.language.templates import check_template, fixed_part
from schemas.documents.action import ActionDocument
from schemas.documents.runbook import walk
from schemas.documents.runbook.subject import check_subject
from schemas.fields import ALARM_FIELDS
from schemas.values.template_text import TemplateMark
from tocsin.core.errors import InvalidInput


def template_problems(document: SourceDocument) -> Iterator[RuleProblem]:
    for path, mark, source in _templates(document.model):
        scalars = [name for name in mark.names if name not in mark.with_parts]
        members = _members(document.model, path) if "alarm" in mark.names else {}
        problems = check_template(source, mark.names, scalars=scalars, members=members, part=mark.part)
        yield from document.problems_inside(path, problems)
        if mark.part == "subject" and not problems:
            yield from _subject_problems(document, path, source)


def _members(model: BaseModel, path: Path) -> dict[str, Collection[str]]:
    """The parts of `alarm` and `answers` in a template of an action. Later steps have no answers yet."""
    members: dict[str, Collection[str]] = {"alarm": ALARM_FIELDS}
    if not isinstance(model, ActionDocument):
        return members
    steps = list(walk(model.steps or ()))
    inside = [index for index, (place, _) in enumerate(steps) if path[: len(place)] == place]
    # Outside of `steps`, such as in `finally`, all of them have ended.
    before = steps[: max(inside)] if inside else steps
    return {**members, "answers": [step.name for _, step in before if step.name is not None]}


def _subject_problems(document: SourceDocument, path: Path, source: str) -> Iterator[RuleProblem]:
    fixed = fixed_part(source)
    try:
        if fixed is None:
            raise InvalidInput("a subject cannot have tags, only '{{ ... }}'")
        # A letter stands for each value: a value is encoded to one token.
        check_subject(fixed)
    except InvalidInput as error:
        where = f"'{'.'.join(str(step) for step in path)}' of {document.title}"
        yield document.problem(document.body.at(path), f"{where}: {error}")


def _templates(model: BaseModel, path: Path = ()) -> Iterator[tuple[Path, TemplateMark, str]]:
    for name, key, mark in _fields_of(type(model)):
        for inner, value in _leaves(getattr(model, name), (*path, key)):
            if isinstance(value, BaseModel):
                yield from _templates(value, inner)
            elif mark is not None and isinstance(value, str):
                yield inner, mark, value


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _leaves(member, (*path, key))
    elif isinstance(value, list | tuple):
        for index, member in enumerate(value):
            yield from _leaves(member, (*path, index))
    else:
        yield path, value


@cache
def _fields_of(model: type[BaseModel]) -> list[tuple[str, str, TemplateMark | None]]:
    """The fields that are or contain templates: (name, key in the file, mark)."""
    fields = []
    for name, field in model.model_fields.items():
        # Also inside `TextTemplate | None`, where pydantic leaves the mark in the annotation.
        parts = list(_parts([field.annotation, *field.metadata]))
        mark = next((part for part in parts if isinstance(part, TemplateMark)), None)
        if mark is not None or any(isinstance(part, type) and issubclass(part, BaseModel) for part in parts):
            fields.append((name, field.alias or name, mark))
    return fields


def _parts(pending: list[Any]) -> Iterator[Any]:
    while pending:
        part = pending.pop()
        yield part
        pending += [*get_args(part), *getattr(part, "__metadata__", ())]

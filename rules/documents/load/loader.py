"""Loads rule files together: all of them are valid, or none is used.

Guarantee: `load_files` returns documents that can be applied, or raises `RulesInvalid` with every
problem of every file.

A file may refer to an action or a schedule that was applied earlier: `known` has these names by
kind. Without it, everything that is referred to must be among the files. `applied` has the documents
that are in force: datapoint_types that define the values of series, event_rules that a new type must
not break, action_rules that react to alarms, calendars. A schedule in force that is not in the files
is among the documents if a calendar of the files changes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rules.documents.load.calendars import changed_users, user_problems
from rules.documents.load.check_references import check_all
from rules.documents.load.files import SourceFile, read_files
from rules.documents.load.problems import RuleProblem, RulesInvalid
from rules.documents.load.source import ReadDocuments, SourceDocument, read_source
from schemas.documents import DOCUMENT_KINDS
from tocsin.core.near_name import limited_hints

_KINDS = {model: kind for kind, model in DOCUMENT_KINDS.items()}
# A stranger may submit a text: its size, and what is computed from it, are bounded.
_MAX_LENGTH = 20_000_000
_MAX_DOCUMENTS = 50_000
_MAX_PROBLEMS = 1_000


@dataclass(frozen=True, slots=True)
class Document:
    """One document. `data` is canonical plain JSON: documents with equal data are equal."""

    kind: str
    name: str
    model: BaseModel
    file: str
    line: int
    column: int
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LoadedDocuments:
    documents: tuple[Document, ...]
    warnings: tuple[RuleProblem, ...] = ()
    """What was probably not meant. Documents with warnings can be applied."""

    def of_kind(self, kind: str) -> tuple[Document, ...]:
        return tuple(document for document in self.documents if document.kind == kind)


def load_files(
    paths: Sequence[Path],
    *,
    known: Mapping[str, frozenset[str]] | None = None,
    applied: Sequence[BaseModel] = (),
    anchor: datetime | None = None,
) -> LoadedDocuments:
    """`anchor` is the instant at which new schedules would be created.

    It decides only whether a recurrence that counts from its creation ever fires.
    """
    sources, problems = read_files(paths)
    return _load(sources, problems, known or {}, applied, anchor)


def load_text(
    text: str,
    *,
    file: str = "<text>",
    known: Mapping[str, frozenset[str]] | None = None,
    applied: Sequence[BaseModel] = (),
    anchor: datetime | None = None,
) -> LoadedDocuments:
    """Load a text that is not in a file, such as the body of a request."""
    return _load([SourceFile(file, text)], [], known or {}, applied, anchor)


def _load(
    sources: Sequence[SourceFile],
    problems: list[RuleProblem],
    known: Mapping[str, frozenset[str]],
    applied: Sequence[BaseModel],
    anchor: datetime | None,
) -> LoadedDocuments:
    _refuse_too_much(sources)
    read = ReadDocuments()
    with limited_hints():
        for source in sources:
            read_source(source, read)
            if len(read.documents) > _MAX_DOCUMENTS:
                message = f"there are more than {_MAX_DOCUMENTS:,} documents: load them in several parts"
                raise RulesInvalid([RuleProblem(source.name, 1, 1, message)])
        problems += read.problems
        # Valid documents are checked even if others are invalid: one run shows all problems.
        checked = check_all(read, known, applied, anchor)
    problems += checked.problems
    users = [] if problems else changed_users(read, applied)
    problems += user_problems(users, anchor)
    order = {source.name: index for index, source in enumerate(sources)}

    def position(problem: RuleProblem) -> tuple[object, ...]:
        return order.get(problem.file, -1), problem[1:]

    if problems:
        raise RulesInvalid(_first_of(sorted(problems, key=position)))
    warnings = tuple(sorted(checked.warnings, key=position))
    changed = (_document(calendar, model) for calendar, model in users)
    return LoadedDocuments(
        (*(_document(document, document.model) for document in read.documents), *changed), warnings
    )


def _refuse_too_much(sources: Sequence[SourceFile]) -> None:
    length = 0
    for source in sources:
        length += len(source.text)
        if length > _MAX_LENGTH:
            message = f"the files have more than {_MAX_LENGTH:,} characters: load them in several parts"
            raise RulesInvalid([RuleProblem(source.name, 1, 1, message)])


def _first_of(problems: list[RuleProblem]) -> list[RuleProblem]:
    if len(problems) <= _MAX_PROBLEMS:
        return problems
    last = problems[_MAX_PROBLEMS - 1]
    more = f"and {len(problems) - _MAX_PROBLEMS + 1:,} more problems, solve these first"
    return [*problems[: _MAX_PROBLEMS - 1], last._replace(message=more)]


def _document(source: SourceDocument, model: BaseModel) -> Document:
    """The document of a model: that of the source, or one that changes with it."""
    key = source.validated.key
    return Document(
        kind=_KINDS[type(model)],
        name=str(getattr(model, "name", "")),
        model=model,
        file=source.file,
        line=key.line + 1,
        column=key.column + 1,
        data=model.model_dump(mode="json", by_alias=True),
    )

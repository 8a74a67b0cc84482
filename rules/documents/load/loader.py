"""Rules files, loaded together: all of them are right, or none is used.

Guarantee: `load_files` returns documents that can be applied as they are, or raises `RulesInvalid` with
every problem of every file. Nothing of a wrong set is returned.

Why `known` exists: a file may name an action or a schedule that an earlier file put in the database. Pass the
names by kind; without them, everything that is named must be among the files. `applied` likewise: the
datapoint_types that say what the values of a rule's series are, and the event_rules that a new type must leave whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from rules.documents.load.check_references import check_all
from rules.documents.load.files import SourceFile, read_files
from rules.documents.load.problems import Problem, RulesInvalid
from rules.documents.load.source import Placed, Read, read_source


@dataclass(frozen=True, slots=True)
class Document:
    """One document. `data` is canonical plain JSON: equal data means that nothing changed."""

    kind: str
    name: str
    model: BaseModel
    file: str
    line: int
    column: int
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Loaded:
    documents: tuple[Document, ...]

    def of_kind(self, kind: str) -> tuple[Document, ...]:
        return tuple(document for document in self.documents if document.kind == kind)


def load_files(
    paths: Sequence[Path],
    *,
    known: Mapping[str, frozenset[str]] | None = None,
    applied: Sequence[BaseModel] = (),
    anchor: datetime | None = None,
) -> Loaded:
    """`anchor` is the instant at which new schedules would be created; it decides no more than whether a
    recurrence that counts from its creation ever fires."""
    sources, problems = read_files(paths)
    return _load(sources, problems, known or {}, applied, anchor)


def load_text(
    text: str,
    *,
    file: str = "<text>",
    known: Mapping[str, frozenset[str]] | None = None,
    applied: Sequence[BaseModel] = (),
    anchor: datetime | None = None,
) -> Loaded:
    """The same for a text that is not in a file, such as the body of a request."""
    return _load([SourceFile(file, text)], [], known or {}, applied, anchor)


def _load(
    sources: Sequence[SourceFile],
    problems: list[Problem],
    known: Mapping[str, frozenset[str]],
    applied: Sequence[BaseModel],
    anchor: datetime | None,
) -> Loaded:
    read = Read()
    for source in sources:
        read_source(source, read)
    problems += read.problems
    # Valid documents are checked even when others are broken: one run shows everything.
    problems += check_all(read, known, applied, anchor)
    if problems:
        order = {source.name: place for place, source in enumerate(sources)}
        raise RulesInvalid(sorted(problems, key=lambda one: (order.get(one.file, -1), one[1:])))
    return Loaded(tuple(_document(one) for one in read.placed))


def _document(one: Placed) -> Document:
    place = one.document.key
    model = one.document.model
    return Document(
        kind=one.document.kind,
        name=one.name,
        model=model,
        file=one.file,
        line=place.line + 1,
        column=place.column + 1,
        data=model.model_dump(mode="json", by_alias=True),
    )

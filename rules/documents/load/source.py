"""Reads the documents of a set of files, as far as each can be read.

Guarantee: an invalid document affects only itself. The others are validated, and its name still
counts as declared, so that one mistake is not reported again by every document that refers to it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import BaseModel

from rules.documents.load.defaults import DEFAULTS, FileDefaults
from rules.documents.load.files import SourceFile
from rules.documents.load.locations import position_in_file
from rules.documents.load.problems import RuleProblem
from rules.documents.load.validation import TESTS, ValidatedDocument, title, validate
from rules.documents.load.yaml_tree import Path, YamlInvalid, YamlNode, read_documents, split_lines
from schemas.documents import DOCUMENT_KINDS


class SourceDocument(NamedTuple):
    """A valid document and the file it came from."""

    file: str
    lines: list[str]
    validated: ValidatedDocument

    @property
    def kind(self) -> str:
        return self.validated.kind

    @property
    def model(self) -> BaseModel:
        return self.validated.model

    @property
    def body(self) -> YamlNode:
        return self.validated.body

    @property
    def name(self) -> str:
        return str(getattr(self.model, "name", ""))

    @property
    def title(self) -> str:
        return title(self.kind, self.name)

    def problem(self, node: YamlNode, message: str) -> RuleProblem:
        return RuleProblem(self.file, node.line + 1, node.column + 1, message)

    def problems_inside(self, path: Path, errors: Iterable[tuple[int, int, str]]) -> Iterator[RuleProblem]:
        """The problems of a text, from (line, column, message) relative to the text."""
        node = self.body.at(path)
        where = f"'{'.'.join(str(step) for step in path)}' of {self.title}"
        for line, column, message in errors:
            position = position_in_file(self.lines, node, line, column)
            yield RuleProblem(self.file, *position, f"{where}: {message}")


class InvalidDocument(NamedTuple):
    """A document with problems, or a file whose documents cannot be read: then it has no name."""

    file: str
    line: int
    name: str | None
    problems: tuple[RuleProblem, ...]


@dataclass(slots=True)
class ReadDocuments:
    """The documents that were read so far; `declared` also has (kind, name) of invalid ones."""

    documents: list[SourceDocument] = field(default_factory=list)
    invalid: list[InvalidDocument] = field(default_factory=list)
    declared: set[tuple[str, str]] = field(default_factory=set)
    is_cut_short: bool = False

    @property
    def problems(self) -> list[RuleProblem]:
        return [problem for document in self.invalid for problem in document.problems]

    def reject_file(self, problem: RuleProblem) -> None:
        self.invalid.append(InvalidDocument(problem.file, problem.line, None, (problem,)))

    def reject_document(self, node: YamlNode, problems: Sequence[RuleProblem], file: str) -> None:
        """Keep the problems of a document, if it has any."""
        if problems:
            name = next((name for _, name in _declared_names(node)), None)
            self.invalid.append(InvalidDocument(file, node.line + 1, name, tuple(problems)))


def read_source(
    source: SourceFile, read: ReadDocuments, kinds: Mapping[str, type[BaseModel]] = DOCUMENT_KINDS
) -> None:
    """Files of a folder may also hold documents of other files' kinds: they are left out."""
    lines = split_lines(source.text)
    others = {*DOCUMENT_KINDS, *TESTS, DEFAULTS} - kinds.keys() if source.is_from_folder else set()
    defaults = FileDefaults(source.name)
    is_empty = True
    try:
        for node in read_documents(source.text):
            if node.value is None:
                continue
            is_empty = False
            if kinds is DOCUMENT_KINDS and list(node.keys) == [DEFAULTS]:
                read.reject_document(node, defaults.read(node), source.name)
                continue
            if node.keys and node.keys.keys() <= others:
                continue
            defaults.fill(node)
            _read_document(source.name, lines, node, read, kinds)
    except YamlInvalid as error:
        read.reject_file(RuleProblem(source.name, error.line, error.column, error.message))
        read.is_cut_short = True
        return
    if is_empty:
        message = (
            f"the file contains no document, write {'a test' if 'test' in kinds else 'a schedule or a rule'}"
        )
        read.reject_file(RuleProblem(source.name, 1, 1, message))


def _read_document(
    file: str, lines: list[str], node: YamlNode, read: ReadDocuments, kinds: Mapping[str, type[BaseModel]]
) -> None:
    validated, problems = validate(file, node, kinds)
    if validated is not None:
        read.documents.append(SourceDocument(file, lines, validated))
    read.declared.update(_declared_names(node))
    read.reject_document(node, problems, file)


def _declared_names(node: YamlNode) -> Iterator[tuple[str, str]]:
    for kind, body in node.members.items():
        name = body.value.get("name") if isinstance(body.value, dict) else None
        if isinstance(kind, str) and isinstance(name, str):
            yield kind, name

"""The documents of a set of files, as far as each can be read.

Guarantee: a document that is wrong costs only itself: the others are validated, and its name still
counts as declared, so that one mistake is not reported again at every place that refers to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import BaseModel

from rules.documents.load.files import SourceFile
from rules.documents.load.problems import Problem
from rules.documents.load.validation import Validated, title, validate
from rules.documents.load.yaml_tree import YamlInvalid, YamlNode, read_documents, split_lines
from schemas.documents import KINDS


class Placed(NamedTuple):
    """A valid document, with the file it came from."""

    file: str
    lines: list[str]
    document: Validated

    @property
    def name(self) -> str:
        return str(getattr(self.document.model, "name", ""))

    @property
    def title(self) -> str:
        return title(self.document.kind, self.name)

    def problem(self, node: YamlNode, message: str) -> Problem:
        return Problem(self.file, node.line + 1, node.column + 1, message)


@dataclass(slots=True)
class Read:
    """What was read so far; `declared` has (kind, name) of broken documents as well."""

    placed: list[Placed] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    declared: set[tuple[str, str]] = field(default_factory=set)
    is_cut_short: bool = False


def read_source(source: SourceFile, read: Read, kinds: Mapping[str, type[BaseModel]] = KINDS) -> None:
    lines = split_lines(source.text)
    is_empty = True
    try:
        for node in read_documents(source.text):
            if node.value is None:
                continue
            is_empty = False
            _read_document(source.name, lines, node, read, kinds)
    except YamlInvalid as error:
        read.problems.append(Problem(source.name, error.line, error.column, error.message))
        read.is_cut_short = True
        return
    if is_empty:
        message = (
            f"the file holds no document, write {'a test' if 'test' in kinds else 'a schedule or a rule'}"
        )
        read.problems.append(Problem(source.name, 1, 1, message))


def _read_document(
    file: str, lines: list[str], node: YamlNode, read: Read, kinds: Mapping[str, type[BaseModel]]
) -> None:
    validated, problems = validate(file, node, kinds)
    read.problems += problems
    if validated is not None:
        read.placed.append(Placed(file, lines, validated))
    for kind, body in node.members.items():
        name = body.value.get("name") if isinstance(body.value, dict) else None
        if isinstance(kind, str) and isinstance(name, str):
            read.declared.add((kind, name))

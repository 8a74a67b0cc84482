"""The problems of a set of rule files, each with its position.

Guarantee: the text of `RulesInvalid` is one `file:line:column: message` per line, in the order of
the files and of the lines, so that an editor can jump to each.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from tocsin.core.errors import TocsinError
from tocsin.core.near_name import near_name


class RuleProblem(NamedTuple):
    """`line` and `column` count from 1, columns in characters."""

    file: str
    line: int
    column: int
    message: str

    def as_warning(self) -> "RuleProblem":
        return self._replace(message=f"warning: {self.message}")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


class RulesInvalid(TocsinError):
    """At least one document is wrong, so none is loaded."""

    def __init__(self, problems: Sequence[RuleProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def unknown_name(kind: str, name: str, title: str, known: Collection[str]) -> str:
    """The message about a name that a document refers to and that no document of the kind has."""
    return f"unknown {kind} '{name}' in {title}, {hint_about(kind, name, known)}"


def hint_about(kind: str, name: str, known: Collection[str]) -> str:
    """The hint about an unknown name."""
    near = near_name(name, sorted(known))
    return f"did you mean '{near}'?" if near else f"no {kind} of this name is defined"

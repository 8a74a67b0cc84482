"""What is wrong with a set of rules files: all of it, each with its place.

Guarantee: the text of `RulesInvalid` is one `file:line:column: message` per line, in the order of the
files and of the lines, so that an editor can jump to each.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tocsin.core.errors import TocsinError


class Problem(NamedTuple):
    """`line` and `column` count from 1, columns in characters."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


class RulesInvalid(TocsinError):
    """No rule is loaded as long as one of them is wrong."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

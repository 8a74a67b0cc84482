"""Errors of a condition, each with its position in the text.

The text of `ExpressionInvalid` has the line and column inside the condition. The loader uses
`errors` instead, and adds the position of the condition in the file.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tocsin.core.errors import InvalidInput


class ExpressionError(NamedTuple):
    """`line` and `column` count characters from 1, inside the text of the condition."""

    line: int
    column: int
    message: str


class ExpressionInvalid(InvalidInput):
    """The condition cannot be used; `errors` has the positions and the reasons."""

    def __init__(self, text: str, errors: Sequence[ExpressionError]) -> None:
        self.errors = tuple(errors)
        one_line = "\n" not in text
        super().__init__(
            "\n".join(
                f"{'' if one_line else f'line {error.line}, '}column {error.column}: {error.message}"
                for error in self.errors
            )
        )


def error_at(text: str, offset: int, message: str) -> ExpressionError:
    before = text[:offset]
    return ExpressionError(before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1, message)


def offset_of(text: str, line: int, column: int) -> int:
    lines = text.split("\n")
    return sum(len(earlier) + 1 for earlier in lines[: line - 1]) + column - 1

"""Why a condition was refused: each error with its place in the text.

`ExpressionInvalid` lists all of them. Its own text gives line and column inside the condition; the rules
loader uses the list instead, and places each error in the file.
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
    """The condition cannot be used; `errors` says where and why."""

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

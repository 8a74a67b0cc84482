"""A lexer that adds columns to Jinja's line numbers.

Guarantee: every token, and so every node and syntax error, has its line and column in the template.

Why a subclass of int: Jinja passes the line number of a token on to nodes and errors unchanged. A
number that also has a column reaches all of them without a second parser.
"""

from collections.abc import Iterator

from jinja2 import TemplateSyntaxError
from jinja2.lexer import Lexer


class TokenPosition(int):
    """A line number with a column. Both count from 1."""

    column: int

    def __new__(cls, line: int, column: int) -> "TokenPosition":
        position = super().__new__(cls, line)
        position.column = column
        return position


class PositionLexer(Lexer):
    def tokeniter(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> Iterator[tuple[int, str, str]]:
        offset = 0
        try:
            for _, kind, text in super().tokeniter(source, name, filename, state):
                # Jinja drops whitespace that a tag strips, so the text may begin after `offset`.
                offset = max(source.find(text, offset), offset)
                yield position_at(source, offset), kind, text
                offset += len(text)
        except TemplateSyntaxError as error:
            if not isinstance(error.lineno, TokenPosition):
                error.lineno = position_at(source, offset)
            raise


def position_at(source: str, offset: int) -> TokenPosition:
    before = source[:offset]
    return TokenPosition(before.count("\n") + 1, len(before) - before.rfind("\n"))

"""Columns for Jinja, which counts lines only.

Guarantee: every token, and so every node and syntax error, knows its line and column in the template.

Why this way: Jinja hands a token's line number on to nodes and errors untouched. A number that also
carries its column arrives everywhere without a second parser.
"""

from collections.abc import Iterator

from jinja2 import TemplateSyntaxError
from jinja2.lexer import Lexer


class Place(int):
    """A line, from 1, that knows the column, from 1."""

    column: int

    def __new__(cls, line: int, column: int) -> "Place":
        place = super().__new__(cls, line)
        place.column = column
        return place


class PlacedLexer(Lexer):
    def tokeniter(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> Iterator[tuple[int, str, str]]:
        offset = 0
        try:
            for _, kind, text in super().tokeniter(source, name, filename, state):
                # Whitespace that a tag strips is not among the tokens: the text is found again behind it.
                offset = max(source.find(text, offset), offset)
                yield place_at(source, offset), kind, text
                offset += len(text)
        except TemplateSyntaxError as error:
            if not isinstance(error.lineno, Place):
                error.lineno = place_at(source, offset)
            raise


def place_at(source: str, offset: int) -> Place:
    before = source[:offset]
    return Place(before.count("\n") + 1, len(before) - before.rfind("\n"))

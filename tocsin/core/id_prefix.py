"""Rows looked up by an id, or by its first characters, as an operator writes it.

Guarantee: four hexadecimal digits suffice, as long as they name one row. Upper case and hyphens do
not matter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeVar
from uuid import UUID

from tocsin.core.errors import InvalidInput, NotFound

_DIGITS = re.compile(r"[0-9a-f]{4,32}")
Row = TypeVar("Row")


class IdPrefix(NamedTuple):
    text: str
    """As the operator wrote it."""
    noun: str
    """What the id is of, such as `alarm`."""
    command: str
    """The command that lists all of them."""

    def bounds(self) -> dict[str, UUID]:
        """`first` and `last` of the ids with this prefix, as parameters of a statement.
        `InvalidInput` if the text cannot be the beginning of an id."""
        digits = self.text.lower().replace("-", "")
        if not _DIGITS.fullmatch(digits):
            raise InvalidInput(
                f"{self.text!r} is not the id of {_with_article(self.noun)}",
                remedy=f"give four characters of it or more, as `{self.command}` shows",
            )
        return {"first": UUID(digits.ljust(32, "0")), "last": UUID(digits.ljust(32, "f"))}

    def only(self, rows: Sequence[Row]) -> Row:
        """The row with this prefix. `NotFound` if there is none, `InvalidInput` if there are
        several."""
        if not rows:
            raise NotFound(f"there is no {self.noun} {self.text!r}", remedy=f"`{self.command}` lists them")
        if len(rows) > 1:
            raise InvalidInput(
                f"{self.text!r} begins the ids of several {self.noun}s", remedy="give more of it"
            )
        return rows[0]


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"

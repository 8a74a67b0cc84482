"""Reads the literals of a condition, for checks across documents.

Guarantee: the literals are those of the tree that the engine evaluates, with their positions. The
condition must compile.
"""

from __future__ import annotations

from typing import NamedTuple

from cel_expr_python import cel

from rules.language.cel.analysis import literals_of
from rules.language.cel.checked_ast import CONST, decode, walk
from rules.language.cel.errors import error_at


class ComparedLiteral(NamedTuple):
    """A text that a field of the event is compared with; the position counts from 1."""

    field: str
    text: str
    line: int
    column: int


def compared_literals(env: cel.Env, text: str, *fields: str) -> list[ComparedLiteral]:
    tree = decode(env.compile(text).serialize())
    found = []
    for field in fields:
        for literal in literals_of(tree, field):
            line, column, _ = error_at(text, literal.offset, "")
            found.append(ComparedLiteral(field, literal.text, line, column))
    return found


def numbers_of(env: cel.Env, text: str) -> set[float]:
    """Every number that is written in a condition."""
    tree = decode(env.compile(text).serialize())
    return {
        float(node.value)
        for node in walk(tree.root)
        if node.kind == CONST and isinstance(node.value, int | float) and not isinstance(node.value, bool)
    }

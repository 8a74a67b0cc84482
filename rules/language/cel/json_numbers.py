"""Numbers of JSON in conditions: payloads, answers, and values of series without a datapoint_type.

Guarantee: conditions see every such number as a double, whether a producer sent 70 or 70.0. So a
calculation with one works for all numbers or for none, and `number_errors` finds the latter when
the rule is loaded. Comparisons need no rule of their own: the engine compares an untyped number
with whole numbers and with doubles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rules.language.cel.checked_ast import CALL, CONST, AstNode, Tree, walk
from rules.language.cel.errors import ExpressionError, error_at

_OPERATORS = {"_+_": "+", "_-_": "-", "_*_": "*", "_/_": "/", "_%_": "%"}


def as_doubles(value: Any) -> Any:
    """Plain JSON in which every number is a double."""
    kind = type(value)
    if kind is int:
        return float(value)
    if kind is dict:
        return {key: as_doubles(member) for key, member in value.items()}
    if kind is list:
        return [as_doubles(member) for member in value]
    return value


def number_errors(text: str, tree: Tree) -> Iterator[ExpressionError]:
    """Calculations of an untyped number with a whole one, which fail for every number of JSON."""
    for node in walk(tree.root):
        operator = _OPERATORS.get(node.name) if node.kind == CALL and len(node.children) == 2 else None
        if operator is None:
            continue
        untyped = [child for child in node.children if child.id in tree.dynamic]
        whole = [child for child in node.children if child.id in tree.integers]
        if operator == "%" and untyped:
            message = "'%' needs whole numbers, and an untyped number is a double, write int(...) around it"
        elif untyped and whole:
            hint = _double_hint(whole[0])
            message = (
                f"'{operator}' cannot be applied to an untyped number, which is a double, and int, {hint}"
            )
        else:
            continue
        yield error_at(text, tree.offsets.get(node.id, 0), message)


def _double_hint(node: AstNode) -> str:
    if node.kind == CONST:
        return f"write {node.value}.0"
    return "write double(...) around the int"

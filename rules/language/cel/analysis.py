"""Analyses the syntax tree of a condition, without evaluating it.

Guarantee: `required_literals` is sound: the condition can only be true if each variable that it
returns equals one of its literals. It reads the conjunction at the top of the condition, and nothing
inside `||`, `!=`, `?:` and macros. A literal is only attributed to a variable of the event or alarm,
never to the variable of a macro with the same name.

Why when the rule is loaded: a misspelt schedule in a condition is no error to the engine. The rule
would never match, without a message.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rules.language.cel.checked_ast import (
    CALL,
    COMPREHENSION,
    CONST,
    IDENT,
    LIST,
    SELECT,
    AstNode,
    Tree,
    walk,
)
from rules.language.cel.environment import plain_name
from schemas.fields import MATCHER_STRINGS, STRING_FIELDS

Index = tuple[tuple[str, str], ...]
_TEXTS = frozenset((*STRING_FIELDS, *MATCHER_STRINGS))

# The most selective first: nearly every rule names an origin, few events share one schedule.
_SELECTIVE = ("id", "correlation_id", "schedule", "rule", "action", "owner", "type", "origin")
_ZONE_FUNCTIONS = frozenset(
    f"get{part}"
    for part in ("FullYear", "Month", "Date", "DayOfMonth", "DayOfWeek", "DayOfYear", "Hours", "Minutes")
) | {"getSeconds", "getMilliseconds"}


class TextLiteral(NamedTuple):
    text: str
    offset: int


def index_of(required: Mapping[str, tuple[str, ...]]) -> Index | None:
    """The most selective of the required literals."""
    variable = next((variable for variable in _SELECTIVE if variable in required), None)
    return None if variable is None else tuple((variable, literal) for literal in required[variable])


def required_literals(tree: Tree) -> dict[str, tuple[str, ...]]:
    """The literals of which a variable must equal one, by the variable."""
    required: dict[str, tuple[str, ...]] = {}
    for clause in _conjunction(tree.root):
        equality = _equality(clause)
        if equality is not None:
            variable, nodes = equality
            literals = tuple(dict.fromkeys(str(node.value) for node in nodes))
            if variable not in required or len(literals) < len(required[variable]):
                required[variable] = literals
    return required


def literals_of(tree: Tree, variable: str) -> list[TextLiteral]:
    """Every literal that the condition compares the variable with."""
    literals = []
    for node in _outside_shadows(tree.root, variable):
        equality = _equality(node)
        if equality is not None and equality[0] == variable:
            literals += [
                TextLiteral(str(literal.value), tree.offsets.get(literal.id, 0)) for literal in equality[1]
            ]
    return literals


def names_of(tree: Tree) -> frozenset[str]:
    """Every name that the condition reads, possibly with variables of macros."""
    return frozenset(plain_name(node.name) for node in walk(tree.root) if node.kind == IDENT)


def members_of(tree: Tree, variable: str) -> frozenset[str] | None:
    """The members of a map that the condition reads, such as `site` of `labels.site`; None if it may read
    any."""
    members: set[str] = set()
    named: set[int] = set()
    for node in walk(tree.root):
        first = node.children[0] if node.children else None
        if first is None or first.kind != IDENT or plain_name(first.name) != variable:
            continue
        if node.kind == SELECT:
            members.add(node.name)
            named.add(first.id)
        elif node.kind == CALL and node.name == "_[_]" and _is_text(node.children[1]):
            members.add(str(node.children[1].value))
            named.add(first.id)
    reads = {node.id for node in walk(tree.root) if node.kind == IDENT and plain_name(node.name) == variable}
    return frozenset(members) if reads <= named else None


def literal_arguments(tree: Tree) -> Iterator[tuple[str, TextLiteral]]:
    """(expected kind, literal) for each text that the engine reads only during evaluation."""
    for node in walk(tree.root):
        if node.kind != CALL or not node.children:
            continue
        last = node.children[-1]
        if last.kind != CONST or not isinstance(last.value, str):
            continue
        literal = TextLiteral(last.value, tree.offsets.get(last.id, 0))
        if node.name == "matches":
            yield "regular expression", literal
        elif node.name in ("timestamp", "duration") and len(node.children) == 1:
            yield node.name, literal
        elif node.name in _ZONE_FUNCTIONS and len(node.children) == 2:
            yield "timezone", literal


def computed_zones(tree: Tree) -> Iterator[AstNode]:
    """Calls whose timezone is not a literal: the engine opens it as the name of a file, and keeps
    every unknown name in memory."""
    for node in walk(tree.root):
        if node.kind != CALL or node.name not in _ZONE_FUNCTIONS or len(node.children) != 2:
            continue
        zone = node.children[-1]
        if zone.kind != CONST or not isinstance(zone.value, str):
            yield node


def computed_patterns(tree: Tree) -> Iterator[AstNode]:
    """Calls whose regular expression is not a literal: its size is that of the data."""
    for node in walk(tree.root):
        if node.kind == CALL and node.name == "matches" and node.children[-1].kind != CONST:
            yield node


def macro_depth(node: AstNode) -> int:
    """Depth of nested loops. The list of a macro is computed outside its loop."""
    inside = max((macro_depth(child) for child in node.children), default=0)
    if node.kind != COMPREHENSION:
        return inside
    outside = macro_depth(node.iter_range) if node.iter_range is not None else 0
    return max(inside + 1, outside)


def untyped_sum(tree: Tree) -> AstNode | None:
    """A `+` whose operands are both untyped: at run time it could join texts and lists."""
    sums = (node for node in walk(tree.root) if node.kind == CALL and node.name == "_+_")
    return next((node for node in sums if node.id in tree.dynamic), None)


def _conjunction(node: AstNode) -> Iterator[AstNode]:
    if node.kind == CALL and node.name == "_&&_":
        for child in node.children:
            yield from _conjunction(child)
    else:
        yield node


def _equality(node: AstNode) -> tuple[str, list[AstNode]] | None:
    """The text field and the literals, for `field == "x"`, `"x" == field`, `field in ["x",
    "y"]`."""
    if node.kind != CALL or node.name not in ("_==_", "@in", "in", "_in_") or len(node.children) != 2:
        return None
    left, right = node.children
    if node.name != "_==_":
        literals = right.children if right.kind == LIST else None
    else:
        if left.kind == CONST:
            left, right = right, left
        literals = [right]
    variable = plain_name(left.name) if left.kind == IDENT else ""
    if variable not in _TEXTS or literals is None or not all(_is_text(node) for node in literals):
        return None
    return variable, literals


def _is_text(node: AstNode) -> bool:
    return node.kind == CONST and isinstance(node.value, str)


def _outside_shadows(node: AstNode, variable: str) -> Iterator[AstNode]:
    yield node
    if node.iter_range is not None:
        yield from _outside_shadows(node.iter_range, variable)
    if variable not in node.bound:
        for child in node.children:
            yield from _outside_shadows(child, variable)

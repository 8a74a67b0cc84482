"""What the syntax tree of a condition says about it, without evaluating it.

Guarantee: `index_of` is sound: when it names (variable, literals), the condition can only be true for an
event whose variable equals one of them. It looks at the conjunction at the top and nowhere else; `||`,
`!=`, `?:` and macros say nothing, so they give None. A literal is only attributed to a variable of the
event, never to the variable of a macro that has the same name.

Why at load: a misspelt schedule in a condition is no error to the engine; the rule would never match, and
nothing would say so.
"""

from collections.abc import Iterator
from typing import NamedTuple

from rules.language.cel.checked_ast import CALL, COMPREHENSION, CONST, IDENT, LIST, Node, Tree, walk
from rules.language.cel.environment import plain_name
from schemas.fields import STRING_FIELDS

Index = tuple[tuple[str, str], ...]

# The most selective first: nearly every rule says which origin, few events share one schedule.
_SELECTIVE = ("id", "correlation_id", "schedule", "rule", "action", "owner", "type", "origin")
_ZONE_FUNCTIONS = frozenset(
    f"get{part}"
    for part in ("FullYear", "Month", "Date", "DayOfMonth", "DayOfWeek", "DayOfYear", "Hours", "Minutes")
) | {"getSeconds", "getMilliseconds"}


class Literal(NamedTuple):
    text: str
    offset: int


def index_of(tree: Tree) -> Index | None:
    found: dict[str, Index] = {}
    for clause in _conjunction(tree.root):
        read = _equality(clause)
        if read is not None:
            variable, literals = read
            pairs = tuple(dict.fromkeys((variable, literal.value) for literal in literals))
            known = found.get(variable)
            if known is None or len(pairs) < len(known):
                found[variable] = tuple((name, str(text)) for name, text in pairs)
    return next((found[variable] for variable in _SELECTIVE if variable in found), None)


def literals_of(tree: Tree, variable: str) -> list[Literal]:
    """Every literal that the condition compares the variable with, wherever it stands."""
    found = []
    for node in _outside_shadows(tree.root, variable):
        read = _equality(node)
        if read is not None and read[0] == variable:
            found += [Literal(str(literal.value), tree.offsets.get(literal.id, 0)) for literal in read[1]]
    return found


def names_of(tree: Tree) -> frozenset[str]:
    """Every name the condition reads; that of a macro's variable may be among them."""
    return frozenset(plain_name(node.name) for node in walk(tree.root) if node.kind == IDENT)


def literal_arguments(tree: Tree) -> Iterator[tuple[str, Literal]]:
    """(what it must be, literal) for each text that the engine would only read during evaluation."""
    for node in walk(tree.root):
        if node.kind != CALL or not node.children:
            continue
        last = node.children[-1]
        if last.kind != CONST or not isinstance(last.value, str):
            continue
        literal = Literal(last.value, tree.offsets.get(last.id, 0))
        if node.name == "matches":
            yield "regular expression", literal
        elif node.name in ("timestamp", "duration") and len(node.children) == 1:
            yield node.name, literal
        elif node.name in _ZONE_FUNCTIONS and len(node.children) == 2:
            yield "timezone", literal


def macro_depth(node: Node) -> int:
    """How many loops run inside each other; the list that a macro walks is computed outside its loop."""
    inside = max((macro_depth(child) for child in node.children), default=0)
    if node.kind != COMPREHENSION:
        return inside
    outside = macro_depth(node.iter_range) if node.iter_range is not None else 0
    return max(inside + 1, outside)


def untyped_sum(tree: Tree) -> Node | None:
    """A `+` whose operands are both untyped: at run time it would still join texts and lists."""
    sums = (node for node in walk(tree.root) if node.kind == CALL and node.name == "_+_")
    return next((node for node in sums if node.id in tree.dynamic), None)


def _conjunction(node: Node) -> Iterator[Node]:
    if node.kind == CALL and node.name == "_&&_":
        for child in node.children:
            yield from _conjunction(child)
    else:
        yield node


def _equality(node: Node) -> tuple[str, list[Node]] | None:
    """The event's text field and the literals, for `field == "x"`, `"x" == field`, `field in ["x", "y"]`."""
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
    if variable not in STRING_FIELDS or literals is None or not all(_is_text(node) for node in literals):
        return None
    return variable, literals


def _is_text(node: Node) -> bool:
    return node.kind == CONST and isinstance(node.value, str)


def _outside_shadows(node: Node, variable: str) -> Iterator[Node]:
    yield node
    if node.iter_range is not None:
        yield from _outside_shadows(node.iter_range, variable)
    if variable not in node.bound:
        for child in node.children:
            yield from _outside_shadows(child, variable)

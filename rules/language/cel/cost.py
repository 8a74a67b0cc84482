"""The cost of a condition: an upper bound of its CPU time, from its syntax tree and the size of the
data.

Guarantee: the bound depends on the condition and on the data only, never on a clock, so the live
system, rule tests and backtests refuse the same evaluations. A condition whose bound exceeds
`MAX_COST_NS` is not evaluated.

Why a bound of our own: the engine counts iterations of macros, 10,000 at most, and not what one
iteration touches. `payload.list.exists(x, x in payload.others)` took 3 seconds within its limit, and a
regular expression is compiled again in every iteration.

How: each operation costs its nodes, and the data that its operands can have. Inside a macro it is
repeated for each member of the largest list. The members of one list are parts of the data that do
not overlap, so an operation that reads a member of the innermost list reads all of the data once,
and not once per iteration. The weights were measured with the pinned engine, and rounded up.
"""

from __future__ import annotations

from enum import IntEnum

from rules.language.cel.bound_facts import DataSize
from rules.language.cel.checked_ast import CALL, COMPREHENSION, CONST, IDENT, LIST, SELECT, STRUCT, AstNode
from rules.language.cel.regex_weight import regex_weight

MAX_COST_NS = 40e6
_MAX_ITERATIONS = 10_000
# Larger than the data that an evaluation can have.
LARGEST_TOTAL = 1_000_000

_NODE_NS = 50.0
_MEMBER_NS = 100.0
_EQUAL_NS_PER_ITEM = 32.0
_COMPARE_NS_PER_CHARACTER = 0.2
_READ_NS_PER_CHARACTER = 2.0
_SEARCH_NS_PER_CHARACTER = 6.0
_SEARCH_NS_PER_PAIR = 0.005
_ZONE_NS = 2_000.0
_COMPILE_NS = 2_000.0
_MATCH_NS = 5.0

_MEMBERSHIPS = frozenset(("@in", "in", "_in_"))
_COMPARISONS = frozenset(("_<_", "_<=_", "_>_", "_>=_", "startsWith", "endsWith", "_[_]"))
_PLAIN = frozenset(
    (
        *("_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false", "not_strictly_false", "-_"),
        *("_+_", "_-_", "_*_", "_/_", "_%_", "dyn", "type"),
    )
)


class _Repeated(IntEnum):
    """How often an operation is performed in one evaluation."""

    ONCE = 0
    EACH_MEMBER = 1
    """For each member of one list."""
    EACH_ITEM = 2
    """For each member of the lists that the members of a list have."""
    EACH_PAIR = 3
    """For each pair of members of two lists."""


class Cost:
    """The sum of the costs of all operations: nanoseconds per unit of each measure of the data."""

    def __init__(self) -> None:
        self.longest_literal = 1
        """Members of the largest list in the condition itself."""
        self._sums = [[0.0] * 5 for _ in _Repeated]

    def add(
        self,
        repeated: _Repeated,
        fixed: float = 0.0,
        per_item: float = 0.0,
        per_character: float = 0.0,
        per_text: float = 0.0,
        per_pair: float = 0.0,
    ) -> None:
        """`per_text` is per character of the longest text, `per_pair` the same, squared."""
        weights = (fixed, per_item, per_character, per_text, per_pair)
        self._sums[repeated] = [
            sum + weight for sum, weight in zip(self._sums[repeated], weights, strict=True)
        ]

    def of(self, size: DataSize) -> float:
        """An upper bound of the time of one evaluation, in nanoseconds."""
        longest = max(size.longest_list, self.longest_literal)
        counts = (1, longest, size.items, longest**2)
        measures = (1, size.items, size.characters, size.longest_text, size.longest_text**2)
        return sum(
            min(count, _MAX_ITERATIONS)
            * sum(weight * measure for weight, measure in zip(weights, measures, strict=True))
            for count, weights in zip(counts, self._sums, strict=True)
        )

    def small_until(self) -> int:
        """The largest `DataSize.total` whose cost is permitted however the data is arranged."""
        least, most = 0, LARGEST_TOTAL
        while least < most:
            middle = (least + most + 1) // 2
            if self.of(DataSize(middle, middle, middle, middle)) <= MAX_COST_NS:
                least = middle
            else:
                most = middle - 1
        return least


def cost_of(root: AstNode) -> Cost:
    cost = Cost()
    _CostWalk(cost).add(root, _Repeated.ONCE, frozenset())
    return cost


class _CostWalk:
    def __init__(self, cost: Cost) -> None:
        self._cost = cost

    def add(self, node: AstNode, repeated: _Repeated, members: frozenset[str]) -> None:
        """`members` are the variables of the macro around that stand for parts of the data, a
        different part in each iteration."""
        if node.kind == COMPREHENSION:
            self._add_macro(node, repeated, members)
            return
        is_literal = node.kind in (LIST, STRUCT)
        if is_literal:
            self._cost.longest_literal = max(self._cost.longest_literal, len(node.children))
        self._cost.add(repeated, fixed=_NODE_NS + (_MEMBER_NS * len(node.children) if is_literal else 0.0))
        if node.kind == CALL and node.name not in _PLAIN:
            self._add_call(node, repeated, members)
        for child in node.children:
            self.add(child, repeated, members)

    def _add_macro(self, node: AstNode, repeated: _Repeated, members: frozenset[str]) -> None:
        assert node.iter_range is not None
        self.add(node.iter_range, repeated, members)
        inside, variables = _Repeated.EACH_PAIR, frozenset[str]()
        if repeated is _Repeated.ONCE:
            inside = _Repeated.EACH_MEMBER
            variables = frozenset(node.bound[:1]) if _is_path(node.iter_range) else variables
        elif _is_member(node.iter_range, members):
            inside, variables = _Repeated.EACH_ITEM, frozenset(node.bound[:1])
        self._cost.add(inside, fixed=4 * _NODE_NS)
        for child in node.children:
            self.add(child, inside, variables)

    def _add_call(self, node: AstNode, repeated: _Repeated, members: frozenset[str]) -> None:
        operands = [operand for operand in node.children if _refers(operand)]
        breadth = float(sum(_refers(operand) for operand in operands))
        is_constant = len(operands) < len(node.children)
        # Members of the list of the macro around: all iterations together read the data once.
        are_members = [_is_member(operand, members) for operand in node.children]
        if not operands and node.name != "matches":
            self._add_literal_call(node, repeated)
        elif node.name in ("_==_", "_!=_"):
            self._add_equality(node, repeated, breadth, any(are_members), is_constant)
        elif node.name in _MEMBERSHIPS:
            self._add_equality(node, repeated, breadth, are_members[-1], not _refers(node.children[-1]))
        elif node.name in _COMPARISONS:
            if not is_constant:
                self._add_texts(repeated, _COMPARE_NS_PER_CHARACTER * breadth, any(are_members))
        elif node.name == "contains":
            self._add_search(node, repeated, are_members[0])
        elif node.name == "matches":
            weight = regex_weight(str(node.children[-1].value))
            self._cost.add(repeated, fixed=_COMPILE_NS * weight)
            self._add_texts(repeated, _MATCH_NS * weight * max(1.0, breadth), are_members[0])
        else:
            self._cost.add(repeated, fixed=_ZONE_NS if node.name.startswith("get") else 0.0)
            self._add_texts(repeated, _READ_NS_PER_CHARACTER * breadth, all(are_members))

    def _add_texts(self, repeated: _Repeated, per_character: float, is_member: bool) -> None:
        """The cost of reading a text: the longest one per iteration, or those of all members once."""
        if is_member:
            self._cost.add(_Repeated.ONCE, per_character=per_character)
        else:
            self._cost.add(repeated, per_text=per_character)

    def _add_equality(
        self, node: AstNode, repeated: _Repeated, breadth: float, is_member: bool, is_literal: bool
    ) -> None:
        """Comparing with a literal ends where the literal ends."""
        if is_literal:
            literal = next(child for child in reversed(node.children) if not _refers(child))
            self._cost.add(repeated, fixed=_MEMBER_NS * _nodes(literal))
            return
        self._cost.add(
            _Repeated.ONCE if is_member else repeated,
            per_item=_EQUAL_NS_PER_ITEM * breadth,
            per_character=_COMPARE_NS_PER_CHARACTER * breadth,
        )

    def _add_search(self, node: AstNode, repeated: _Repeated, is_member: bool) -> None:
        pattern = node.children[-1]
        pattern_length = len(str(pattern.value)) if pattern.kind == CONST else 0
        per_character = _SEARCH_NS_PER_CHARACTER + pattern_length * 4 * _SEARCH_NS_PER_PAIR
        self._add_texts(repeated, per_character, is_member)
        if pattern.kind != CONST:
            self._cost.add(repeated, per_pair=_SEARCH_NS_PER_PAIR)

    def _add_literal_call(self, node: AstNode, repeated: _Repeated) -> None:
        characters = sum(len(str(child.value)) for child in node.children if child.kind == CONST)
        fixed = _ZONE_NS if node.name.startswith("get") else _NODE_NS
        self._cost.add(
            repeated, fixed=fixed + _SEARCH_NS_PER_CHARACTER * characters + _MEMBER_NS * _nodes(node)
        )


def _refers(node: AstNode) -> int:
    """How often an operand names data: the factor of its size."""
    if node.kind == IDENT:
        return 1
    if node.kind == SELECT or (node.kind == CALL and node.name == "_[_]"):
        return _refers(node.children[0])
    inside = sum(_refers(child) for child in node.children)
    return inside + (_refers(node.iter_range) if node.iter_range is not None else 0)


def _is_path(node: AstNode) -> bool:
    """Whether a node names one part of the data, such as `payload.items`."""
    if node.kind == SELECT or (node.kind == CALL and node.name == "_[_]"):
        return _is_path(node.children[0])
    return node.kind == IDENT


def _is_member(node: AstNode, members: frozenset[str]) -> bool:
    if node.kind == SELECT or (node.kind == CALL and node.name == "_[_]"):
        return _is_member(node.children[0], members)
    return node.kind == IDENT and node.name in members


def _nodes(node: AstNode) -> int:
    return 1 + sum(_nodes(child) for child in node.children)

"""Translates an expression of PromQL into formulas over the inputs of calc_rules. Pure.

An expression is translated in one of two ways: `number` gives its value, `holds` tells whether it has
an element, which is what an alert tests. A comparison, `and`, `or` and `unless` have meaning in
`holds` only: in PromQL they filter, and a calc_rule has no filtered vectors.

A subexpression that is aggregated twice, or that is a subquery, becomes a calc_rule of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import isfinite
from typing import Any

from rules.importer.formula import Formula, Groups, Input, joined_groups, number
from rules.importer.promql_names import cel_where
from rules.importer.translation import Untranslatable
from schemas.values.duration import format_duration

_MAX_DEPTH = 50
_ARITHMETIC = {"+", "-", "*", "/"}
_COMPARISONS = {">", "<", ">=", "<=", "==", "!="}
_AGGREGATES = {"sum", "avg", "min", "max", "count", "stddev"}
# Functions of PromQL over a range, as `each` of an input.
_OVER_RANGE = {
    "rate": "rate",
    "irate": "rate",
    "increase": "increase",
    "delta": "delta",
    "changes": "changes",
    "avg_over_time": "avg",
    "min_over_time": "min",
    "max_over_time": "max",
    "sum_over_time": "sum",
    "count_over_time": "count",
    "stddev_over_time": "stddev",
    "last_over_time": "last",
}
# The largest aggregate of a group passes `>` if any series of it does; the smallest, `<`.
_ANY_SERIES = {">": "max", ">=": "max", "<": "min", "<=": "min"}


@dataclass(slots=True)
class PartRule:
    """A calc_rule that another one reads."""

    formula: Formula
    every: str


@dataclass(slots=True)
class PromqlExpression:
    """Translates one expression. `parts` are the calc_rules that the result reads, in order."""

    owner_label: str
    source_of: Callable[[str, Sequence[Any]], tuple[str, list[Any]]]
    """The key of a metric and the matchers that are left: another key for a recording rule."""
    part_key: Callable[[int], str]
    """The key of the series of the n-th part."""
    series_groups: tuple[str, ...]
    """The `by` of a vector without aggregation."""
    parts: list[PartRule] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def number(self, node: Any, depth: int = 0) -> Formula:
        """The value of the expression."""
        kind = _kind(node, depth)
        if kind == "ParenExpr":
            return self.number(node.expr, depth + 1)
        if kind == "NumberLiteral":
            if not isfinite(node.val):
                raise Untranslatable("it has an infinite number or NaN")
            return number(node.val)
        if kind == "UnaryExpr":
            operand = self.number(node.expr, depth + 1)
            return replace(operand, parts=("-", *operand.operand))
        if kind == "VectorSelector":
            return self._selector(node)
        if kind == "Call":
            return self._call(node, depth)
        if kind == "AggregateExpr":
            return self._aggregate(node, depth)
        if kind == "BinaryExpr":
            return self._binary(node, depth)
        raise Untranslatable(f"{_shown(node)} has no translation")

    def holds(self, node: Any, depth: int = 0) -> Formula:
        """Whether the expression has an element, as a condition."""
        kind = _kind(node, depth)
        if kind == "ParenExpr":
            return self.holds(node.expr, depth + 1)
        if kind == "BinaryExpr" and str(node.op) in _COMPARISONS:
            return self._comparison(node, depth)
        if kind == "BinaryExpr" and str(node.op) in ("and", "or", "unless"):
            return self._set_operation(node, depth)
        if kind == "Call" and node.func.name in ("absent", "absent_over_time"):
            absent = self.number(node, depth + 1)
            return replace(absent, parts=(*absent.operand, " > 0.0"))
        found = self.number(node, depth + 1)
        if found.only_input is None:
            raise Untranslatable(f"it tests whether {_shown(node)} has a value at all")
        counted = found.of_input(lambda given: replace(given, aggregate="count", default=0.0))
        return replace(counted, parts=(*counted.operand, " > 0.0"))

    def _selector(self, node: Any, over: timedelta | None = None, each: str = "last") -> Formula:
        if node.at is not None:
            raise Untranslatable("'@' fixes a time")
        if not node.name:
            raise Untranslatable("it selects metrics by a pattern of their names")
        if node.matchers.or_matchers:
            raise Untranslatable("it has alternative matchers")
        key, matchers = self.source_of(node.name, node.matchers.matchers)
        given = Input(
            key,
            cel_where(matchers, self.owner_label),
            each,
            over="" if over is None else format_duration(over),
            offset=_offset(node.offset),
        )
        return Formula((given,), None)

    def _call(self, node: Any, depth: int) -> Formula:
        name, arguments = node.func.name, list(node.args)
        if name in _OVER_RANGE:
            if name == "irate":
                self.note("'irate' is translated as 'rate'")
            return self._over_range(arguments[0], _OVER_RANGE[name], depth)
        if name == "quantile_over_time":
            return self._over_range(arguments[1], f"quantile({constant(arguments[0])!r})", depth)
        if name == "predict_linear":
            ahead = timedelta(seconds=constant(arguments[1]))
            return self._over_range(arguments[0], f"predict_linear({format_duration(ahead)})", depth)
        if name == "deriv":
            later = self._over_range(arguments[0], "predict_linear(2h)", depth)
            sooner = self._over_range(arguments[0], "predict_linear(1h)", depth)
            return Formula((*("(", *later.parts, " - ", *sooner.parts, ")"), " / 3600.0"), later.groups)
        if name in ("absent", "absent_over_time"):
            return self._absent(arguments[0])
        if name == "histogram_quantile":
            return self._histogram_quantile(arguments, depth)
        if name == "time":
            return Formula(("now",), is_scalar=True)
        if name == "vector":
            return replace(self.number(arguments[0], depth + 1), groups=())
        if name in ("abs", "clamp_max", "clamp_min"):
            return self._clamped(name, arguments, depth)
        raise Untranslatable(f"'{name}' has no translation")

    def _over_range(self, node: Any, each: str, depth: int) -> Formula:
        kind = _kind(node, depth)
        if kind == "ParenExpr":
            return self._over_range(node.expr, each, depth + 1)
        if kind == "MatrixSelector":
            return self._selector(node.vector_selector, node.range, each)
        if kind == "SubqueryExpr":
            every = node.step or timedelta(minutes=1)
            inner = self.number(node.expr, depth + 1)
            given = replace(
                self._part(inner, format_duration(every)),
                each=each,
                over=format_duration(node.range),
                offset=_offset(node.offset),
            )
            return Formula((given,), inner.groups)
        raise Untranslatable(f"{_shown(node)} is not a range of a series")

    def _part(self, formula: Formula, every: str) -> Input:
        """The input that reads a formula as a calc_rule of its own."""
        self.parts.append(PartRule(formula, every))
        return Input(self.part_key(len(self.parts)))

    def _absent(self, node: Any) -> Formula:
        while type(node).__name__ == "ParenExpr":
            node = node.expr
        if type(node).__name__ == "MatrixSelector":
            found = self._selector(node.vector_selector, node.range)
        elif type(node).__name__ == "VectorSelector":
            found = self._selector(node, timedelta(minutes=5))
        else:
            raise Untranslatable("'absent' of an expression")
        return replace(found.of_input(lambda given: replace(given, aggregate="absent")), groups=())

    def _histogram_quantile(self, arguments: Sequence[Any], depth: int) -> Formula:
        fraction = constant(arguments[0])
        buckets = self.number(arguments[1], depth + 1)
        given = buckets.only_input
        if given is None or given.aggregate not in ("sum", "max"):
            raise Untranslatable("'histogram_quantile' of more than a sum of buckets")
        groups = buckets.groups if buckets.groups is None else tuple(set(buckets.groups) - {"le"})
        quantile = buckets.of_input(
            lambda given: replace(given, aggregate=f"histogram_quantile({fraction!r})")
        )
        return replace(quantile, groups=groups if groups is None else tuple(sorted(groups)))

    def _clamped(self, name: str, arguments: Sequence[Any], depth: int) -> Formula:
        operand = self.number(arguments[0], depth + 1)
        value = operand.operand
        if name == "abs":
            return replace(operand, parts=(*value, " < 0.0 ? -", *value, " : ", *value))
        sign = " > " if name == "clamp_max" else " < "
        bound = self.number(arguments[1], depth + 1).operand
        return replace(operand, parts=(*value, sign, *bound, " ? ", *bound, " : ", *value))

    def _aggregate(self, node: Any, depth: int) -> Formula:
        name = str(node.op)
        if name == "quantile":
            aggregate = f"quantile({constant(node.param)!r})"
        elif name in _AGGREGATES:
            aggregate = name
        elif name == "group":
            aggregate = "max"
        else:
            raise Untranslatable(f"'{name}' has no translation")
        groups = self._groups(node.modifier)
        inner = _inside_parentheses(node.expr)
        if type(inner).__name__ == "BinaryExpr" and str(inner.op) in (*_COMPARISONS, "and", "or", "unless"):
            return self._counted(inner, aggregate, groups, depth)
        values = self.number(inner, depth + 1)
        given = values.only_input
        if given is not None and values.groups is None:
            return Formula((replace(given, aggregate=aggregate),), groups)
        part = self._part(values, "")
        return Formula((replace(part, aggregate=aggregate),), groups)

    def _counted(self, node: Any, aggregate: str, groups: Groups, depth: int) -> Formula:
        """`count(x == 0)`: the number of groups in which a condition holds."""
        if aggregate != "count":
            raise Untranslatable(f"'{aggregate}' of the values that pass a condition")
        condition = self.holds(node, depth + 1)
        ones = replace(condition, parts=(*condition.operand, " ? 1.0 : 0.0"))
        return Formula((replace(self._part(ones, ""), aggregate="sum"),), groups)

    def _groups(self, modifier: Any) -> Groups:
        if modifier is None:
            return ()
        if str(modifier.type) == "AggModifierType.By":
            return tuple(sorted(set(modifier.labels)))
        self.note(
            f"'without ({', '.join(modifier.labels)})' is translated as 'by ({', '.join(self.series_groups)})'"
        )
        return tuple(label for label in self.series_groups if label not in modifier.labels)

    def _binary(self, node: Any, depth: int) -> Formula:
        operator = str(node.op)
        if operator in _COMPARISONS:
            return self._compared_value(node, depth)
        if operator == "or":
            return self._with_default(node, depth)
        if operator not in _ARITHMETIC:
            raise Untranslatable(f"'{operator}' has no translation as a number")
        left = self.number(node.lhs, depth + 1)
        right = self.number(_denominator(node) if operator == "/" else node.rhs, depth + 1)
        groups = self._matched(node, left, right)
        parts = (*left.operand, f" {operator} ", *right.operand)
        return Formula(parts, groups, is_scalar=left.is_scalar and right.is_scalar)

    def _compared_value(self, node: Any, depth: int) -> Formula:
        """A comparison with `bool` is 0 or 1."""
        if node.modifier is None or not node.modifier.return_bool:
            raise Untranslatable(f"{_shown(node)} filters values in the middle of an expression")
        condition = self._comparison(node, depth)
        return replace(condition, parts=(*condition.operand, " ? 1.0 : 0.0"))

    def _with_default(self, node: Any, depth: int) -> Formula:
        """`x or vector(0)`"""
        right = _inside_parentheses(node.rhs)
        is_vector = type(right).__name__ == "Call" and right.func.name == "vector"
        left = self.number(node.lhs, depth + 1)
        if not is_vector or left.only_input is None:
            raise Untranslatable("'or' between values")
        default = constant(right.args[0])
        return left.of_input(lambda given: replace(given, default=default))

    def _comparison(self, node: Any, depth: int) -> Formula:
        operator = str(node.op)
        left, right = self.number(node.lhs, depth + 1), self.number(node.rhs, depth + 1)
        groups = self._matched(node, left, right)
        flipped = {">": "<", "<": ">", ">=": "<=", "<=": ">="}.get(operator, operator)
        left, right = _any_series(left, operator), _any_series(right, flipped)
        return Formula((*left.operand, f" {operator} ", *right.operand), groups)

    def _set_operation(self, node: Any, depth: int) -> Formula:
        operator = str(node.op)
        left, right = self.holds(node.lhs, depth + 1), self.holds(node.rhs, depth + 1)
        groups = self._matched(node, left, right)
        if operator == "and":
            return Formula((*left.operand, " && ", *right.operand), groups)
        if operator == "unless":
            self.note("a group without the series behind 'unless' has no result")
            return Formula((*left.operand, " && !", "(", *right.parts, ")"), groups)
        self.note("a group without the series of both sides of 'or' has no result")
        return Formula((*left.operand, " || ", *right.operand), groups)

    def _matched(self, node: Any, left: Formula, right: Formula) -> Groups:
        """The groups of an operation on two operands."""
        if left.is_scalar or right.is_scalar:
            return right.groups if left.is_scalar else left.groups
        modifier = node.modifier
        matching = None if modifier is None else modifier.matching
        is_set = str(node.op) in ("and", "or", "unless")
        card = "" if modifier is None else str(modifier.card)
        if not is_set and card in ("VectorMatchCardinality.ManyToOne", "VectorMatchCardinality.OneToMany"):
            raise Untranslatable("it joins many series with one ('group_left' or 'group_right')")
        if matching is None:
            return joined_groups(left.groups, right.groups)
        if str(matching.type) != "LabelModifierType.Include":
            if left.groups is None and right.groups is None:
                return None
            raise Untranslatable("'ignoring' between aggregated values")
        labels = tuple(sorted(set(matching.labels)))
        for side in (left.groups, right.groups):
            if side is not None and set(side) != set(labels):
                raise Untranslatable(
                    f"it joins on ({', '.join(labels)}) what is grouped by ({', '.join(side)})"
                )
        return labels

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _any_series(formula: Formula, operator: str) -> Formula:
    """A condition over one series of a group holds if it does for any."""
    if formula.groups is not None or operator not in _ANY_SERIES:
        return formula
    aggregate = _ANY_SERIES[operator]
    return formula.of_input(
        lambda given: replace(given, aggregate=aggregate) if given.aggregate == "max" else given
    )


def _denominator(node: Any) -> Any:
    """`x / (y > 0)` divides by y where it is not 0. A calc_rule has no result for a division by 0."""
    inner = _inside_parentheses(node.rhs)
    if type(inner).__name__ == "BinaryExpr" and str(inner.op) in (">", "!="):
        bound = _inside_parentheses(inner.rhs)
        if type(bound).__name__ == "NumberLiteral" and bound.val == 0:
            return inner.lhs
    return node.rhs


def constant(node: Any) -> float:
    """The value of an expression of numbers."""
    node = _inside_parentheses(node)
    kind = type(node).__name__
    if kind == "NumberLiteral" and isfinite(node.val):
        return float(node.val)
    if kind == "UnaryExpr":
        return -constant(node.expr)
    if kind == "BinaryExpr" and str(node.op) in _ARITHMETIC:
        left, right = constant(node.lhs), constant(node.rhs)
        if str(node.op) == "+":
            return left + right
        if str(node.op) == "-":
            return left - right
        if str(node.op) == "*":
            return left * right
        if right:
            return left / right
    raise Untranslatable(f"{_shown(node)} is not a constant number")


def is_constant(node: Any) -> bool:
    try:
        constant(node)
    except Untranslatable:
        return False
    return True


def _inside_parentheses(node: Any) -> Any:
    while type(node).__name__ == "ParenExpr":
        node = node.expr
    return node


def _offset(offset: timedelta | None) -> str:
    if not offset:
        return ""
    if offset < timedelta(0):
        raise Untranslatable("a negative 'offset' reads the future")
    return format_duration(offset)


def _kind(node: Any, depth: int) -> str:
    if depth > _MAX_DEPTH:
        raise Untranslatable(f"it is nested more than {_MAX_DEPTH} levels deep")
    return type(node).__name__


def _shown(node: Any) -> str:
    text = " ".join(node.prettify().split())
    return f"'{text[:60]}{'...' if len(text) > 60 else ''}'"

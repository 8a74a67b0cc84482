"""Compiles an expression over events that names something, such as `payload.interface`.

Guarantee: `evaluate` never raises, and returns plain JSON that is equal for equal values: a number
is the same whether it was sent as 3 or as 3.0. A value that is null, or missing in the payload, is
None, and so is one that is too expensive to compute (`cost.py`).

On failure: `ExpressionInvalid` with every error and its column.
"""

from __future__ import annotations

from cel_expr_python import cel

from rules.language.cel.bound_facts import BoundFacts
from rules.language.cel.checked_ast import decode
from rules.language.cel.condition import check_text, cost_errors, literal_errors
from rules.language.cel.cost_guard import CostGuard
from rules.language.cel.environment import event_environment
from rules.language.cel.errors import ExpressionInvalid
from rules.language.cel.hints import explain
from rules.language.cel.json_numbers import number_errors
from schemas.fields import EVENT_FIELDS

_types = cel.Type
_PLAIN = (_types.STRING, _types.INT, _types.BOOL)


class Expression:
    __slots__ = ("_eval", "_guard", "text")

    def __init__(self, text: str, expression: cel.Expression, guard: CostGuard | None) -> None:
        self.text = text
        self._eval = expression.eval
        self._guard = guard

    def evaluate(self, facts: BoundFacts) -> str | int | float | bool | None:
        if self._guard is not None and self._guard.problem(facts) is not None:
            return None
        try:
            result = self._eval(facts.activation)
        except RuntimeError:
            return None
        # The type first: reading a null result corrupts the reference count of None.
        kind = result.type()
        if kind == _types.DOUBLE:
            number = float(result.value())
            return int(number) if number.is_integer() and abs(number) < 2**53 else number
        if kind in _PLAIN:
            plain: str | int | bool = result.value()
            return plain
        return None if kind in (_types.NULL, _types.ERROR) else str(result)


def compile_event_expression(text: str, *, rule: str = "") -> Expression:
    check_text(text)
    env = event_environment()
    try:
        expression = env.compile(text)
    except RuntimeError as failure:
        raise ExpressionInvalid(text, explain(env, EVENT_FIELDS, text, str(failure))) from None
    tree = decode(expression.serialize())
    errors = [*cost_errors(text, tree), *literal_errors(text, tree), *number_errors(text, tree)]
    if errors:
        raise ExpressionInvalid(text, sorted(errors))
    return Expression(text, expression, CostGuard.of(tree.root))

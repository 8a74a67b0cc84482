"""Compiles the `value` of a calc_rule: an expression over its inputs and `now`, which are doubles.

Guarantee: `evaluate` never raises. It returns a finite number or a boolean, or None if there is no
result, such as after a division by zero.

On failure: `ExpressionInvalid` with every error and its column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite

from cel_expr_python import cel

from rules.language.cel import analysis
from rules.language.cel.checked_ast import decode
from rules.language.cel.condition import check_text, cost_errors, literal_errors
from rules.language.cel.environment import safe_environment
from rules.language.cel.errors import ExpressionError, ExpressionInvalid
from rules.language.cel.hints import explain

_types = cel.Type
NOW = "now"
_RESULTS = (_types.DOUBLE, _types.INT, _types.BOOL)


class Calculation:
    __slots__ = ("_eval", "names", "text")

    def __init__(self, text: str, expression: cel.Expression, names: frozenset[str]) -> None:
        self.text = text
        self.names = names
        self._eval = expression.eval

    def evaluate(self, inputs: Mapping[str, float], now: float) -> float | bool | None:
        """`now` is the end of the window, in seconds since 1970."""
        try:
            result = self._eval(None, {**inputs, NOW: now})
        except RuntimeError:
            return None
        # The type first: reading another result may not be safe.
        kind = result.type()
        if kind == _types.BOOL:
            return bool(result.value())
        if kind not in _RESULTS:
            return None
        number = float(result.value())
        return number if isfinite(number) else None


def compile_calculation(text: str, inputs: Iterable[str]) -> Calculation:
    check_text(text)
    names = sorted(inputs)
    env = safe_environment(dict.fromkeys((*names, NOW), _types.DOUBLE))
    try:
        expression = env.compile(text)
    except RuntimeError as failure:
        raise ExpressionInvalid(text, explain(env, (*names, NOW), text, str(failure))) from None
    if expression.return_type() not in _RESULTS:
        kind = expression.return_type().name().lower()
        message = f"the value must be a number or true or false, this is of type {kind}"
        raise ExpressionInvalid(text, [ExpressionError(1, 1, message)])
    tree = decode(expression.serialize())
    errors = [*cost_errors(text, tree), *literal_errors(text, tree)]
    if errors:
        raise ExpressionInvalid(text, sorted(errors))
    return Calculation(text, expression, frozenset(analysis.names_of(tree)) & frozenset(names))

"""Conditions over a series: its value, what came before it, whose it is.

Guarantee: `value` and `previous` have the type that the datapoint_type declares, so `value > "x"` is an error
at load where the type says number; where no type is declared they are only checked when the condition runs.
`rate` is the change per second since the previous datapoint, `age` how long the series has been silent: zero
when a datapoint arrives, the watchdog's deadline when the series goes stale. `where` knows owner, key and
labels alone: what a series is, not how it is.

Why only the variables that a condition reads are bound: binding is half of the cost of judging a datapoint.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from cel_expr_python import cel

from rules.language.cel.condition import Condition, compile_condition
from rules.language.cel.environment import safe_environment
from rules.language.cel.errors import ExpressionError, ExpressionInvalid
from schemas.fields import SERIES_FIELDS, WHERE_FIELDS
from schemas.values.severities import severities

ValueKind = Literal["number", "string", "bool"]


@lru_cache(maxsize=4)
def series_environment(kind: ValueKind | None) -> cel.Env:
    """`kind` is None when no datapoint_type says what the values are."""
    types = cel.Type
    value = {"number": types.DOUBLE, "string": types.STRING, "bool": types.BOOL, None: types.DYN}[kind]
    return safe_environment(
        {
            "value": value,
            "previous": value,
            "rate": types.DOUBLE,
            "age": types.DURATION,
            "freshness": types.STRING,
            "ts": types.TIMESTAMP,
            "arrived_at": types.TIMESTAMP,
            "unit": types.STRING,
            **_identity(),
            **dict.fromkeys(severities(), types.INT),
        }
    )


@lru_cache(maxsize=1)
def where_environment() -> cel.Env:
    return safe_environment(_identity())


def compile_series_condition(text: str, *, kind: ValueKind | None, rule: str = "") -> Condition:
    return compile_condition(series_environment(kind), SERIES_FIELDS, text, rule)


def compile_where(text: str, *, rule: str = "") -> Condition:
    try:
        return compile_condition(where_environment(), WHERE_FIELDS, text, rule)
    except ExpressionInvalid as invalid:
        raise ExpressionInvalid(text, [_of_where(error) for error in invalid.errors]) from None


def _of_where(error: ExpressionError) -> ExpressionError:
    for name in SERIES_FIELDS:
        if name not in WHERE_FIELDS and error.message.startswith(f"undeclared reference to '{name}'"):
            message = (
                f"'{name}' is not known here, where series are chosen by owner, key and labels: ask in 'fire'"
            )
            return error._replace(message=message)
    return error


def _identity() -> dict[str, cel.Type]:
    types = cel.Type
    return {"owner": types.STRING, "key": types.STRING, "labels": types.Map(types.STRING, types.STRING)}

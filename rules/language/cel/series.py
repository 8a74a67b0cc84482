"""Conditions over a series: `fire` and `clear` read its values, `where` reads its owner, key and
labels.

Guarantee: `value` and `previous` have the type that the datapoint_type declares, so `value > "x"`
is an error of the load if the type is number. Without a declared type they are checked only during
evaluation. `rate` is the change per second since the previous datapoint. `age` is the time since
the last datapoint: zero when one arrives, the deadline of the watchdog when the series becomes
stale.

Why only the variables that a condition reads are bound: binding is half of the cost of evaluating a
datapoint.
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
    """`kind` is None for a series without a datapoint_type."""
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
        raise ExpressionInvalid(text, [_explain_where(error) for error in invalid.errors]) from None


def _explain_where(error: ExpressionError) -> ExpressionError:
    for name in SERIES_FIELDS:
        if name not in WHERE_FIELDS and error.message.startswith(f"undeclared reference to '{name}'"):
            reason = (
                "is not known in 'where', which selects series by owner, key and labels: use it in 'fire'"
            )
            return error._replace(message=f"'{name}' {reason}")
    return error


def _identity() -> dict[str, cel.Type]:
    types = cel.Type
    return {"owner": types.STRING, "key": types.STRING, "labels": types.Map(types.STRING, types.STRING)}

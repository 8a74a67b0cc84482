"""Conditions over events and series, in CEL: compiled and checked at load, total at run time.

Guarantee: a condition that compiles cannot crash, hang or exhaust the worker, whatever the data holds,
and can only answer match or no match. What can be known to be wrong is refused at load, with its column.

Why a wrapper: the engine is the only one with a static type checker, and it is young. Every trap we
know of in the pinned version is closed here and held by a test.
"""

from rules.language.cel.condition import Condition, compile_event_condition
from rules.language.cel.environment import event_activation, event_environment
from rules.language.cel.errors import ExpressionError, ExpressionInvalid
from rules.language.cel.index import RuleIndex
from rules.language.cel.series import compile_series_condition, compile_where
from rules.language.cel.steps import compile_branch_condition, compile_wait_condition

__all__ = [
    "Condition",
    "ExpressionError",
    "ExpressionInvalid",
    "RuleIndex",
    "compile_branch_condition",
    "compile_event_condition",
    "compile_series_condition",
    "compile_wait_condition",
    "compile_where",
    "event_activation",
    "event_environment",
]

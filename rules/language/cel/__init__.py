"""Conditions over events and series, in CEL: compiled and checked when a rule is loaded.

Guarantee: a condition that compiles cannot crash, hang or exhaust the worker with any data, and its
only results are match and no match. Mistakes that can be found without data are errors of the load,
with their column.

Why a wrapper: the engine is the only one with a static type checker, and it is young. This package
avoids every known defect of the pinned version, and a test covers each of them.

Entry points: the loader and the engine call `compile_event_condition` and
`series.compile_series_condition`, dispatch evaluates many conditions at once with `RuleIndex`.
"""

from rules.language.cel.alarms import AlarmMatcher, compile_matcher
from rules.language.cel.condition import Condition, compile_event_condition
from rules.language.cel.environment import event_activation, event_environment
from rules.language.cel.errors import ExpressionError, ExpressionInvalid
from rules.language.cel.expression import Expression, compile_event_expression
from rules.language.cel.index import RuleIndex
from rules.language.cel.series import compile_series_condition, compile_where
from rules.language.cel.steps import compile_branch_condition, compile_wait_condition

__all__ = [
    "AlarmMatcher",
    "Condition",
    "Expression",
    "ExpressionError",
    "ExpressionInvalid",
    "RuleIndex",
    "compile_branch_condition",
    "compile_event_condition",
    "compile_event_expression",
    "compile_matcher",
    "compile_series_condition",
    "compile_wait_condition",
    "compile_where",
    "event_activation",
    "event_environment",
]

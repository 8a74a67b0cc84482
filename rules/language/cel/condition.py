"""Compiles a condition, and evaluates it.

Guarantee: `compile_condition` returns a boolean expression over the variables of its environment,
of bounded length and cost. Its regular expressions, timestamps, durations and timezones are valid,
and its schedule names exist if the names are known. `matches` never raises: only `true` of the
engine is a match. An evaluation error (a missing payload key, an exhausted budget) counts as no
match.

Why a boolean result is required: the engine returns errors as texts, and a null result corrupts the
reference count of None. Why nesting is limited: two nested macros over one payload list are already
quadratic; the engine's budget of 10,000 iterations ends the rest. What one iteration may cost is
bounded by `cost_guard.py`: an evaluation that could take longer is not begun, and counts as an error.

On failure: `ExpressionInvalid` with every error and its column. Evaluation errors are counted per
condition and logged once, so that a rule that fails for every event does not fill the log.
"""

import re
from collections.abc import Iterable, Set
from typing import Any, TypeAlias

import structlog
from cel_expr_python import cel

from rules.language.cel import analysis
from rules.language.cel.bound_facts import BoundFacts
from rules.language.cel.checked_ast import Tree, decode
from rules.language.cel.cost_guard import TOO_EXPENSIVE, CostGuard, is_too_expensive
from rules.language.cel.environment import event_environment
from rules.language.cel.errors import ExpressionError, ExpressionInvalid, error_at
from rules.language.cel.failures import FailedCondition, note_failure
from rules.language.cel.hints import explain
from rules.language.cel.json_numbers import number_errors
from rules.language.cel.literals import literal_problem
from rules.metrics import CONDITION_FAILURES
from schemas.documents.action_rule import MAX_CONDITION_LENGTH
from schemas.fields import EVENT_FIELDS
from tocsin.core.near_name import near_name

MAX_MACRO_DEPTH = 2
_UNUSABLE = re.compile("[\0\ud800-\udfff]")
_RUN_TIME_HINTS = {
    "not found in map": "guard members with has(payload.key) or has(labels.name)",
    "No matching overloads": "declare a datapoint_type, so that types are checked when the rule is loaded",
    TOO_EXPENSIVE: "compare members of one list with literals, or send less data in one event",
    "budget exceeded": "macros visit 10,000 members at most",
    "Unexpected value type": "the datapoint_type promises another type than the producer sends",
}

ConditionInput: TypeAlias = BoundFacts | dict[str, Any]
"""Bound facts, which many conditions can share, or plain variables, which take three quarters of
their time for a single condition."""

_log = structlog.get_logger("rules.language.cel")


class Condition:
    """A compiled condition. `index`, if set, lists the only (variable, literal) pairs under which
    it can match."""

    __slots__ = (
        *("_eval", "_guard", "error_count", "index", "labels", "last_error"),
        *("literals", "names", "rule", "schedules", "text"),
    )

    def __init__(self, rule: str, text: str, expression: cel.Expression, tree: Tree) -> None:
        self.rule = rule
        self.text = text
        self.literals = analysis.required_literals(tree)
        self.index = analysis.index_of(self.literals)
        self.names = analysis.names_of(tree)
        self.labels = analysis.members_of(tree, "labels") if "labels" in self.names else frozenset()
        self.schedules = tuple(
            dict.fromkeys(literal.text for literal in analysis.literals_of(tree, "schedule"))
        )
        self.error_count = 0
        self.last_error: str | None = None
        self._eval = expression.eval
        self._guard = CostGuard.of(tree.root)

    def matches(self, facts: BoundFacts) -> bool:
        return self.evaluate(facts) is True

    def evaluate(self, facts: ConditionInput, is_error_expected: bool = False) -> bool | None:
        """None on an evaluation error, which is counted unless it is expected."""
        if self._guard is not None and (problem := self._guard.problem(facts)) is not None:
            self._count_error(problem)
            return None
        try:
            bound = self._eval(None, facts) if isinstance(facts, dict) else self._eval(facts.activation)
            result = bound.value()
        except RuntimeError as error:
            result = str(error)
        if result is True or result is False:
            return bool(result)
        if not is_error_expected:
            self._count_error(str(result))
        return None

    def _count_error(self, error: str) -> None:
        self.error_count += 1
        CONDITION_FAILURES.add(1, "too_expensive" if error.startswith(TOO_EXPENSIVE) else "error")
        self.last_error = error
        hint = next((hint for part, hint in _RUN_TIME_HINTS.items() if part in error), "")
        note_failure(FailedCondition(self.rule, self.text, error, hint))
        if self.error_count == 1:
            _log.warning("condition failed", rule=self.rule, when=self.text, error=error, hint=hint)

    def __repr__(self) -> str:
        return f"Condition({self.rule!r}, {self.text!r})"


def compile_event_condition(
    text: str, *, rule: str = "", known_schedules: Set[str] | None = None
) -> Condition:
    """Compile a condition over events. Schedule names are not checked if `known_schedules` is
    None."""
    return compile_condition(event_environment(), EVENT_FIELDS, text, rule, known_schedules)


def compile_condition(
    env: cel.Env, variables: Iterable[str], text: str, rule: str, known_schedules: Set[str] | None = None
) -> Condition:
    """Compile a condition. Hints about unknown names suggest one of `variables`."""
    check_text(text)
    try:
        expression = env.compile(text)
    except RuntimeError as failure:
        raise ExpressionInvalid(text, explain(env, variables, text, str(failure))) from None
    # First of all checks: evaluating an expression that returns null is never safe.
    if expression.return_type() != cel.Type.BOOL:
        type_name = expression.return_type().name().lower()
        hint = "write == true" if type_name == "dyn" else "compare it with something"
        message = f"a condition must be true or false, this is of type {type_name}, {hint}"
        raise ExpressionInvalid(text, [ExpressionError(1, 1, message)])
    tree = decode(expression.serialize())
    errors = [*cost_errors(text, tree), *literal_errors(text, tree), *number_errors(text, tree)]
    if known_schedules is not None:
        errors += _schedule_errors(text, tree, known_schedules)
    if errors:
        raise ExpressionInvalid(text, sorted(errors))
    return Condition(rule, text, expression, tree)


def check_text(text: str) -> None:
    if len(text) > MAX_CONDITION_LENGTH:
        message = f"the condition has {len(text)} characters, at most {MAX_CONDITION_LENGTH} are accepted"
        raise ExpressionInvalid(text, [ExpressionError(1, 1, message)])
    unusable = _UNUSABLE.search(text)
    if unusable:
        message = f"the character U+{ord(unusable.group()):04X} cannot be part of a condition, remove it"
        raise ExpressionInvalid(text, [error_at(text, unusable.start(), message)])
    if not text.strip():
        raise ExpressionInvalid(
            text, [ExpressionError(1, 1, "the condition is empty, write true to match everything")]
        )


def cost_errors(text: str, tree: Tree) -> Iterable[ExpressionError]:
    depth = analysis.macro_depth(tree.root)
    if depth > MAX_MACRO_DEPTH:
        message = f"macros are nested {depth} deep, at most {MAX_MACRO_DEPTH} are accepted"
        yield ExpressionError(1, 1, message)
    for call in analysis.computed_zones(tree):
        message = f"the timezone of '{call.name}' must be written as a text, such as \"Europe/London\""
        yield error_at(text, tree.offsets.get(call.id, 0), message)
    for call in analysis.computed_patterns(tree):
        message = "the regular expression of 'matches' must be written as a text, such as \"^err\""
        yield error_at(text, tree.offsets.get(call.id, 0), message)
    if is_too_expensive(tree.root):
        yield ExpressionError(1, 1, "the condition is too expensive for any data, shorten its {...} counts")
    untyped = analysis.untyped_sum(tree)
    if untyped is not None:
        message = "'+' needs to know the type of an operand, write int(...) or double(...) around it"
        yield error_at(text, tree.offsets.get(untyped.id, 0), message)


def literal_errors(text: str, tree: Tree) -> Iterable[ExpressionError]:
    for what, literal in analysis.literal_arguments(tree):
        problem = literal_problem(what, literal.text)
        if problem is not None:
            yield error_at(text, literal.offset, problem)


def _schedule_errors(text: str, tree: Tree, known: Set[str]) -> Iterable[ExpressionError]:
    for literal in analysis.literals_of(tree, "schedule"):
        # An event without a schedule has "", and a condition may compare with it.
        if literal.text and literal.text not in known:
            near = near_name(literal.text, sorted(known))
            hint = f"did you mean '{near}'?" if near else "no schedule of this name is defined"
            yield error_at(text, literal.offset, f"unknown schedule '{literal.text}', {hint}")

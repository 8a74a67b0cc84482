"""Conditions of steps: `when` of a `branch`, and `until_event` of a `wait`.

Guarantee: a `branch` reads the event, the alarm as it is when the step is reached (`alarm.state`,
`alarm.acknowledged`), and the `answers` of steps that have ended. A `wait` reads the new event, and
the event that started its run as `trigger` (`owner == trigger.owner`). A misspelt field of either,
and an answer that no step gives, is an error of the load.

Why dotted names and not maps: the engine then checks each field and its type.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from cel_expr_python import cel

from rules.language.cel.bound_facts import BoundFacts
from rules.language.cel.checked_ast import IDENT, SELECT, decode, walk
from rules.language.cel.condition import Condition, compile_condition
from rules.language.cel.environment import CONTAINER, event_values, event_variables, safe_environment
from rules.language.cel.errors import ExpressionError, ExpressionInvalid, error_at
from rules.language.cel.json_numbers import as_doubles
from schemas.fields import (
    ALARM_BOOLS,
    ALARM_FIELDS,
    ALARM_INSTANTS,
    ALARM_INTS,
    ALARM_MAPS,
    ALARM_STRINGS,
    EVENT_FIELDS,
    PAYLOAD_FIELD,
)
from tocsin.core.instant import EPOCH
from tocsin.core.near_name import near_name

TRIGGER_STRINGS = ("id", "type", "owner", "schedule", "rule", "correlation_id")
TRIGGER_FIELDS = (*TRIGGER_STRINGS, PAYLOAD_FIELD)
_UNDECLARED = re.compile(r"undeclared reference to '(\w+)(?:\.(\w+))?'")


@lru_cache(maxsize=1)
def branch_environment() -> cel.Env:
    types = cel.Type
    member = types.Map(types.STRING, types.DYN)
    kinds = (
        (ALARM_STRINGS, types.STRING),
        (ALARM_INTS, types.INT),
        (ALARM_BOOLS, types.BOOL),
        (ALARM_INSTANTS, types.TIMESTAMP),
        (ALARM_MAPS, member),
    )
    variables = {f"alarm.{name}": kind for names, kind in kinds for name in names}
    return safe_environment({**event_variables(), **variables, "answers": member}, container=CONTAINER)


@lru_cache(maxsize=1)
def wait_environment() -> cel.Env:
    types = cel.Type
    variables = {f"trigger.{name}": types.STRING for name in TRIGGER_STRINGS}
    variables[f"trigger.{PAYLOAD_FIELD}"] = types.Map(types.STRING, types.DYN)
    return safe_environment({**event_variables(), **variables}, container=CONTAINER)


def compile_branch_condition(
    text: str, *, rule: str = "", known_answers: Collection[str] | None = None
) -> Condition:
    """Compile `when` of a branch. Names of answers are not checked if `known_answers` is None."""
    condition = _compile(branch_environment(), {"alarm": ALARM_FIELDS}, text, rule)
    if known_answers is not None:
        errors = sorted(_answer_errors(text, known_answers))
        if errors:
            raise ExpressionInvalid(text, errors)
    return condition


def compile_wait_condition(text: str, *, rule: str = "") -> Condition:
    return _compile(wait_environment(), {"trigger": TRIGGER_FIELDS}, text, rule)


def branch_activation(
    event: Mapping[str, object], alarm: Mapping[str, object], answers: Mapping[str, object]
) -> BoundFacts:
    values = event_values(event)
    values |= {f"alarm.{name}": alarm.get(name) or "" for name in ALARM_STRINGS}
    values |= {f"alarm.{name}": alarm.get(name) or 0 for name in ALARM_INTS}
    values |= {f"alarm.{name}": bool(alarm.get(name)) for name in ALARM_BOOLS}
    values |= {f"alarm.{name}": alarm.get(name) or EPOCH for name in ALARM_INSTANTS}
    values |= {f"alarm.{name}": as_doubles(alarm.get(name) or {}) for name in ALARM_MAPS}
    return BoundFacts(branch_environment(), {**values, "answers": as_doubles(dict(answers))})


def wait_activation(event: Mapping[str, object], trigger: Mapping[str, object]) -> BoundFacts:
    values = event_values(event)
    values |= {f"trigger.{name}": str(trigger.get(name) or "") for name in TRIGGER_STRINGS}
    values[f"trigger.{PAYLOAD_FIELD}"] = as_doubles(trigger.get(PAYLOAD_FIELD) or {})
    return BoundFacts(wait_environment(), values)


def _compile(env: cel.Env, members: Mapping[str, Collection[str]], text: str, rule: str) -> Condition:
    try:
        return compile_condition(env, (*EVENT_FIELDS, *members, "answers"), text, rule)
    except ExpressionInvalid as invalid:
        errors = [_name_misspelt_part(error, members) for error in invalid.errors]
        raise ExpressionInvalid(text, errors) from None


def _name_misspelt_part(error: ExpressionError, members: Mapping[str, Collection[str]]) -> ExpressionError:
    """Name the part of a path that is misspelt: the engine names the whole path."""
    match = _UNDECLARED.match(error.message)
    if match is None:
        return error
    first, field = match[1], match[2]
    if first not in members:
        near = near_name(first, members) if field else None
        hint = f"did you mean '{near}'?" if near else ""
        return error._replace(message=f"unknown name '{first}', {hint}") if hint else error
    if not field:
        return error._replace(message=f"'{first}' has parts, write one of them, such as {first}.id")
    near = near_name(field, members[first])
    hint = f"did you mean '{near}'?" if near else f"there are {', '.join(members[first])}"
    return error._replace(message=f"'{first}' has no '{field}', {hint}")


def _answer_errors(text: str, known: Collection[str]) -> Iterable[ExpressionError]:
    tree = decode(branch_environment().compile(text).serialize())
    for node in walk(tree.root):
        if node.kind != SELECT or node.children[0].kind != IDENT or node.children[0].name != "answers":
            continue
        if node.name not in known:
            near = near_name(node.name, known)
            hint = f"did you mean '{near}'?" if near else "no step before this one has this name"
            yield error_at(text, tree.offsets.get(node.id, 0), f"unknown answer '{node.name}', {hint}")

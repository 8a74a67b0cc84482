"""The variables and functions of conditions over events.

Guarantee: all event conditions share one environment with a type for each variable, so a misspelt
name or a comparison of a number with a text is an error when the rule is loaded. Concatenation of
texts and lists and the macros that build lists are removed: with them, a short condition could
allocate gigabytes. Timezone functions read the same tz data as the schedules.

Why `type` is declared in a container: the standard library has a plain `type`, and the engine
rejects a second one. Names of the container come first, so conditions write `type` like any other
field.

On failure: `event_activation` raises `InvalidInput` for an event whose data is not plain JSON of
bounded depth.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

from cel_expr_python import cel

from rules.language.cel.bound_facts import BoundFacts
from rules.language.cel.json_numbers import as_doubles
from schemas.fields import BOOL_FIELDS, INSTANT_FIELDS, INT_FIELDS, PAYLOAD_FIELD, STRING_FIELDS
from schemas.values.json_shape import check_json_shape
from schemas.values.severities import severities

# Imported for its effect: it points TZDIR, which the engine reads once, to the tz data of this
# process.
from timers.recurrence import zones
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import EPOCH

CONTAINER = "event"
_TYPE_VARIABLE = f"{CONTAINER}.type"

_CONFIG = """
name: tocsin
stdlib:
  exclude_macros: [map, filter]
  exclude_functions:
    - name: "_+_"
      overloads:
        - id: add_string
        - id: add_list
        - id: add_bytes
"""

# Names in conditions to names in the engine. Only `type` has another name there.
_ENGINE_NAMES = {name: _TYPE_VARIABLE if name == "type" else name for name in STRING_FIELDS}


@lru_cache(maxsize=1)
def event_environment() -> cel.Env:
    """The environment of all event conditions. It is shared, because building one takes
    milliseconds."""
    return safe_environment(event_variables(), container=CONTAINER)


def event_variables() -> dict[str, cel.Type]:
    """Types of the variables, by their names in the engine."""
    types = cel.Type
    variables = dict.fromkeys(_ENGINE_NAMES.values(), types.STRING)
    variables |= dict.fromkeys((*INT_FIELDS, *severities()), types.INT)
    variables |= dict.fromkeys(BOOL_FIELDS, types.BOOL)
    variables |= dict.fromkeys(INSTANT_FIELDS, types.TIMESTAMP)
    variables[PAYLOAD_FIELD] = types.Map(types.STRING, types.DYN)
    return variables


def safe_environment(variables: Mapping[str, cel.Type], *, container: str | None = None) -> cel.Env:
    """An environment without the functions that could allocate memory without bound."""
    assert zones.tz_version()
    config = cel.NewEnvConfigFromYaml(_CONFIG)
    return cel.NewEnv(config=config, variables=variables, container=container)


def plain_name(identifier: str) -> str:
    """The name in conditions of a variable of the syntax tree."""
    return "type" if identifier == _TYPE_VARIABLE else identifier


def event_text(event: Mapping[str, object], field: str) -> str:
    """A text field as conditions see it: "" if it is absent. The rule index reads it in the same
    way."""
    value = event.get(field)
    return "" if value is None else str(value)


def event_activation(env: cel.Env, event: Mapping[str, object]) -> BoundFacts:
    """The variables of an event. Build it once for all rules."""
    return BoundFacts(env, event_values(event))


def event_values(event: Mapping[str, object]) -> dict[str, object]:
    variables: dict[str, object] = dict(severities())
    for field, engine_name in _ENGINE_NAMES.items():
        variables[engine_name] = event_text(event, field)
    for field in INT_FIELDS:
        variables[field] = event.get(field) or 0
    for field in BOOL_FIELDS:
        variables[field] = bool(event.get(field))
    check_json_shape(variables, "event")
    for field in INSTANT_FIELDS:
        variables[field] = _instant(event.get(field), field)
    payload = event.get(PAYLOAD_FIELD)
    check_json_shape({} if payload is None else payload, PAYLOAD_FIELD)
    variables[PAYLOAD_FIELD] = {} if payload is None else as_doubles(payload)
    return variables


def _instant(value: object, field: str) -> datetime:
    if value is None:
        return EPOCH
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidInput(f"{field} of the event is {value!r}", remedy="pass an aware datetime")
    return value

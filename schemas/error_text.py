"""Texts of pydantic's errors for authors of JSON and YAML.

Guarantee: `error_text` is one sentence with the location, the value and the remedy. It has none of
pydantic's words about inputs, strings and types, which an author does not know. The message of a
validator of ours is used unchanged.

On failure: an unknown type of error has the sentence of pydantic.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from schemas.values.names import HINTS

# Endings of error types that mean: the value has another type.
_WRONG_TYPE = re.compile(r"(_from_date|_object)?(_type|_parsing|_from_float)$")
_MAPPING = "a mapping"
_TYPE_NAMES = {
    "string": "a text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "finite_number": "a finite number",
    "dict": _MAPPING,
    "model": _MAPPING,
    "tuple": "a list",
    "list": "a list",
    "datetime": "an instant with its offset, such as 2026-03-07T00:00Z",
    "timezone_aware": "an instant with its offset, such as 2026-03-07T00:00Z",
    "uuid": "a UUID, such as 5a0f7c64-3b1e-4a57-9f0e-2d6f7b1c8e43",
}


def error_text(error: ValidationError, body: str = "the body") -> str:
    """The first error of a JSON message. `body` names the message itself."""
    first = error.errors(include_url=False)[0]
    location = ".".join(map(str, first["loc"])) or body
    return location + fault_text(first).replace(f"must be {_MAPPING}", "must be an object", 1)


def fault_text(details: ErrorDetails) -> str:
    """The part of the sentence after the location."""
    kind = details["type"]
    if kind == "value_error":
        return f": {details['msg'].removeprefix('Value error, ')}"
    if kind in _FAULTS:
        return _FAULTS[kind](details)
    expected = _TYPE_NAMES.get(_WRONG_TYPE.sub("", kind))
    if expected is not None:
        return f" must be {expected}, not {value_text(details['input'])}"
    return f": {details['msg'][:1].lower()}{details['msg'][1:]}"


def value_text(value: object) -> str:
    """The beginning of a value, as an author would write it."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def choices_text(details: ErrorDetails) -> str:
    return str(details["ctx"]["expected"]).replace("True", "true").replace("False", "false")


def _choice(details: ErrorDetails) -> str:
    return f" must be {choices_text(details)}, not {value_text(details['input'])}"


def _pattern(details: ErrorDetails) -> str:
    pattern = details["ctx"]["pattern"]
    return f" is {value_text(details['input'])}: {HINTS.get(pattern, f'write a text that matches {pattern}')}"


def _bound(details: ErrorDetails) -> str:
    bound = details["msg"].removeprefix("Input should be ")
    return f" must be {bound}, not {value_text(details['input'])}"


def _too_long(details: ErrorDetails) -> str:
    return f" is too long: at most {details['ctx']['max_length']} are accepted"


def _too_short(details: ErrorDetails) -> str:
    return f" is too short: it needs at least {details['ctx']['min_length']}"


_FAULTS: dict[str, Callable[[ErrorDetails], str]] = {
    "missing": lambda _: " is missing: add it",
    "extra_forbidden": lambda _: " is an unknown key: remove it",
    "json_invalid": lambda details: f" is not JSON ({details['ctx']['error']}): send an object",
    "literal_error": _choice,
    "string_pattern_mismatch": _pattern,
    "greater_than": _bound,
    "greater_than_equal": _bound,
    "less_than": _bound,
    "less_than_equal": _bound,
    "string_too_long": _too_long,
    "too_long": _too_long,
    "string_too_short": _too_short,
    "too_short": _too_short,
}

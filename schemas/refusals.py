"""What pydantic found wrong, in our own words.

Guarantee: `refusal` is one sentence with the place, the value and what to write instead; it holds no word about inputs,
strings or types, which an author of JSON or YAML does not know. What a validator of ours says is said as it is.

On failure to know a kind of error: pydantic's own sentence, so that something is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from schemas.values.names import HINTS

# How the names of errors end that mean: it is no such thing.
_NO_SUCH = re.compile(r"(_from_date|_object)?(_type|_parsing|_from_float)$")
_MAPPING = "a mapping"
_KINDS = {
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


def refusal(error: ValidationError, body: str = "the body") -> str:
    """The first thing that is wrong in a message of JSON; `body` is what everything is in."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"])) or body
    return place + fault(first).replace(f"must be {_MAPPING}", "must be an object", 1)


def fault(details: ErrorDetails) -> str:
    """What follows the name of the place."""
    kind = details["type"]
    if kind == "value_error":
        return f": {details['msg'].removeprefix('Value error, ')}"
    if kind in _FAULTS:
        return _FAULTS[kind](details)
    expected = _KINDS.get(_NO_SUCH.sub("", kind))
    if expected is not None:
        return f" must be {expected}, not {shown(details['input'])}"
    return f": {details['msg'][:1].lower()}{details['msg'][1:]}"


def shown(value: object) -> str:
    """As an author would write it, if it is short."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _choice(details: ErrorDetails) -> str:
    return f" must be {choices(details)}, not {shown(details['input'])}"


def choices(details: ErrorDetails) -> str:
    return str(details["ctx"]["expected"]).replace("True", "true").replace("False", "false")


def _pattern(details: ErrorDetails) -> str:
    hint = HINTS.get(details["ctx"]["pattern"], f"write what matches {details['ctx']['pattern']}")
    return f" is {shown(details['input'])}: {hint}"


def _bound(details: ErrorDetails) -> str:
    return f" must be {details['msg'].removeprefix('Input should be ')}, not {shown(details['input'])}"


def _too_long(details: ErrorDetails) -> str:
    return f" is too long: at most {details['ctx']['max_length']} are accepted"


def _too_short(details: ErrorDetails) -> str:
    return f" is too short: it needs at least {details['ctx']['min_length']}"


_FAULTS: dict[str, Callable[[ErrorDetails], str]] = {
    "missing": lambda _: " is missing: give it",
    "extra_forbidden": lambda _: " is no key that is known here: leave it out",
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

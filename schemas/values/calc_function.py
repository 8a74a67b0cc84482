"""Functions of calc_rules as authors write them: `rate`, `quantile(0.95)`, `predict_linear(4h)`.

Guarantee: an accepted text has one meaning, and its canonical text gives the same function. A
function takes exactly the argument that it needs: a fraction from 0 to 1, or a duration.

On failure: an ordinary pydantic validation error that lists the functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from schemas.values.duration import format_duration, parse_duration
from schemas.values.pydantic_check import pydantic_check
from tocsin.core.errors import InvalidInput

Argument = Literal["", "fraction", "duration"]
SERIES_FUNCTIONS: Mapping[str, Argument] = {
    **dict.fromkeys(("last", "avg", "min", "max", "sum", "count", "stddev"), ""),
    **dict.fromkeys(("rate", "increase", "delta", "changes", "absent_for"), ""),
    "quantile": "fraction",
    "predict_linear": "duration",
}
"""Functions over the datapoints of one series, with their argument."""
GROUP_FUNCTIONS: Mapping[str, Argument] = {
    **dict.fromkeys(("sum", "avg", "min", "max", "count", "stddev", "absent"), ""),
    "quantile": "fraction",
    "histogram_quantile": "fraction",
}
"""Functions over the values of the series of one group, with their argument."""
_TEXT = re.compile(r"([a-z_]+)(?:\(([^()]*)\))?")
_EXAMPLES = {"fraction": "0.95", "duration": "4h"}


class CalcFunction(NamedTuple):
    name: str
    fraction: float = 0.0
    duration: timedelta = timedelta(0)

    def __str__(self) -> str:
        if self.name in ("quantile", "histogram_quantile"):
            return f"{self.name}({self.fraction!r})"
        if self.name == "predict_linear":
            return f"{self.name}({format_duration(self.duration)})"
        return self.name


def parse_series_function(text: object) -> CalcFunction:
    return _parse(text, SERIES_FUNCTIONS)


def parse_group_function(text: object) -> CalcFunction:
    return _parse(text, GROUP_FUNCTIONS)


def _parse(text: object, functions: Mapping[str, Argument]) -> CalcFunction:
    if isinstance(text, CalcFunction):
        return text
    match = _TEXT.fullmatch(text) if isinstance(text, str) and len(text) <= 64 else None
    if match is None or match[1] not in functions:
        known = ", ".join(_shown(name, argument) for name, argument in functions.items())
        raise InvalidInput(f"{str(text)[:64]!r} is not a function: write one of {known}")
    name, given = match[1], match[2]
    argument = functions[name]
    if (given is None) != (argument == ""):
        raise InvalidInput(f"{text!r} has the wrong arguments: write {_shown(name, argument)}")
    if argument == "fraction":
        return CalcFunction(name, fraction=_fraction(given or "", name))
    if argument == "duration":
        return CalcFunction(name, duration=parse_duration(given))
    return CalcFunction(name)


def _fraction(text: str, name: str) -> float:
    try:
        fraction = float(text)
    except ValueError:
        fraction = -1.0
    if not 0 <= fraction <= 1:
        raise InvalidInput(f"{text!r} of {name} is not from 0 to 1: write {name}(0.95)")
    return fraction


def _shown(name: str, argument: Argument) -> str:
    return f"{name}({_EXAMPLES[argument]})" if argument else name


def _pattern(functions: Mapping[str, Argument]) -> str:
    plain = "|".join(name for name, argument in functions.items() if not argument)
    others = "|".join(name for name, argument in functions.items() if argument)
    return rf"^(({plain})|({others})\([^()]+\))$"


SeriesFunction = Annotated[
    CalcFunction,
    BeforeValidator(pydantic_check(parse_series_function)),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "maxLength": 64, "pattern": _pattern(SERIES_FUNCTIONS)}),
]
GroupFunction = Annotated[
    CalcFunction,
    BeforeValidator(pydantic_check(parse_group_function)),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "maxLength": 64, "pattern": _pattern(GROUP_FUNCTIONS)}),
]

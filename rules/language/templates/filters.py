"""Filters of templates: `{{ ts | local("Europe/London") }}`, `{{ payload.names | join(", ") }}`.

Guarantee: every filter costs at least one step of the budget, more for a large value, and none
makes a text beyond the limit. Filters of Jinja that take a width, a format or a function are left
out or replaced, because one of them is enough to fill the memory: `center(10**9)`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from jinja2 import pass_context
from jinja2.filters import FILTERS as FILTERS_OF_JINJA
from jinja2.runtime import Context
from jinja2.tests import TESTS as TESTS_OF_JINJA

from rules.language.templates.budget import bounded_length, spend
from rules.language.templates.values import as_json, as_text, duration_text, json_text
from timers.recurrence.once import parse_iso
from timers.recurrence.zones import zone
from tocsin.core.errors import InvalidInput

_FROM_JINJA = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first", "float", "groupby"),
    *("items", "last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse"),
    *("select", "selectattr", "sort", "title", "trim", "truncate", "unique", "upper", "urlencode"),
    *("wordcount",),
)
_DIRECTIVES = re.compile(r"(?:[^%]|%[aAbBdHIjmMpSyYzZ%])*")
_MAX_PRECISION = 12
_INT_MAX = 2**63 - 1


def duration(value: object) -> str:
    """Seconds, or the time between two instants, as `1h30m`."""
    if isinstance(value, timedelta):
        return duration_text(value)
    try:
        return duration_text(timedelta(seconds=_number(value)))
    except (OverflowError, ValueError):
        raise InvalidInput(f"{value} seconds is too long for a duration") from None


@pass_context
def since(context: Context, value: object) -> str:
    """The time since an instant, as `3m20s`."""
    now = context.get("now")
    if not isinstance(now, datetime):
        raise InvalidInput("'since' needs 'now', which is not known here")
    return duration_text(now - _instant(value))


def local(value: object, tz: str = "UTC", format: str = "%Y-%m-%d %H:%M %Z") -> str:
    """An instant as the wall time of a timezone."""
    if not isinstance(format, str) or not _DIRECTIVES.fullmatch(format):
        raise InvalidInput(f"{format!r} is not a format of times", remedy="write such as '%d %b %H:%M'")
    return _instant(value).astimezone(zone(str(tz))).strftime(format)


def to_json(value: object, indent: int | None = None) -> str:
    if indent not in (None, 0, 1, 2, 4, 8):
        raise InvalidInput(f"indent {indent!r} is not accepted", remedy="write 2, 4 or 8")
    return json_text(as_json(value), indent)


def join(values: Iterable[object], separator: object = "") -> str:
    texts, glue = [as_text(value) for value in values], as_text(separator)
    bounded_length(sum(map(len, texts)) + len(glue) * len(texts))
    return glue.join(texts)


def replace(text: object, old: str, new: str) -> str:
    whole, old, new = as_text(text), as_text(old), as_text(new)
    if not old:
        raise InvalidInput("'replace' needs a text to look for")
    bounded_length(len(whole) + whole.count(old) * len(new))
    return str(whole).replace(old, new)


def rounded(value: object, precision: int = 0) -> float | int:
    if not isinstance(precision, int) or not 0 <= precision <= _MAX_PRECISION:
        raise InvalidInput(
            f"{precision!r} digits cannot be rounded to", remedy=f"write 0 to {_MAX_PRECISION}"
        )
    number = _number(value)
    return round(number, precision) if precision else round(number)


def total(values: Iterable[object], attribute: str | None = None) -> float | int:
    numbers = (value[attribute] if attribute and isinstance(value, Mapping) else value for value in values)
    return within_64_bits(sum(_number(number) for number in numbers))


def to_int(value: object, default: int = 0) -> int:
    if not isinstance(value, int | float | str):
        return default
    try:
        return int(within_64_bits(int(value)))
    except (ValueError, OverflowError):
        return default


def within_64_bits(number: float | int) -> float | int:
    if isinstance(number, int) and abs(number) > _INT_MAX:
        raise InvalidInput("a number grows beyond 64 bits", remedy="calculate with smaller ones")
    return number


def _number(value: object) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"{as_text(value)[:40]!r} is not a number")
    return value


def _instant(value: object) -> datetime:
    parsed = parse_iso(value) if isinstance(value, str) else value
    if not isinstance(parsed, datetime) or parsed.tzinfo is None:
        raise InvalidInput(f"{as_text(value)[:40]!r} is not an instant such as 2026-03-10T14:00:00Z")
    return parsed


def _counted(filter: Callable[..., Any]) -> Callable[..., Any]:
    position = 1 if hasattr(filter, "jinja_pass_arg") else 0

    @wraps(filter)
    def counting(*arguments: Any, **named: Any) -> Any:
        value = arguments[position] if len(arguments) > position else None
        spend(1 + (len(value) // 100 if isinstance(value, str | list | tuple | Mapping) else 0))
        result = filter(*arguments, **named)
        if isinstance(result, str):
            bounded_length(len(result))
        return result

    return counting


def _counted_test(test: Any) -> Callable[..., Any]:
    """`reject("in", values)` compares one value with all others: each of them costs."""
    position = 1 if hasattr(test, "jinja_pass_arg") else 0

    @wraps(test)
    def counting(*arguments: Any, **named: Any) -> Any:
        sizes = [
            len(value) for value in arguments[position:] if isinstance(value, str | list | tuple | Mapping)
        ]
        spend(1 + sum(sizes) // 100)
        return test(*arguments, **named)

    return counting


TESTS: dict[str, Any] = {name: _counted_test(test) for name, test in TESTS_OF_JINJA.items()}
FILTERS: dict[str, Callable[..., Any]] = {
    name: _counted(filter)
    for name, filter in {
        **{name: FILTERS_OF_JINJA[name] for name in _FROM_JINJA},
        "duration": duration,
        "since": since,
        "local": local,
        "json": to_json,
        "tojson": to_json,
        "join": join,
        "replace": replace,
        "round": rounded,
        "sum": total,
        "int": to_int,
        "string": as_text,
    }.items()
}

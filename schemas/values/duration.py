"""Durations as authors write them: `90s`, `1h30m`, `1w2d`, `PT10M`.

Guarantee: a duration is a text with units, and every accepted text has one meaning. Its parts are
whole numbers, from the largest unit to the smallest, each at most once; the total is at most 3660
days. `format_duration` returns the shortest such text, and parsing it returns the same duration.

Why a parser of our own: the common parsers disagree on `10:00` (ten hours or ten minutes), read a
bare `10` as seconds and `true` as one second. Months and years have no fixed length, so they are
rejected.

On failure: `InvalidInput`, which pydantic models report as an ordinary validation error.
"""

import re
from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from schemas.values.pydantic_check import pydantic_check
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import MICROSECOND

MAX_DURATION = timedelta(days=3660)

_MAX_CHARACTERS = 32
_UNITS = (("w", "weeks"), ("d", "days"), ("h", "hours"), ("m", "minutes"), ("s", "seconds"))
_PLAIN_PATTERN = (
    r"(?=[0-9])(?:(?P<weeks>[0-9]+)w)?(?:(?P<days>[0-9]+)d)?(?:(?P<hours>[0-9]+)h)?"
    r"(?:(?P<minutes>[0-9]+)m)?(?:(?P<seconds>[0-9]+)s)?(?:(?P<milliseconds>[0-9]+)ms)?"
)
_PLAIN = re.compile(_PLAIN_PATTERN)
_ISO = re.compile(
    r"P(?=.*[0-9])(?:(?P<weeks>[0-9]+)W)?(?:(?P<days>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+)S)?)?"
)
_EXAMPLES = "write a number with a unit, such as 90s, 10m, 1h30m, 2d or PT10M"


def parse_duration(text: object) -> timedelta:
    if isinstance(text, timedelta):
        return _within_limit(text, format_duration(text) if text >= timedelta(0) else str(text))
    if not isinstance(text, str):
        raise InvalidInput(f"{text!r} is not a duration: {_EXAMPLES}")
    if len(text) > _MAX_CHARACTERS:
        raise InvalidInput(f"the duration {text[:_MAX_CHARACTERS]!r}... is too long: {_EXAMPLES}")
    match = _PLAIN.fullmatch(text) or _ISO.fullmatch(text)
    if match is None:
        raise InvalidInput(f"{text!r} is not a duration: {_hint(text)}")
    amounts = {unit: int(number) for unit, number in match.groupdict().items() if number is not None}
    try:
        return _within_limit(timedelta(**amounts), text)
    except OverflowError:
        raise InvalidInput(f"the duration {text!r} is too long: the longest is 3660d") from None


def format_duration(duration: timedelta) -> str:
    """The canonical text. `InvalidInput` for a duration with parts below a millisecond."""
    microseconds = duration // MICROSECOND
    if microseconds < 0 or microseconds % 1000:
        raise InvalidInput(
            f"the duration {duration!r} cannot be written", remedy="use whole, positive milliseconds"
        )
    seconds, milliseconds = divmod(microseconds // 1000, 1000)
    text = ""
    for letter, unit in _UNITS:
        amount, seconds = divmod(seconds, int(timedelta(**{unit: 1}).total_seconds()))
        text += f"{amount}{letter}" if amount else ""
    text += f"{milliseconds}ms" if milliseconds else ""
    return text or "0s"


def _within_limit(duration: timedelta, text: str) -> timedelta:
    if duration < timedelta(0):
        raise InvalidInput(f"the duration {text!r} is negative: {_EXAMPLES}")
    if duration > MAX_DURATION:
        raise InvalidInput(f"the duration {text!r} is too long: the longest is 3660d")
    return duration


def _hint(text: str) -> str:
    bare = text.strip()
    if bare.isascii() and bare.isdigit():
        return f"a bare number has no unit, write {bare}s or {bare}m"
    if text.startswith("-"):
        return f"it cannot be negative, {_EXAMPLES}"
    if "{{" in text:
        return f"it is no template, {_EXAMPLES}"
    if ":" in text:
        return f"{text} could mean minutes or hours, {_EXAMPLES}"
    if re.search(r"[0-9](mo|y|M|Y)", text):
        return "months and years have no fixed length, write days (30d) or use a schedule with `rrule`"
    if "." in text:
        return f"fractions are not accepted, use a smaller unit, {_EXAMPLES}"
    if any(letter.isspace() for letter in text):
        return f"leave out the spaces, {_EXAMPLES}"
    return f"{_EXAMPLES} (units w, d, h, m, s, ms, in this order)"


DURATION_PATTERN = (
    r"^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$"
    r"|^P([0-9]+W)?([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?$"
)

Duration = Annotated[
    timedelta,
    BeforeValidator(pydantic_check(parse_duration)),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "maxLength": _MAX_CHARACTERS,
            "pattern": DURATION_PATTERN,
            "examples": ["90s", "10m", "1h30m", "2d", "PT10M"],
        }
    ),
]

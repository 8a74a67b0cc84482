"""Text forms of values in templates: texts are unchanged, everything else is JSON.

Guarantee: the same value gives the same text everywhere. Instants are UTC in ISO 8601 with `Z`,
durations are written as in rules (`1h30m`), whole numbers without `.0`, lists and mappings are JSON.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from jinja2 import Undefined

from rules.language.templates.budget import bounded_length, spend
from schemas.values.duration import format_duration
from schemas.values.plain_number import plain
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text


def as_text(value: object) -> str:
    if isinstance(value, str):
        return value  # unchanged: it may be marked as HTML
    value = as_json(value)
    return value if isinstance(value, str) else json_text(value)


def as_json(value: object) -> object:
    """The value as part of a JSON document."""
    if isinstance(value, Undefined):
        str(value)  # raises with the name of the missing value
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Iterator | range | tuple | list):
        return [as_json(item) for item in value]
    if isinstance(value, Mapping):
        return {as_text(key): as_json(item) for key, item in value.items()}
    if isinstance(value, str):
        return str(value)
    if value is None or isinstance(value, int | float):
        return plain(value)
    raise InvalidInput(f"a {type(value).__name__} cannot be written")


def json_text(value: object, indent: int | None = None) -> str:
    length, pieces = 0, []
    for piece in json.JSONEncoder(ensure_ascii=False, sort_keys=True, indent=indent).iterencode(value):
        length += len(piece)
        bounded_length(length)
        pieces.append(piece)
    spend(1 + length // 100)
    return "".join(pieces)


def duration_text(duration: timedelta) -> str:
    """The duration to the second."""
    if duration < timedelta(0):
        return f"-{duration_text(-duration)}"
    try:
        return format_duration(timedelta(seconds=round(duration.total_seconds())))
    except OverflowError:
        raise InvalidInput(f"the duration {duration} is too long") from None

"""Values that several handlers read: bounded texts and the end of a span of time."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import Field

from schemas.values.duration import parse_duration
from tocsin.core.errors import InvalidInput
from tocsin.core.id_prefix import IdPrefix

OptionalText = Annotated[str | None, Query(max_length=512)]
"""A filter: only rows that have this text."""
IdBeginning = Annotated[
    str | None, Query(max_length=64, description="Only this id, or ids that begin with four digits or more.")
]
Note = Annotated[str, Field(max_length=4000)]
Matcher = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2000,
        description="Condition over an alarm, in CEL.",
        examples=['labels.site == "ams"'],
    ),
]
MAX_SEQ = 2**63 - 1


def end_of(for_: str | None, until: datetime | None, now: datetime) -> datetime | None:
    """The instant that a duration or an instant means; None without both."""
    if for_ is not None and until is not None:
        raise InvalidInput("for and until exclude each other", remedy="keep one of them")
    if for_ is None:
        return until
    try:
        return now + parse_duration(for_)
    except OverflowError:
        raise InvalidInput(f"for {for_!r} is too long", remedy="give a year at most") from None


def id_bounds(text: str | None, noun: str, command: str) -> dict[str, uuid.UUID | None]:
    """`first` and `last` of the ids that begin with a text; None for all."""
    return {"first": None, "last": None} if text is None else {**IdPrefix(text, noun, command).bounds()}

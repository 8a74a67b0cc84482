"""The specification of a schedule, checked before it reaches the database.

Guarantee: a specification that `checked` returns can be stored and fired. Its payload is normalised
by JSON, so that putting the same schedule again compares equal.

On failure: `InvalidInput` names the value and the bound.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from pydantic import ValidationError

from schemas.documents.runbook.retry import RetryPolicy
from schemas.error_text import error_text
from schemas.values.event_types import check_schedule_type
from tocsin.core.errors import InvalidInput

CATCH_UPS = ("latest", "all", "none")
SOURCES = ("api", "rules")
LONGEST_NAME = 128
LONGEST_TEXT = 2_000
MOST_CATCH_UP = 10_000
LARGEST_PAYLOAD_BYTES = 229_376
RESERVED_OWNERS = "tocsin:"
"""The beginning of the owners of Tocsin's own schedules."""
_OWN_OWNERS = "tocsin:"
_TYPE = re.compile(r"[A-Za-z0-9_-]{1,128}")


@dataclass(frozen=True)
class ScheduleSpec:
    """The specification of a schedule.

    `recurrence` has keyword arguments of `timers.recurrence.parse`.
    """

    name: str
    recurrence: Mapping[str, Any]
    owner: str = ""
    spread: timedelta = timedelta(0)
    catch_up: str = "latest"
    window: timedelta | None = None
    grace: timedelta | None = None
    max_catch_up: int = 100
    type: str = "schedule-fired"
    payload: Mapping[str, Any] = field(default_factory=dict)
    action: str | None = None
    retry: Mapping[str, Any] | None = None
    """Keys of `schemas.documents.runbook.RetryPolicy`, for the steps of the action."""
    title: str | None = None
    description: str | None = None
    runbook_url: str | None = None
    enabled: bool = True
    source: str = "api"


def checked(spec: ScheduleSpec) -> ScheduleSpec:
    """The specification with its payload normalised by JSON.

    Raises `InvalidInput` if it is wrong.
    """
    _check_text("name", spec.name, shortest=1)
    _check_text("owner", spec.owner, shortest=0)
    if spec.owner.startswith(_OWN_OWNERS):
        raise InvalidInput(
            f"the owner {spec.owner!r} of schedule {spec.name!r} is reserved for schedules of tocsin itself",
            remedy=f"choose an owner that does not begin with {_OWN_OWNERS!r}",
        )
    refuse_reserved_owner(spec.owner)
    if spec.action is not None:
        _check_text("action", spec.action, shortest=1)
    of_schedule = f"of schedule {spec.name!r}"
    if not _TYPE.fullmatch(spec.type):
        raise InvalidInput(
            f"the type {spec.type!r} {of_schedule} is not 1 to 128 letters, digits, '_' or '-'"
        )
    check_schedule_type(spec.type)
    for key, value, allowed in (("catch_up", spec.catch_up, CATCH_UPS), ("source", spec.source, SOURCES)):
        if value not in allowed:
            raise InvalidInput(
                f"the {key} {value!r} {of_schedule} is unknown", remedy=f"use one of {', '.join(allowed)}"
            )
    if not 1 <= spec.max_catch_up <= MOST_CATCH_UP:
        raise InvalidInput(
            f"the max_catch_up {spec.max_catch_up} {of_schedule} is not between 1 and {MOST_CATCH_UP}"
        )
    for key, duration in (("spread", spec.spread), ("window", spec.window), ("grace", spec.grace)):
        if duration is not None and duration < timedelta(0):
            raise InvalidInput(
                f"the {key} {duration} {of_schedule} is negative", remedy="give a duration of 0s or more"
            )
    for key in ("title", "description", "runbook_url"):
        text = getattr(spec, key)
        if text is not None:
            _check_text(key, text, shortest=1, longest=LONGEST_TEXT)
    _check_retry(spec)
    return replace(spec, payload=_as_json(spec.payload, of_schedule))


def refuse_reserved_owner(owner: str) -> None:
    """Raise `InvalidInput` for an owner of Tocsin's own schedules, such as the ends of silences."""
    if owner.startswith(RESERVED_OWNERS):
        raise InvalidInput(
            f"the owner {owner!r} is reserved for schedules of tocsin itself",
            remedy=f"use an owner that does not begin with {RESERVED_OWNERS!r}; `tocsin silence expire` ends a silence",
        )


def _check_retry(spec: ScheduleSpec) -> None:
    if spec.retry is None:
        return
    try:
        RetryPolicy.model_validate(spec.retry)
    except ValidationError as error:
        raise InvalidInput(f"the retry of schedule {spec.name!r}: {error_text(error)}") from None
    if spec.action is None:
        raise InvalidInput(
            f"the retry of schedule {spec.name!r} has no effect without an action",
            remedy="name the action that it is for",
        )


def _check_text(key: str, text: str, *, shortest: int, longest: int = LONGEST_NAME) -> None:
    if not shortest <= len(text) <= longest:
        raise InvalidInput(
            f"the {key} {text[:150]!r} has {len(text)} characters",
            remedy=f"give it {shortest} to {longest}",
        )
    if "\0" in text or not _is_unicode(text):
        raise InvalidInput(f"the {key} {text!r} has a character that cannot be stored", remedy="remove it")


def _as_json(payload: Mapping[str, Any], of_schedule: str) -> dict[str, Any]:
    try:
        text = json.dumps(dict(payload), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"the payload {of_schedule} is not JSON ({error})", remedy="use texts, numbers, lists and maps"
        ) from None
    if not _is_unicode(text) or "\\u0000" in text:
        raise InvalidInput(
            f"the payload {of_schedule} has a character that cannot be stored", remedy="remove it"
        )
    if len(text.encode()) > LARGEST_PAYLOAD_BYTES:
        raise InvalidInput(
            f"the payload {of_schedule} has {len(text.encode())} bytes",
            remedy=f"give it at most {LARGEST_PAYLOAD_BYTES}",
        )
    as_json: dict[str, Any] = json.loads(text)
    return as_json


def _is_unicode(text: str) -> bool:
    """False for lone surrogates, which a UTF-8 database cannot store."""
    return not any("\ud800" <= character <= "\udfff" for character in text)

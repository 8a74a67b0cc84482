"""Adds or edits one schedule for an operator: the command line and the API do it here.

Guarantees: the same content again changes nothing. Other content under the same owner and name is
refused with the difference, unless the edit is asked for. A relative time ("in 10m", "tomorrow at
9am") counts as the same content if it gave the stored instant when the schedule was added or edited,
so a retry is safe. The values are validated as a `schedule` document, so that rule files, the command
line and the API accept the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from rules.apply.schedules import schedule_spec
from rules.documents.load import recurrence_of
from rules.documents.rule_book import known_names
from schemas.documents import ScheduleDocument
from schemas.error_text import fault_text
from schemas.values.duration import format_duration
from timers.natural_time import parse_time, parse_unix, parse_when
from timers.recurrence.once import parse_iso
from timers.schedule_spec import ScheduleSpec
from timers.schedules import PutResult, find_schedule, put_schedule
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput, Refused
from tocsin.core.instant import instant_text

Row = dict[str, Any]


@dataclass(frozen=True)
class ScheduleEdit:
    """Whether an existing schedule with other content may be changed, and at which generation."""

    allowed: bool = False
    if_generation: int | None = None
    remedy: str = "choose another name, or edit it with --replace or --if-generation {generation}"
    """What to do about a schedule with other content."""
    key_text: Callable[[str], str] = lambda key: key if key == "name" else f"--{key.replace('_', '-')}"
    """How the caller writes a key of a schedule."""


async def put_one_schedule(
    connection: Connection, values: Row, actor: Actor, edit: ScheduleEdit
) -> tuple[PutResult, Row]:
    """Add or edit a schedule; returns its row after that. Not inside of a transaction."""
    before = await find_schedule(connection, values["owner"], values["name"])
    spec = await _spec(connection, values, before, actor.now, edit)
    async with connection.transaction():  # a refusal rolls it back
        put = await put_schedule(connection, spec, actor, if_generation=edit.if_generation)
        row = await find_schedule(connection, spec.owner, spec.name)
        assert row is not None
        if put.outcome == "changed" and not edit.allowed:
            raise _conflict(put, before or row, row, edit)
        return put, row


async def _spec(
    connection: Connection, values: Row, before: Row | None, now: datetime, edit: ScheduleEdit
) -> ScheduleSpec:
    bounds = {key: _bound(values[key], values["tz"], now) for key in ("starts_at", "ends_at")}
    document = _document({**values, **bounds, "at": _absolute(values, before, now)}, edit)
    await _refuse_unknown_action(connection, document)
    # An edit of a paused schedule leaves it paused; only a resume resumes it.
    paused = before is not None and before["status"] == "paused"
    return replace(schedule_spec(document), source="api", enabled=not paused)


def _conflict(put: PutResult, before: Row, after: Row, edit: ScheduleEdit) -> Refused:
    differences = ", ".join(_difference(key, before[key], after[key]) for key in put.differences)
    state = f"is {before['status']}" if not differences else f"exists with other content ({differences})"
    return Refused(
        f"schedule {before['name']!r} {state}", remedy=edit.remedy.format(generation=before["generation"])
    )


def _difference(key: str, before: Any, after: Any) -> str:
    """`cron is 0 8 * * *, not 0 9 * * *`; of a recurrence only the parts that differ."""
    if key != "recurrence":
        return f"{key} is {_compact(before)}, not {_compact(after)}"
    return ", ".join(
        f"{part} is {_compact(before.get(part))}, not {_compact(after.get(part))}"
        for part in sorted({*before, *after})
        if before.get(part) != after.get(part)
    )


def _compact(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return format_duration(value) if isinstance(value, timedelta) else str(value)


def _absolute(values: Row, before: Row | None, now: datetime) -> str | None:
    """The value of `at` to store. An instant or a wall time stays as it is; a phrase becomes an instant."""
    text: str | None = values["at"]
    if text is None or parse_iso(text) is not None:
        return text
    unix = parse_unix(text)
    if unix is not None:
        return instant_text(unix)
    for earlier in (before["created_at"], before["updated_at"]) if before is not None else ():
        with suppress(InvalidInput):
            instant = instant_text(parse_when(text, now=earlier, tz=values["tz"]))
            if before is not None and before["recurrence"].get("at") == instant:
                return instant
    return instant_text(parse_when(text, now=now, tz=values["tz"]))


def _bound(text: str | None, tz: str, now: datetime) -> str | None:
    """A bound to store. ISO texts stay as they are; phrases and Unix timestamps become instants."""
    if text is None or parse_iso(text) is not None:
        return text
    return instant_text(parse_time(text, now=now, tz=tz))


def _document(values: Row, edit: ScheduleEdit) -> ScheduleDocument:
    try:
        document = ScheduleDocument.model_validate(values)
    except ValidationError as invalid:
        problems = (_problem_text(problem, edit) for problem in invalid.errors(include_url=False))
        raise InvalidInput("; ".join(problems)) from None
    recurrence_of(document, anchor=None, hash_id=document.name)
    return document


def _problem_text(problem: ErrorDetails, edit: ScheduleEdit) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    if not key:
        return f"the schedule {problem['msg'].removeprefix('Value error, ')}"
    return edit.key_text(key) + fault_text(problem)


async def _refuse_unknown_action(connection: Connection, document: ScheduleDocument) -> None:
    if document.action is None:
        return
    actions = (await known_names(connection)).get("action", frozenset())
    if document.action not in actions:
        listed = ", ".join(sorted(actions)[:20])
        remedy = f"use one of {listed}" if listed else "apply an action first, with `tocsin apply`"
        raise InvalidInput(f"no action {document.action!r} is applied", remedy=remedy)

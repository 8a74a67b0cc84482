"""`tocsin schedule add`: a schedule by (owner, name), idempotent.

Guarantee: adding the same content again changes nothing and answers with the row and `deduped: true`. Other
content under the same key is refused with the difference, unless `--replace` or `--if-generation` asks for
the edit. A relative time (`--in 10m`, `--at "tomorrow at 9am"`) is the same content if it gave the same
instant when the schedule was made, so that a retry is a retry.

Why validated as a document: the command line and the rules files must not disagree on what a schedule may
be.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import finish
from tocsin.cli.options import CreatedBy, IfGeneration, Json, Owner, Tz, current_user
from tocsin.cli.output import compact
from tocsin.core.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from datetime import datetime

    from schemas.documents import ScheduleDocument
    from timers.schedule_spec import ScheduleSpec
    from timers.schedules import Put
    from tocsin.core.db import Connection

Row = dict[str, Any]


def add(  # noqa: PLR0913 - one option per key of a schedule
    name: Annotated[str, typer.Argument(help="Name, unique within its owner.")],
    at: Annotated[str | None, typer.Option("--at", help="One fire: instant, wall time or phrase.")] = None,
    in_: Annotated[str | None, typer.Option("--in", help="One fire, this long from now: 10m, 2d.")] = None,
    every: Annotated[str | None, typer.Option("--every", help="Interval such as 90s or 1h30m.")] = None,
    cron: Annotated[str | None, typer.Option("--cron", help="Five fields, or @daily and friends.")] = None,
    rrule: Annotated[str | None, typer.Option("--rrule", help="RFC 5545, without DTSTART.")] = None,
    dtstart: Annotated[str | None, typer.Option("--dtstart", help="First wall time of an rrule.")] = None,
    tz: Tz = "UTC",
    owner: Owner = "",
    payload: Annotated[str, typer.Option("--payload", help="JSON object that each event carries.")] = "{}",
    type_: Annotated[str, typer.Option("--type", help="Type of the event.")] = "schedule-fired",
    action: Annotated[str | None, typer.Option("--action", help="Action to run at each fire.")] = None,
    spread: Annotated[str | None, typer.Option("--spread", help="Stable delay below this.")] = None,
    catch_up: Annotated[str, typer.Option("--catch-up", help="latest, all or none.")] = "latest",
    window: Annotated[str | None, typer.Option("--window", help="Older missed times stay missed.")] = None,
    grace: Annotated[str | None, typer.Option("--grace", help="A fire up to this late is on time.")] = None,
    max_catch_up: Annotated[int, typer.Option("--max-catch-up", help="Most fires of --catch-up all.")] = 100,
    dst_gap: Annotated[str, typer.Option("--dst-gap", help="forward or skip.")] = "forward",
    dst_fold: Annotated[str, typer.Option("--dst-fold", help="first, second or both.")] = "first",
    starts_at: Annotated[str | None, typer.Option("--starts-at", help="Nothing fires before.")] = None,
    ends_at: Annotated[str | None, typer.Option("--ends-at", help="Nothing fires after.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Edit it if it has other content.")] = False,
    if_generation: IfGeneration = None,
    created_by: CreatedBy = None,
    as_json: Json = False,
) -> None:
    """Add a schedule; adding the same one again changes nothing.

    \b
    Example:
      tocsin schedule add invoice-42 --in 30m --owner billing --payload '{"invoice": 42}'
    """
    from tocsin.cli.schedules.one_schedule import print_schedule

    values: Row = {
        **{"name": name, "at": at, "every": every, "cron": cron, "rrule": rrule, "dtstart": dtstart},
        **{"tz": tz, "owner": owner, "payload": _payload(payload), "type": type_, "action": action},
        **{"spread": spread, "catch_up": catch_up, "window": window, "grace": grace},
        **{"max_catch_up": max_catch_up, "dst_gap": dst_gap, "dst_fold": dst_fold},
        **{"starts_at": starts_at, "ends_at": ends_at},
    }
    if in_ is not None and at is not None:
        raise InvalidInput("both --at and --in are given", remedy="keep one of them")
    if in_ is not None:
        values["at"] = f"in {in_}"
    edit = Edit(replace or if_generation is not None, if_generation)
    put, row = finish(_add(values, edit, created_by or current_user()))
    print_schedule(row, as_json, deduped=put.outcome == "unchanged", outcome=put.outcome)


class Edit:
    """Whether an existing schedule with other content may be changed, and at which generation."""

    def __init__(self, allowed: bool, if_generation: int | None) -> None:
        self.allowed = allowed
        self.if_generation = if_generation


async def _add(values: Row, edit: Edit, who: str) -> tuple[Put, Row]:
    from timers.schedules import find_schedule, put_schedule
    from timers.working_set import database_now
    from tocsin.cli.session import database
    from tocsin.core.audit import Actor
    from tocsin.core.db import retrying

    async with database() as connection:

        async def once() -> tuple[Put, Row]:
            now = await database_now(connection)
            before = await find_schedule(connection, values["owner"], values["name"])
            spec = await _spec(connection, values, before, now)
            async with connection.transaction():  # a refusal rolls it back
                put = await put_schedule(
                    connection, spec, Actor(who, "cli", now), if_generation=edit.if_generation
                )
                row = await find_schedule(connection, spec.owner, spec.name)
                assert row is not None
                if put.outcome == "changed" and not edit.allowed:
                    raise _conflict(put, before or row, row)
                return put, row

        return await retrying(once)


async def _spec(connection: Connection, values: Row, before: Row | None, now: datetime) -> ScheduleSpec:
    """What is asked for, checked. Before the transaction: on a busy machine loading what checks it takes longer than a
    session may idle inside of one."""
    from dataclasses import replace

    from rules.apply.schedules import schedule_spec

    document = _document({**values, "at": _absolute(values, before, now)})
    await _refuse_unknown_action(connection, document)
    # An edit of a paused schedule leaves it paused: resuming is an act of its own.
    paused = before is not None and before["status"] == "paused"
    return replace(schedule_spec(document), source="api", enabled=not paused)


def _conflict(put: Put, before: Row, after: Row) -> Refused:
    differences = ", ".join(_difference(key, before[key], after[key]) for key in put.differences)
    state = f"is {before['status']}" if not differences else f"exists with other content ({differences})"
    return Refused(
        f"schedule {before['name']!r} {state}",
        remedy=f"choose another name, or edit it with --replace or --if-generation {before['generation']}",
    )


def _difference(key: str, before: Any, after: Any) -> str:
    """Of a recurrence, only the parts that differ."""
    if key != "recurrence":
        return f"{key} is {compact(before)}, not {compact(after)}"
    return ", ".join(
        f"{part} is {compact(before.get(part))}, not {compact(after.get(part))}"
        for part in sorted({*before, *after})
        if before.get(part) != after.get(part)
    )


def _absolute(values: Row, before: Row | None, now: datetime) -> str | None:
    """`at` as it is stored: what is an instant or a wall time already stays; a phrase is resolved, once."""
    from timers.natural_time import parse_when
    from timers.recurrence.once import parse_iso
    from tocsin.core.instant import instant_text

    text: str | None = values["at"]
    if text is None or parse_iso(text) is not None:
        return text
    for earlier in (before["created_at"], before["updated_at"]) if before is not None else ():
        with suppress(InvalidInput):
            meant = instant_text(parse_when(text, now=earlier, tz=values["tz"]))
            if before is not None and before["recurrence"].get("at") == meant:
                return meant
    return instant_text(parse_when(text, now=now, tz=values["tz"]))


def _payload(text: str) -> dict[str, Any]:
    try:
        payload = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"--payload {text[:80]!r} is not JSON ({error}): write '{{\"key\": 1}}'") from None
    if not isinstance(payload, dict):
        raise InvalidInput(f"--payload {text[:80]!r} is not a JSON object: write '{{\"key\": 1}}'")
    return payload


def _document(values: Row) -> ScheduleDocument:
    from pydantic import ValidationError

    from rules.documents.load import recurrence_of
    from schemas.documents import ScheduleDocument

    try:
        document = ScheduleDocument.model_validate(values)
    except ValidationError as invalid:
        raise InvalidInput("; ".join(_problem(one) for one in invalid.errors(include_url=False))) from None
    recurrence_of(document, anchor=None, hash_id=document.name)
    return document


def _problem(problem: Any) -> str:
    from schemas.error_text import fault_text

    place = ".".join(str(part) for part in problem["loc"])
    if not place:
        return f"the schedule {problem['msg'].removeprefix('Value error, ')}"
    return (place if place == "name" else f"--{place.replace('_', '-')}") + fault_text(problem)


async def _refuse_unknown_action(connection: Connection, document: ScheduleDocument) -> None:
    from rules.documents.rule_book import known_names

    if document.action is None:
        return
    known = (await known_names(connection)).get("action", frozenset())
    if document.action not in known:
        listed = ", ".join(sorted(known)[:20]) or "none is applied yet"
        raise InvalidInput(
            f"unknown action {document.action!r}", remedy=f"use one that is applied ({listed})"
        )

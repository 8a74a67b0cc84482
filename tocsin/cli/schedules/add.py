"""`tocsin schedule add`: adds a schedule, idempotent by owner and name.

Guarantees: adding the same content again changes nothing and returns the schedule with `deduped:
true`. Other content under the same owner and name is rejected with the difference, unless
`--replace` or `--if-generation` asks for the edit. A relative time (`--in 10m`, `--at "tomorrow at
9am"`) counts as the same content if it gave the stored instant when the schedule was added or
edited, so a retry is safe.

The options are validated as a `schedule` document, so that rule files and the command line accept
the same.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.errors import run_command
from tocsin.cli.options import CreatedBy, IfGeneration, Json, Owner, Tz, current_user, json_object
from tocsin.cli.output import compact
from tocsin.cli.schedules.recurrence_options import Cron, DstFold, DstGap, Dtstart, Every, Rrule
from tocsin.core.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from datetime import datetime

    from schemas.documents import ScheduleDocument
    from timers.schedule_spec import ScheduleSpec
    from timers.schedules import PutResult
    from tocsin.core.db import Connection

Row = dict[str, Any]


At = Annotated[
    str | None,
    typer.Option("--at", help="Fire once, at an instant, a wall time, a Unix timestamp or a phrase."),
]
In = Annotated[str | None, typer.Option("--in", help="Fire once, after a duration such as 10m or 2d.")]
Spread = Annotated[
    str | None, typer.Option("--spread", help="Delay each fire by a part of this duration, always the same.")
]
CatchUp = Annotated[
    str, typer.Option("--catch-up", help="Fire the latest, all or none of the times that an outage missed.")
]
Window = Annotated[str | None, typer.Option("--window", help="Catch up with times at most this old.")]
Grace = Annotated[str | None, typer.Option("--grace", help="Fires at most this late count as on time.")]
MaxCatchUp = Annotated[int, typer.Option("--max-catch-up", help="Largest number of fires of --catch-up all.")]
Retry = Annotated[
    str | None,
    typer.Option("--retry", help="Retry policy of its action, such as '{\"attempts\": 3}'."),
]
Replace = Annotated[bool, typer.Option("--replace", help="Edit the schedule if it has other content.")]


def add(  # noqa: PLR0913 - one option per key of a schedule
    name: Annotated[str, typer.Argument(help="Name, unique within its owner.")],
    at: At = None,
    in_: In = None,
    every: Every = None,
    cron: Cron = None,
    rrule: Rrule = None,
    dtstart: Dtstart = None,
    tz: Tz = "UTC",
    owner: Owner = "",
    payload: Annotated[str, typer.Option("--payload", help="JSON object for the events.")] = "{}",
    type_: Annotated[str, typer.Option("--type", help="Type of the events.")] = "schedule-fired",
    action: Annotated[str | None, typer.Option("--action", help="Action to run at each fire.")] = None,
    spread: Spread = None,
    catch_up: CatchUp = "latest",
    window: Window = None,
    grace: Grace = None,
    max_catch_up: MaxCatchUp = 100,
    dst_gap: DstGap = "forward",
    dst_fold: DstFold = "first",
    starts_at: Annotated[str | None, typer.Option("--starts-at", help="First instant for a fire.")] = None,
    ends_at: Annotated[str | None, typer.Option("--ends-at", help="Last instant for a fire.")] = None,
    retry: Retry = None,
    title: Annotated[str | None, typer.Option("--title", help="Name for people.")] = None,
    description: Annotated[str | None, typer.Option("--description", help="Note for readers.")] = None,
    runbook_url: Annotated[
        str | None, typer.Option("--runbook-url", help="Where people read what to do.")
    ] = None,
    replace: Replace = False,
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
        **{"tz": tz, "owner": owner, "type": type_, "action": action},
        "payload": json_object(payload, "--payload"),
        **{"spread": spread, "catch_up": catch_up, "window": window, "grace": grace},
        **{"max_catch_up": max_catch_up, "dst_gap": dst_gap, "dst_fold": dst_fold},
        **{"starts_at": starts_at, "ends_at": ends_at},
        "retry": None if retry is None else json_object(retry, "--retry"),
        **{"title": title, "description": description, "runbook_url": runbook_url},
    }
    if in_ is not None and at is not None:
        raise InvalidInput("--at and --in exclude each other", remedy="keep one of them")
    if in_ is not None:
        values["at"] = f"in {in_}"
    edit = Edit(replace or if_generation is not None, if_generation)
    put, row = run_command(_add(values, edit, created_by or current_user()))
    print_schedule(row, as_json, deduped=put.outcome == "unchanged", outcome=put.outcome)


class Edit:
    """Whether an existing schedule with other content may be changed, and at which generation."""

    def __init__(self, allowed: bool, if_generation: int | None) -> None:
        self.allowed = allowed
        self.if_generation = if_generation


async def _add(values: Row, edit: Edit, who: str) -> tuple[PutResult, Row]:
    from timers.schedules import find_schedule, put_schedule
    from tocsin.cli.session import command_actor, database
    from tocsin.core.db import retrying

    async with database() as connection:

        async def once() -> tuple[PutResult, Row]:
            actor = await command_actor(connection, who)
            before = await find_schedule(connection, values["owner"], values["name"])
            spec = await _spec(connection, values, before, actor.now)
            async with connection.transaction():  # a refusal rolls it back
                put = await put_schedule(connection, spec, actor, if_generation=edit.if_generation)
                row = await find_schedule(connection, spec.owner, spec.name)
                assert row is not None
                if put.outcome == "changed" and not edit.allowed:
                    raise _conflict(put, before or row, row)
                return put, row

        return await retrying(once)


async def _spec(connection: Connection, values: Row, before: Row | None, now: datetime) -> ScheduleSpec:
    """The validated schedule. Called before the transaction: on a busy machine, importing the validation
    takes longer than a session may idle inside a transaction."""
    from dataclasses import replace

    from rules.apply.schedules import schedule_spec

    bounds = {key: _bound(values[key], values["tz"], now) for key in ("starts_at", "ends_at")}
    document = _document({**values, **bounds, "at": _absolute(values, before, now)})
    await _refuse_unknown_action(connection, document)
    # An edit of a paused schedule leaves it paused; only `tocsin schedule resume` resumes it.
    paused = before is not None and before["status"] == "paused"
    return replace(schedule_spec(document), source="api", enabled=not paused)


def _conflict(put: PutResult, before: Row, after: Row) -> Refused:
    differences = ", ".join(_difference(key, before[key], after[key]) for key in put.differences)
    state = f"is {before['status']}" if not differences else f"exists with other content ({differences})"
    return Refused(
        f"schedule {before['name']!r} {state}",
        remedy=f"choose another name, or edit it with --replace or --if-generation {before['generation']}",
    )


def _difference(key: str, before: Any, after: Any) -> str:
    """`cron is 0 8 * * *, not 0 9 * * *`; of a recurrence only the parts that differ."""
    if key != "recurrence":
        return f"{key} is {compact(before)}, not {compact(after)}"
    return ", ".join(
        f"{part} is {compact(before.get(part))}, not {compact(after.get(part))}"
        for part in sorted({*before, *after})
        if before.get(part) != after.get(part)
    )


def _absolute(values: Row, before: Row | None, now: datetime) -> str | None:
    """The value of `at` to store. An instant or a wall time stays as it is; a phrase becomes an instant."""
    from timers.natural_time import parse_unix, parse_when
    from timers.recurrence.once import parse_iso
    from tocsin.core.instant import instant_text

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
    from timers.natural_time import parse_time
    from timers.recurrence.once import parse_iso
    from tocsin.core.instant import instant_text

    if text is None or parse_iso(text) is not None:
        return text
    return instant_text(parse_time(text, now=now, tz=tz))


def _document(values: Row) -> ScheduleDocument:
    from pydantic import ValidationError

    from rules.documents.load import recurrence_of
    from schemas.documents import ScheduleDocument

    try:
        document = ScheduleDocument.model_validate(values)
    except ValidationError as invalid:
        raise InvalidInput("; ".join(map(_problem_text, invalid.errors(include_url=False)))) from None
    recurrence_of(document, anchor=None, hash_id=document.name)
    return document


def _problem_text(problem: Any) -> str:
    from schemas.error_text import fault_text

    key = ".".join(str(part) for part in problem["loc"])
    if not key:
        return f"the schedule {problem['msg'].removeprefix('Value error, ')}"
    return (key if key == "name" else f"--{key.replace('_', '-')}") + fault_text(problem)


async def _refuse_unknown_action(connection: Connection, document: ScheduleDocument) -> None:
    from rules.documents.rule_book import known_names

    if document.action is None:
        return
    actions = (await known_names(connection)).get("action", frozenset())
    if document.action not in actions:
        listed = ", ".join(sorted(actions)[:20])
        remedy = f"use one of {listed}" if listed else "apply an action first, with `tocsin apply`"
        raise InvalidInput(f"no action {document.action!r} is applied", remedy=remedy)

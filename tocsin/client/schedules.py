"""Schedules of services: created, moved, replaced, cancelled, looked up.

The SQL functions are the contract; this is a thin layer over them. `schedule_recurring` is not: SQL
cannot compute calendar times, so it writes the rows as `timers.schedules` does.

Guarantees: instants are aware on the way in and UTC on the way out, whatever the timezone of the
session. The row factory of the connection does not matter. Other content under the same key raises
`Refused` with the difference.

On failure: inside a transaction, a savepoint undoes the rejected call, and the caller's work is
kept.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_field
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from schemas.documents.runbook.retry import RetryPolicy
from schemas.values.duration import format_duration
from timers import schedules
from timers.natural_time import from_unix, parse_time
from timers.schedule_spec import ScheduleSpec, checked
from timers.working_set import database_now as schedules_now
from tocsin.client._call import call_function, rolled_back_on_error
from tocsin.core.audit import Actor
from tocsin.core.db import Connection, statement
from tocsin.core.errors import InvalidInput, Refused
from tocsin.core.instant import check_aware
from tocsin.core.sql_errors import OTHER_CONTENT, readable

Time = datetime | str | int | float
"""An aware datetime, a Unix timestamp in seconds, an ISO text or a phrase."""
_LONGEST_SHOWN = 500


@dataclass(frozen=True)
class Scheduled:
    """The result of `schedule_once`. `fire_at` is None once it has fired or was cancelled."""

    id: uuid.UUID
    status: str
    generation: int
    fire_at: datetime | None
    deduped: bool


@dataclass(frozen=True)
class Schedule:
    """A stored schedule. `next_at` is the next nominal time, `fire_at` the same plus the spread."""

    id: uuid.UUID
    owner: str
    name: str
    status: str
    """active, paused, fired, ended, cancelled or failed"""
    generation: int
    recurrence: Mapping[str, Any]
    type: str
    payload: Mapping[str, Any]
    action: str | None
    retry: Mapping[str, Any] | None
    title: str | None
    description: str | None
    runbook_url: str | None
    next_at: datetime | None
    fire_at: datetime | None
    last_occurrence: datetime | None
    created_by: str
    created_at: datetime


async def schedule_once(  # noqa: PLR0913 - one argument per key of a schedule
    connection: Connection,
    *,
    owner: str,
    name: str,
    at: Time,
    tz: str = "UTC",
    payload: Mapping[str, Any] | None = None,
    type: str = "schedule-fired",
    action: str | None = None,
    retry: Mapping[str, Any] | None = None,
    title: str | None = None,
    description: str | None = None,
    runbook_url: str | None = None,
    replace: bool = False,
    if_generation: int | None = None,
    created_by: str | None = None,
) -> Scheduled:
    """Schedule one fire at an instant. An instant in the past is due at once.

    `at` is an aware datetime, a Unix timestamp in seconds, an ISO text, or a phrase such as
    "tomorrow at 9am"; texts are read in `tz`.

    The same call again changes nothing and returns `deduped=True`. Other content is `Refused`, unless
    `replace` or `if_generation` asks for the edit. With these, a schedule that has fired or was
    cancelled is armed again; its time must lie after its last fire.
    """
    spec = _checked(
        ScheduleSpec(
            name,
            {},
            owner,
            type=type,
            payload=payload or {},
            action=action,
            retry=retry,
            title=title,
            description=description,
            runbook_url=runbook_url,
        )
    )
    parameters = {
        "owner": owner,
        "name": name,
        "at": await _instant(connection, at, tz),
        "payload": Jsonb(spec.payload),
        "type": type,
        "action": action,
        "retry": None if spec.retry is None else Jsonb(spec.retry),
        "title": title,
        "description": description,
        "runbook_url": runbook_url,
        "replace": replace,
        "if_generation": if_generation,
        "who": created_by,
    }
    return await _put(connection, statement("tocsin.client/schedule_once"), parameters, spec)


async def schedule_move(
    connection: Connection,
    *,
    owner: str,
    name: str,
    at: Time,
    tz: str = "UTC",
    if_generation: int | None = None,
    moved_by: str | None = None,
) -> Scheduled:
    """Move a pending single fire to another time, and keep the rest.

    `Refused` if there is no such schedule, if it has ended, or if it is recurring.
    """
    parameters = {
        "owner": owner,
        "name": name,
        "at": await _instant(connection, at, tz),
        "if_generation": if_generation,
        "who": moved_by,
    }
    return await _put(connection, statement("tocsin.client/schedule_move"), parameters)


async def schedule_recurring(  # noqa: PLR0913 - one argument per key of a schedule
    connection: Connection,
    *,
    owner: str,
    name: str,
    cron: str | None = None,
    rrule: str | None = None,
    every: str | timedelta | None = None,
    tz: str = "UTC",
    dtstart: str | None = None,
    exdates: Sequence[str] = (),
    starts_at: Time | None = None,
    ends_at: Time | None = None,
    spread: timedelta = timedelta(0),
    catch_up: str = "latest",
    payload: Mapping[str, Any] | None = None,
    type: str = "schedule-fired",
    action: str | None = None,
    retry: Mapping[str, Any] | None = None,
    title: str | None = None,
    description: str | None = None,
    runbook_url: str | None = None,
    replace: bool = False,
    if_generation: int | None = None,
    created_by: str | None = None,
) -> Scheduled:
    """Schedule a recurrence in the transaction of the caller: one of `cron`, `rrule` and `every`.

    The keys mean what they mean in a `schedule` document. Idempotent by owner and name, with
    `replace` and `if_generation` as in `schedule_once`. A `replace` of a paused schedule resumes it.
    """
    if sum(key is not None for key in (cron, rrule, every)) != 1:
        raise InvalidInput("a recurring schedule needs one of cron, rrule and every", remedy="give one")
    interval = format_duration(every) if isinstance(every, timedelta) else every
    arguments = {
        **{"cron": cron, "rrule": rrule, "every": interval, "tz": tz},
        **{"dtstart": dtstart, "exdates": tuple(exdates)},
        "starts_at": None if starts_at is None else await _instant(connection, starts_at, tz),
        "ends_at": None if ends_at is None else await _instant(connection, ends_at, tz),
    }
    spec = _checked(
        ScheduleSpec(
            name,
            {key: value for key, value in arguments.items() if value},
            owner,
            spread=spread,
            catch_up=catch_up,
            type=type,
            payload=payload or {},
            action=action,
            retry=retry,
            title=title,
            description=description,
            runbook_url=runbook_url,
        )
    )
    return await _put_recurring(connection, spec, replace, if_generation, created_by)


async def _put_recurring(
    connection: Connection, spec: ScheduleSpec, replace: bool, if_generation: int | None, who: str | None
) -> Scheduled:
    # Reading the time begins the transaction of a connection that is not in autocommit mode, so that
    # the commit stays the decision of the caller.
    now = await schedules_now(connection)
    parameters = {"name": spec.name, "payload": Jsonb(spec.payload), "action": spec.action}
    await call_function(connection, statement("tocsin.client/check_schedule"), parameters)
    actor = Actor(who or await _session_user(connection), "client", now)
    async with connection.transaction():
        put = await schedules.put_schedule(connection, spec, actor, if_generation=if_generation)
        row = await schedules.find_schedule(connection, spec.owner, spec.name)
        assert row is not None
        if put.outcome == "changed" and not replace and if_generation is None:
            what = ", ".join(put.differences)
            raise Refused(
                f"schedule {spec.name!r} of owner {spec.owner!r} "
                + (f"exists with other content ({what})" if what else "has ended or is paused"),
                remedy="schedule it with replace=True, or use another name",
            )
    is_same = put.outcome == "unchanged"
    return Scheduled(row["id"], row["status"], row["generation"], _utc(row["fire_at"]), is_same)


async def schedule_cancel(
    connection: Connection,
    *,
    owner: str = "",
    name: str | None = None,
    id: uuid.UUID | None = None,
    if_generation: int | None = None,
    cancelled_by: str | None = None,
) -> bool:
    """Cancel a schedule by owner and name, or by its id; False if there is none or it has finished.

    Waits for a fire in progress, which wins. With `if_generation`, `Refused` if it was edited since.
    """
    if (name is None) == (id is None) or (id is not None and if_generation is not None):
        raise InvalidInput(
            "a schedule is cancelled by owner and name, or by its id", remedy="give one of them"
        )
    if id is not None:
        by_id = {"id": id, "who": cancelled_by}
        return bool(await call_function(connection, statement("tocsin.client/schedule_cancel_id"), by_id))
    parameters = {"owner": owner, "name": name, "who": cancelled_by, "if_generation": if_generation}
    try:
        return bool(await call_function(connection, statement("tocsin.client/schedule_cancel"), parameters))
    except psycopg.Error as error:
        if error.sqlstate == OTHER_CONTENT:
            raise Refused(str(error.diag.message_primary)) from None
        raise


async def schedule_cancel_all(
    connection: Connection,
    *,
    owner: str | None = None,
    type: str | None = None,
    cancelled_by: str | None = None,
) -> int:
    """Cancel all schedules of an owner, of a type, or of both. Returns how many there were."""
    if owner is None and type is None:
        raise InvalidInput("neither owner nor type is given", remedy="name whose schedules to cancel")
    parameters = {"owner": owner, "type": type, "who": cancelled_by}
    return int(await call_function(connection, statement("tocsin.client/schedule_cancel_all"), parameters))


async def get_schedule(connection: Connection, owner: str, name: str) -> Schedule | None:
    row = await schedules.find_schedule(connection, owner, name)
    return None if row is None else _schedule(row)


async def list_schedules(
    connection: Connection,
    *,
    owner: str | None = None,
    type: str | None = None,
    status: str | None = None,
    limit: int = 1000,
) -> list[Schedule]:
    """Schedules, ordered by their next fire."""
    rows = await schedules.list_schedules(connection, owner=owner, type=type, status=status, limit=limit)
    return [_schedule(row) for row in rows]


def _schedule(row: Mapping[str, Any]) -> Schedule:
    same = (
        *("id", "owner", "name", "status", "generation", "recurrence", "type", "payload", "action"),
        *("retry", "title", "description", "runbook_url"),
    )
    return Schedule(
        **{key: row[key] for key in same},
        next_at=_utc(row["nominal_at"]),
        fire_at=_utc(row["fire_at"]),
        last_occurrence=_utc(row["last_occurrence"]),
        created_by=row["created_by"],
        created_at=row["created_at"].astimezone(UTC),
    )


async def _put(
    connection: Connection, query: bytes, parameters: Mapping[str, Any], spec: ScheduleSpec | None = None
) -> Scheduled:
    try:
        async with rolled_back_on_error(connection), connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, parameters)
            row = await cursor.fetchone()
    except psycopg.Error as error:
        if error.sqlstate == OTHER_CONTENT:
            raise await _other_content(connection, spec, error) from None
        raise readable(error) from None
    assert row is not None
    return Scheduled(**{**row, "fire_at": _utc(row["fire_at"])})


async def _instant(connection: Connection, at: Time, tz: str) -> datetime:
    if isinstance(at, datetime):
        check_aware(at, "at")
        return at
    if isinstance(at, str):
        return parse_time(at, now=await schedules_now(connection), tz=tz)
    return from_unix(at)


async def _session_user(connection: Connection) -> str:
    return str(await call_function(connection, statement("tocsin.client/read_user"), {}))


def _checked(spec: ScheduleSpec) -> ScheduleSpec:
    spec = checked(spec)
    if spec.retry is None:
        return spec
    policy = RetryPolicy.model_validate(spec.retry)
    return replace_field(spec, retry=policy.model_dump(mode="json", exclude_defaults=True))


def _utc(instant: datetime | None) -> datetime | None:
    return None if instant is None else instant.astimezone(UTC)


async def _other_content(connection: Connection, spec: ScheduleSpec | None, error: psycopg.Error) -> Refused:
    """The message of the SQL function, completed by the two payloads."""
    message = str(error.diag.message_primary).replace("replace => true", "replace=True")
    if spec is None:
        return Refused(message)
    row = await schedules.find_schedule(connection, spec.owner, spec.name)
    if row is not None and row["payload"] != spec.payload:
        message = message.replace(
            "the payload differs", f"payload is {_shown(row['payload'])}, not {_shown(spec.payload)}", 1
        )
    return Refused(message)


def _shown(payload: object) -> str:
    text = json.dumps(payload, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."

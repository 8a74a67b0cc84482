"""Schedules of services: created once, cancelled, looked up.

The SQL functions are the contract; this is a thin layer over them.

Guarantees: instants are aware on the way in and UTC on the way out, whatever the timezone of the
session. The row factory of the connection does not matter. Other content under the same key raises
`Refused` with the difference.

On failure: inside a transaction, a savepoint undoes the rejected call, and the caller's work is
kept.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from timers import schedules
from timers.schedule_spec import ScheduleSpec, checked
from tocsin.client._call import call_function, rolled_back_on_error
from tocsin.core.db import Connection, statement
from tocsin.core.errors import InvalidInput, Refused
from tocsin.core.instant import check_aware
from tocsin.core.sql_errors import OTHER_CONTENT, readable

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
    next_at: datetime | None
    fire_at: datetime | None
    last_occurrence: datetime | None
    created_by: str
    created_at: datetime


async def schedule_once(
    connection: Connection,
    *,
    owner: str,
    name: str,
    at: datetime,
    payload: Mapping[str, Any] | None = None,
    type: str = "schedule-fired",
    action: str | None = None,
    created_by: str | None = None,
) -> Scheduled:
    """Schedule one fire at an instant. An instant in the past is due at once.

    The same call again changes nothing and returns `deduped=True`.
    """
    check_aware(at, "at")
    spec = checked(ScheduleSpec(name, {}, owner, type=type, payload=payload or {}, action=action))
    parameters = {
        "owner": owner,
        "name": name,
        "at": at,
        "payload": Jsonb(spec.payload),
        "type": type,
        "action": action,
        "who": created_by,
    }
    try:
        async with rolled_back_on_error(connection), connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(statement("tocsin.client/schedule_once"), parameters)
            row = await cursor.fetchone()
    except psycopg.Error as error:
        if error.sqlstate == OTHER_CONTENT:
            raise await _other_content(connection, spec, error) from None
        raise readable(error) from None
    assert row is not None
    return Scheduled(**{**row, "fire_at": _utc(row["fire_at"])})


async def schedule_cancel(
    connection: Connection, *, owner: str, name: str, cancelled_by: str | None = None
) -> bool:
    """Cancel a schedule; False if there is none or it has finished.

    Waits for a fire in progress, which wins.
    """
    parameters = {"owner": owner, "name": name, "who": cancelled_by}
    return bool(await call_function(connection, statement("tocsin.client/schedule_cancel"), parameters))


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
    same = ("id", "owner", "name", "status", "generation", "recurrence", "type", "payload", "action")
    return Schedule(
        **{key: row[key] for key in same},
        next_at=_utc(row["nominal_at"]),
        fire_at=_utc(row["fire_at"]),
        last_occurrence=_utc(row["last_occurrence"]),
        created_by=row["created_by"],
        created_at=row["created_at"].astimezone(UTC),
    )


def _utc(instant: datetime | None) -> datetime | None:
    return None if instant is None else instant.astimezone(UTC)


async def _other_content(connection: Connection, spec: ScheduleSpec, error: psycopg.Error) -> Refused:
    """The message of the SQL function, completed by the two payloads."""
    message = str(error.diag.message_primary)
    row = await schedules.find_schedule(connection, spec.owner, spec.name)
    if row is not None and row["payload"] != spec.payload:
        message = message.replace(
            "the payload differs", f"payload is {_shown(row['payload'])}, not {_shown(spec.payload)}", 1
        )
    return Refused(message)


def _shown(payload: object) -> str:
    text = json.dumps(payload, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."

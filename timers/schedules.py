"""Schedules: added, edited, paused, resumed and cancelled, each with its tick in one transaction.

Guarantees: an active schedule has exactly one tick, any other has none. Every change creates a new
generation and never fires retroactively: the next occurrence lies after `now` and after every
occurrence that is done. Putting the same content again changes nothing. Every change has an audit
row with its actor. Edits of one schedule take turns at its rows, and the tick is locked before the
schedule, as the clock does.

An edit is computed from the rows as they were before it locks the tick. A fire that commits in
between changes the tick (`last_nominal_at`) or the status of the schedule. The edit then finds the
difference and starts again from the new rows.

On failure: `Refused` names the status that forbids the change, or the actor of a concurrent change.
Nothing is written then.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from timers.identity import spread_of
from timers.recurrence import Recurrence, parse_spec
from timers.schedule_spec import ScheduleSpec, checked, refuse_reserved_owner
from timers.schedule_times import NOTHING_DONE, Done, Row, done_of, next_occurrence, recurrence_of_spec
from timers.tz_version import refuse_older_tz_data
from tocsin.core.audit import Actor, record_audit
from tocsin.core.db import Connection, fetch_dict, fetch_dicts, fetch_one, statement
from tocsin.core.errors import Conflict, NotFound, Refused
from tocsin.core.instant import utc_text

FINISHED = ("fired", "ended", "cancelled", "failed")
# How often an edit is started again because a fire committed in between.
_ATTEMPTS = 20
_CONTENT = (
    "recurrence",
    "spread",
    "catch_up",
    "window",
    "grace",
    "max_catch_up",
    "type",
    "payload",
    "action",
    "retry",
    "title",
    "description",
    "runbook_url",
)


@dataclass(frozen=True)
class PutResult:
    outcome: str
    """added, changed or unchanged"""
    id: uuid.UUID
    generation: int
    next_at: datetime | None
    differences: tuple[str, ...] = ()


async def put_schedule(
    connection: Connection, spec: ScheduleSpec, actor: Actor, *, if_generation: int | None = None
) -> PutResult:
    """Add a schedule, change it, or find that it is unchanged."""
    spec = checked(spec)

    async def put(row: Row | None) -> PutResult:
        if row is None:
            if if_generation is not None:
                raise _no_schedule(spec.owner, spec.name)
            return await _add(connection, spec, actor)
        await _check_generation(connection, row, if_generation)
        content = _content(spec, recurrence_of_spec(spec, row, actor.now))
        differences = tuple(key for key in _CONTENT if row[key] != content[key])
        if not differences and _needs_no_change(row["status"], spec.enabled):
            return PutResult("unchanged", row["id"], row["generation"], row["nominal_at"])
        status = "active" if spec.enabled else "paused"
        return await _edit(
            connection, row, {**content, "source": spec.source}, status, actor, "edit", differences
        )

    return await _edit_exclusively(connection, spec.owner, spec.name, put)


async def pause_schedule(
    connection: Connection, owner: str, name: str, actor: Actor, *, if_generation: int | None = None
) -> PutResult:
    async def pause(row: Row) -> PutResult:
        if row["status"] == "paused":
            return PutResult("unchanged", row["id"], row["generation"], None)
        _refuse_unless(row, ("active",), "paused")
        return await _edit(connection, row, _row_content(row), "paused", actor, "pause")

    return await _change_existing(connection, owner, name, if_generation, pause)


async def resume_schedule(
    connection: Connection, owner: str, name: str, actor: Actor, *, if_generation: int | None = None
) -> PutResult:
    async def resume(row: Row) -> PutResult:
        if row["status"] == "active":
            return PutResult("unchanged", row["id"], row["generation"], row["nominal_at"])
        _refuse_unless(row, ("paused",), "resumed")
        return await _edit(connection, row, _row_content(row), "active", actor, "resume")

    return await _change_existing(connection, owner, name, if_generation, resume)


async def cancel_schedule(
    connection: Connection, owner: str, name: str, actor: Actor, *, if_generation: int | None = None
) -> PutResult:
    async def cancel(row: Row) -> PutResult:
        if row["status"] in FINISHED:
            return PutResult("unchanged", row["id"], row["generation"], None)
        return await _edit(connection, row, _row_content(row), "cancelled", actor, "cancel")

    return await _change_existing(connection, owner, name, if_generation, cancel)


async def find_schedule(connection: Connection, owner: str, name: str) -> Row | None:
    return await fetch_dict(connection, "timers/find_schedule", {"owner": owner, "name": name})


async def find_schedule_by_id(connection: Connection, id: uuid.UUID) -> tuple[str, str] | None:
    """The owner and name of a schedule."""
    row = await fetch_one(connection, "timers/find_schedule_by_id", {"id": id})
    return None if row is None else (row[0], row[1])


async def list_schedules(
    connection: Connection,
    *,
    owner: str | None = None,
    name: str | None = None,
    type: str | None = None,
    status: str | None = None,
    source: str | None = None,
    limit: int = 1000,
) -> list[Row]:
    filters = {"owner": owner, "name": name, "type": type, "status": status, "source": source}
    return await fetch_dicts(connection, "timers/list_schedules", {**filters, "limit": limit})


async def _edit_exclusively(
    connection: Connection, owner: str, name: str, change: Callable[[Row | None], Awaitable[PutResult]]
) -> PutResult:
    """Run one edit of this schedule at a time, in one transaction.

    Starts again if a fire committed in between.
    """
    async with connection.transaction():
        for _ in range(_ATTEMPTS):
            row = await find_schedule(connection, owner, name)
            try:
                async with connection.transaction():
                    return await change(row)
            except Conflict:
                continue
        raise Refused(f"schedule {name!r} fires faster than it can be changed", remedy="try again")


async def _change_existing(
    connection: Connection,
    owner: str,
    name: str,
    if_generation: int | None,
    change: Callable[[Row], Awaitable[PutResult]],
) -> PutResult:
    refuse_reserved_owner(owner)

    async def change_row(row: Row | None) -> PutResult:
        if row is None:
            raise _no_schedule(owner, name)
        await _check_generation(connection, row, if_generation)
        return await change(row)

    return await _edit_exclusively(connection, owner, name, change_row)


def _no_schedule(owner: str, name: str) -> NotFound:
    of_owner = f" of owner {owner!r}" if owner else ""
    return NotFound(f"there is no schedule {name!r}{of_owner}", remedy="`tocsin schedules` lists them")


async def _check_generation(connection: Connection, row: Row, expected: int | None) -> None:
    if expected is None or row["generation"] == expected:
        return
    raise Refused(
        f"schedule {row['name']!r} is at generation {row['generation']}, not {expected}: "
        + await last_change_text(connection, row),
        remedy="look at it again before you change it",
    )


async def last_change_text(connection: Connection, row: Row) -> str:
    """`ann changed it via cli at ...`"""
    change = await fetch_one(
        connection, "timers/find_last_change", {"owner": row["owner"], "name": row["name"]}
    )
    who, via, at = change or ("an unknown user", "sql", row["updated_at"])
    return f"{who} changed it via {via} at {utc_text(at)}"


def _needs_no_change(status: str, enabled: bool) -> bool:
    """Whether a status is as wanted. A finished schedule stays so until its content changes."""
    return status in ("fired", "ended", "failed") or status == ("active" if enabled else "paused")


def _refuse_unless(row: Row, allowed: tuple[str, ...], participle: str) -> None:
    if row["status"] not in allowed:
        raise Refused(f"schedule {row['name']!r} is {row['status']} and cannot be {participle}")


def _content(spec: ScheduleSpec, recurrence: Recurrence) -> Row:
    values = {key: getattr(spec, key) for key in _CONTENT if key != "recurrence"}
    retry = None if spec.retry is None else dict(spec.retry)
    return {**values, "payload": dict(spec.payload), "retry": retry, "recurrence": recurrence.spec}


def _row_content(row: Row) -> Row:
    return {key: row[key] for key in (*_CONTENT, "source")}


async def _add(connection: Connection, spec: ScheduleSpec, actor: Actor) -> PutResult:
    recurrence = recurrence_of_spec(spec, None, actor.now)
    content = _content(spec, recurrence)
    schedule_id = uuid.uuid4()
    row = {"id": schedule_id, "owner": spec.owner, "name": spec.name, "generation": 1, "spread": spec.spread}
    status = "active" if spec.enabled else "paused"
    next_at = None
    if spec.enabled:
        new_row = {**row, "tick_done_until": None}
        next_at = await _arm_next(connection, new_row, recurrence, actor.now, NOTHING_DONE)
    inserted = await connection.execute(
        statement("timers/insert_schedule"),
        {
            **_parameters(content),
            "id": schedule_id,
            "owner": spec.owner,
            "name": spec.name,
            "status": status,
            "source": spec.source,
            "who": actor.who,
            "via": actor.via,
            "now": actor.now,
        },
    )
    if inserted.rowcount == 0:
        raise Conflict("the schedule was added in another transaction")
    new = _audited(content, status, 1, next_at)
    await record_audit(connection, actor, "add", "schedule", spec.name, owner=spec.owner, new=new)
    return PutResult("added", schedule_id, 1, next_at)


async def _edit(
    connection: Connection,
    row: Row,
    content: Row,
    status: str,
    actor: Actor,
    verb: str,
    differences: tuple[str, ...] = (),
) -> PutResult:
    generation = row["generation"] + 1
    next_at: datetime | None = None
    tz = content["recurrence"].get("tz")
    done = done_of(row, tz)
    if status == "active":
        changed = {**row, "generation": generation, "spread": content["spread"]}
        recurrence = parse_spec(content["recurrence"])
        next_at = await _arm_next(connection, changed, recurrence, actor.now, done)
    else:
        removed = await fetch_one(connection, "timers/disarm_tick", {"ref": str(row["id"])})
        if removed is not None and removed[0] is not None:
            done = done_of({**row, "last_occurrence": removed[0], "last_identity": removed[1]}, tz)
    updated = await connection.execute(
        statement("timers/update_schedule"),
        {
            **_parameters(content),
            "source": content["source"],
            "id": row["id"],
            "status": status,
            "generation": generation,
            "seen_generation": row["generation"],
            "seen_status": row["status"],
            "last_occurrence": done.until,
            "last_identity": done.identity,
            "now": actor.now,
        },
    )
    if updated.rowcount == 0:
        raise Conflict("the schedule changed in another transaction")
    old = _audited(row, row["status"], row["generation"], row["nominal_at"])
    new = _audited(content, status, generation, next_at)
    await record_audit(connection, actor, verb, "schedule", row["name"], owner=row["owner"], old=old, new=new)
    return PutResult("changed", row["id"], generation, next_at, differences)


async def _arm_next(
    connection: Connection, row: Row, recurrence: Recurrence, now: datetime, done: Done
) -> datetime:
    """Arm the first occurrence after `now` and after every occurrence that is done.

    Returns its nominal time.
    """
    if recurrence.tz != "UTC":
        await refuse_older_tz_data(connection, row["name"])
    following = next_occurrence(row, recurrence, now, done)
    armed = await connection.execute(
        statement("timers/arm_tick"),
        {
            "ref": str(row["id"]),
            "fire_at": following.at + spread_of(row["owner"], row["name"], row["spread"]),
            "nominal_at": following.at,
            "identity": recurrence.identity(following),
            "done_until": done.until,
            "done_identity": done.identity,
            "seen_done_until": row["tick_done_until"],
            "generation": row["generation"],
        },
    )
    if await armed.fetchone() is None:
        raise Conflict("the schedule changed in another transaction")
    return following.at


def _parameters(content: Row) -> Row:
    retry = None if content["retry"] is None else Jsonb(content["retry"])
    return {
        **content,
        "recurrence": Jsonb(content["recurrence"]),
        "payload": Jsonb(content["payload"]),
        "retry": retry,
    }


def _audited(content: Mapping[str, Any], status: str, generation: int, next_at: datetime | None) -> Row:
    """The part of a schedule that the audit keeps, as JSON.

    `next_at` is the occurrence that an edit replaces.
    """
    values = {
        key: str(value) if isinstance(value, timedelta) else value
        for key, value in content.items()
        if key in _CONTENT and value is not None
    }
    return {**values, "status": status, "generation": generation, "next_at": next_at and next_at.isoformat()}

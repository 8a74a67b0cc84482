"""Schedules: added, edited, paused, resumed, cancelled, each with its tick in the caller's one transaction.

Guarantees: an active schedule has exactly one tick, any other has none; every change makes a new generation and
never fires retroactively: the next occurrence lies after `now` and after everything done; putting the same content
again changes nothing; every act is in `audit` with who and via what. Edits of one schedule take
turns (an advisory lock), and the tick is locked before the schedule, as the clock does.

On failure: `Refused` names the state that forbids the act, or who changed the schedule meanwhile.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from timers.identity import spread_of
from timers.recurrence import Recurrence, parse, parse_spec
from tocsin.core.db import Connection, statement
from tocsin.core.errors import InvalidInput, Refused

FINISHED = ("fired", "ended", "cancelled", "failed")
_CONTENT = ("recurrence", "spread", "catch_up", "window", "grace", "max_catch_up", "type", "payload", "action")


@dataclass(frozen=True)
class Act:
    """Who does something, through what, at which instant."""

    who: str
    via: str
    now: datetime


@dataclass(frozen=True)
class ScheduleSpec:
    """What a schedule should be. `recurrence` holds keyword arguments of `timers.recurrence.parse`."""

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
    enabled: bool = True
    source: str = "api"


@dataclass(frozen=True)
class Put:
    outcome: str
    """added, changed or unchanged"""
    id: uuid.UUID
    generation: int
    next_at: datetime | None
    differences: tuple[str, ...] = ()


Row = dict[str, Any]


async def put_schedule(
    connection: Connection, spec: ScheduleSpec, act: Act, *, if_generation: int | None = None
) -> Put:
    await _lock(connection, spec.owner, spec.name)
    row = await find_schedule(connection, spec.owner, spec.name)
    recurrence = _recurrence_of(spec, row, act.now)
    if spec.spread and spec.spread >= recurrence.minimum_distance():
        raise InvalidInput(
            f"the spread of schedule {spec.name!r} is not shorter than the distance between its occurrences: "
            "shorten it"
        )
    content = _content(spec, recurrence)
    if row is None:
        return await _add(connection, spec, content, recurrence, act)
    _check_generation(row, if_generation)
    differences = tuple(key for key in _CONTENT if row[key] != content[key])
    enabled = row["status"] != "paused"
    if not differences and enabled == spec.enabled and row["status"] != "cancelled":
        return Put("unchanged", row["id"], row["generation"], row["nominal_at"])
    status = "active" if spec.enabled else "paused"
    return await _edit(connection, row, {**content, "source": spec.source}, status, act, "edit", differences)


async def pause_schedule(
    connection: Connection, owner: str, name: str, act: Act, *, if_generation: int | None = None
) -> Put:
    row = await _locked(connection, owner, name, if_generation)
    if row["status"] == "paused":
        return Put("unchanged", row["id"], row["generation"], None)
    _refuse_unless(row, ("active",), "paused")
    return await _edit(connection, row, _row_content(row), "paused", act, "pause")


async def resume_schedule(
    connection: Connection, owner: str, name: str, act: Act, *, if_generation: int | None = None
) -> Put:
    row = await _locked(connection, owner, name, if_generation)
    if row["status"] == "active":
        return Put("unchanged", row["id"], row["generation"], row["nominal_at"])
    _refuse_unless(row, ("paused",), "resumed")
    return await _edit(connection, row, _row_content(row), "active", act, "resume")


async def cancel_schedule(
    connection: Connection, owner: str, name: str, act: Act, *, if_generation: int | None = None
) -> Put:
    row = await _locked(connection, owner, name, if_generation)
    if row["status"] in FINISHED:
        return Put("unchanged", row["id"], row["generation"], None)
    return await _edit(connection, row, _row_content(row), "cancelled", act, "cancel")


async def find_schedule(connection: Connection, owner: str, name: str) -> Row | None:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("timers/find_schedule"), {"owner": owner, "name": name})
        return await cursor.fetchone()


async def list_schedules(
    connection: Connection,
    *,
    owner: str | None = None,
    type: str | None = None,
    status: str | None = None,
    source: str | None = None,
    limit: int = 1000,
) -> list[Row]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            statement("timers/list_schedules"),
            {"owner": owner, "type": type, "status": status, "source": source, "limit": limit},
        )
        return await cursor.fetchall()


async def record_act(
    connection: Connection, act: Act, verb: str, row: Mapping[str, Any], old: object, new: object
) -> None:
    await connection.execute(
        statement("timers/insert_audit"),
        {
            "at": act.now,
            "who": act.who,
            "via": act.via,
            "verb": verb,
            "kind": "schedule",
            "owner": row["owner"],
            "name": row["name"],
            "old": None if old is None else Jsonb(old),
            "new": None if new is None else Jsonb(new),
        },
    )


async def _lock(connection: Connection, owner: str, name: str) -> None:
    await connection.execute(statement("timers/lock_schedule"), {"owner": owner, "name": name})


async def _locked(connection: Connection, owner: str, name: str, if_generation: int | None) -> Row:
    await _lock(connection, owner, name)
    row = await find_schedule(connection, owner, name)
    if row is None:
        of_owner = f" of owner {owner!r}" if owner else ""
        raise Refused(f"there is no schedule {name!r}{of_owner}: `tocsin schedules` lists them")
    _check_generation(row, if_generation)
    return row


def _check_generation(row: Row, expected: int | None) -> None:
    if expected is not None and row["generation"] != expected:
        raise Refused(
            f"schedule {row['name']!r} is at generation {row['generation']}, not {expected}: it was changed at "
            f"{row['updated_at']:%Y-%m-%d %H:%M:%S}Z; `tocsin audit {row['name']}` says by whom"
        )


def _refuse_unless(row: Row, allowed: tuple[str, ...], participle: str) -> None:
    if row["status"] not in allowed:
        raise Refused(f"schedule {row['name']!r} is {row['status']} and cannot be {participle}")


def _recurrence_of(spec: ScheduleSpec, row: Row | None, now: datetime) -> Recurrence:
    """An edit that leaves the recurrence's text alone keeps its anchor: re-applying a file moves nothing."""
    arguments = {"hash_id": spec.name, **spec.recurrence}
    if row is not None and "anchor" not in arguments:
        kept = row["recurrence"].get("anchor")
        if kept is not None:
            before = parse(**arguments, anchor=parse_instant(kept))
            if before.spec == row["recurrence"]:
                return before
    return parse(**{"anchor": now, **arguments})


def parse_instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _content(spec: ScheduleSpec, recurrence: Recurrence) -> Row:
    values = {key: getattr(spec, key) for key in _CONTENT if key != "recurrence"}
    return {**values, "payload": dict(spec.payload), "recurrence": recurrence.spec}


def _row_content(row: Row) -> Row:
    return {key: row[key] for key in (*_CONTENT, "source")}


async def _add(
    connection: Connection, spec: ScheduleSpec, content: Row, recurrence: Recurrence, act: Act
) -> Put:
    identity = uuid.uuid4()
    row = {"id": identity, "owner": spec.owner, "name": spec.name, "generation": 1}
    next_at = None
    if spec.enabled:
        next_at = _next_occurrence(row, recurrence, act.now, None)
        await _arm(connection, {**row, "spread": spec.spread}, next_at, None)
    await connection.execute(
        statement("timers/insert_schedule"),
        {
            **_parameters(content),
            "id": identity,
            "owner": spec.owner,
            "name": spec.name,
            "status": "active" if spec.enabled else "paused",
            "source": spec.source,
            "who": act.who,
            "via": act.via,
            "now": act.now,
        },
    )
    await record_act(connection, act, "add", row, None, _audited(content))
    return Put("added", identity, 1, next_at)


async def _edit(
    connection: Connection,
    row: Row,
    content: Row,
    status: str,
    act: Act,
    verb: str,
    differences: tuple[str, ...] = (),
) -> Put:
    recurrence = parse_spec(content["recurrence"])
    generation = row["generation"] + 1
    next_at: datetime | None = None
    done_until = row["last_occurrence"]
    if status == "active":
        changed = {**row, "generation": generation, "spread": content["spread"]}
        while True:
            next_at = _next_occurrence(row, recurrence, act.now, done_until)
            if await _arm(connection, changed, next_at, done_until):
                break
            # A fire committed between our reading and our lock: what it did is done.
            fresh = await find_schedule(connection, row["owner"], row["name"])
            assert fresh is not None
            done_until = fresh["last_occurrence"]
    else:
        removed = await (
            await connection.execute(statement("timers/disarm_tick"), {"ref": str(row["id"])})
        ).fetchone()
        done_until = removed[0] or done_until if removed else done_until
    await connection.execute(
        statement("timers/update_schedule"),
        {
            **_parameters(content),
            "source": content["source"],
            "id": row["id"],
            "status": status,
            "generation": generation,
            "last_occurrence": done_until,
            "now": act.now,
        },
    )
    old = {**_audited(row), "status": row["status"], "generation": row["generation"]}
    new = {**_audited(content), "status": status, "generation": generation}
    await record_act(connection, act, verb, row, old, new)
    return Put("changed", row["id"], generation, next_at, differences)


def _next_occurrence(
    row: Row, recurrence: Recurrence, now: datetime, done_until: datetime | None
) -> datetime:
    after = now if done_until is None else max(now, done_until)
    next_at = recurrence.next_after(after)
    if next_at is None:
        raise Refused(
            f"schedule {row['name']!r} would never fire again ({recurrence.describe()}): "
            "give it a time in the future, or cancel it"
        )
    return next_at


async def _arm(connection: Connection, row: Row, next_at: datetime, done_until: datetime | None) -> bool:
    armed = await connection.execute(
        statement("timers/arm_tick"),
        {
            "ref": str(row["id"]),
            "fire_at": next_at + spread_of(row["owner"], row["name"], row["spread"]),
            "nominal_at": next_at,
            "done_until": done_until,
            "generation": row["generation"],
        },
    )
    return await armed.fetchone() is not None


def _parameters(content: Row) -> Row:
    return {**content, "recurrence": Jsonb(content["recurrence"]), "payload": Jsonb(content["payload"])}


def _audited(content: Mapping[str, Any]) -> Row:
    """What of a schedule is worth keeping in the audit, as JSON."""
    return {
        key: str(value) if isinstance(value, timedelta) else value
        for key, value in content.items()
        if key in _CONTENT and value is not None
    }

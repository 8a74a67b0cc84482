"""Apply: documents become versions and schedules, all or nothing, in one transaction.

Guarantees: what is unchanged is left alone, so that applying a file again does nothing, and a schedule that
a person paused stays paused until its document changes. New versions hold for the events after the
`rules-applied` event of the same transaction. On failure nothing was applied.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg.errors import LockNotAvailable
from psycopg.types.json import Jsonb

from clock.record_log import NewEvent, append_events
from rules.loading import Document, Loaded, recurrence_arguments
from rules.switches import lock_partitions, record_switches
from schemas.documents import ScheduleDocument
from timers.schedules import Act, ScheduleSpec, cancel_schedule, find_schedule, put_schedule
from tocsin.core.db import Connection, retrying, statement
from tocsin.core.errors import Refused


@dataclass(frozen=True)
class Change:
    kind: str
    name: str
    outcome: str
    """added, changed or unchanged"""
    next_at: datetime | None = None


@dataclass(frozen=True)
class Applied:
    changes: tuple[Change, ...]
    seq: int | None
    """Of the `rules-applied` event; None if nothing changed."""


async def apply(connection: Connection, loaded: Loaded, act: Act) -> Applied:
    async def once() -> Applied:
        async with connection.transaction():
            return await _apply(connection, loaded, act)

    return await retrying(once)


async def _apply(connection: Connection, loaded: Loaded, act: Act) -> Applied:
    await _take_turn(connection)
    rows = await (await connection.execute(statement("rules/list_newest_documents"))).fetchall()
    newest = {
        (kind, name): (version, document if holds else None) for kind, name, version, document, holds in rows
    }
    changes: list[Change] = []
    changed: list[tuple[Document, int]] = []
    for document in loaded.documents:
        version, before = newest.get((document.kind, document.name), (0, None))
        same = before is not None and _canonical(before) == _canonical(document.data)
        next_at = None
        if isinstance(document.model, ScheduleDocument):
            await _cancel_moved(connection, document.model, before, act)
            row = await find_schedule(connection, document.model.owner, document.name)
            if not same or row is None:
                next_at = (await put_schedule(connection, schedule_spec(document.model), act)).next_at
            else:
                next_at = row["nominal_at"]
        if not same:
            changed.append((document, version + 1))
        outcome = "unchanged" if same else "added" if before is None else "changed"
        changes.append(Change(document.kind, document.name, outcome, next_at))
    seq = await _record(connection, changed, act) if changed else None
    return Applied(tuple(changes), seq)


async def _take_turn(connection: Connection) -> None:
    try:
        await connection.execute(statement("rules/lock_rules"))
    except LockNotAvailable:
        raise Refused("somebody else applies rules at this moment: try again when they are done") from None


def _canonical(data: dict[str, Any]) -> object:
    """As it compares before and after Postgres, which writes 1e23 with all its digits."""
    return json.loads(
        json.dumps(data), parse_int=lambda digits: int(digits) if len(digits) < 20 else float(digits)
    )


async def _cancel_moved(
    connection: Connection, document: ScheduleDocument, before: dict[str, Any] | None, act: Act
) -> None:
    """A schedule is known by owner and name: one whose owner changed is another, and the former ends."""
    if before is None or before["owner"] == document.owner:
        return
    if await find_schedule(connection, before["owner"], document.name) is not None:
        await cancel_schedule(connection, before["owner"], document.name, act)


def schedule_spec(document: ScheduleDocument) -> ScheduleSpec:
    return ScheduleSpec(
        name=document.name,
        recurrence=recurrence_arguments(document),
        owner=document.owner,
        spread=document.spread or timedelta(0),
        catch_up=document.catch_up,
        window=document.window,
        grace=document.grace,
        max_catch_up=document.max_catch_up,
        type=document.type,
        payload=document.payload,
        action=document.action,
        enabled=document.enabled,
        source="rules",
    )


async def _record(connection: Connection, changed: list[tuple[Document, int]], act: Act) -> int:
    """The log is locked by the append, so the versions written after it are cheap rows of ours alone.

    Schedules came before the partitions: nobody who holds a partition touches a schedule or its tick.
    """
    await lock_partitions(connection)
    listed = [
        {"kind": document.kind, "name": document.name, "version": version} for document, version in changed
    ]
    event = NewEvent(
        ts=act.now,
        origin="caused",
        type="rules-applied",
        payload={"count": len(listed), "documents": listed[:1000], "who": act.who, "via": act.via},
    )
    seq = await append_events(connection, [event])
    columns: dict[str, Any] = {
        "seq": seq,
        "kinds": [document.kind for document, _ in changed],
        "names": [document.name for document, _ in changed],
    }
    await connection.execute(statement("rules/end_versions"), columns)
    await connection.execute(
        statement("rules/insert_versions"),
        {
            **columns,
            "versions": [version for _, version in changed],
            "documents": [Jsonb(document.data) for document, _ in changed],
        },
    )
    await record_switches(connection, seq)
    return seq

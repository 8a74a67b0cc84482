"""Rows that belong to old records of the log, in the state in which retention finds them."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb

from clock.retention.prune import prune
from tests.clock.clock_setup import T0
from tests.clock.retention.old_log import DAY, mark_read_up_to, set_now_to_end
from tests.core.log_partitions import small_partitions
from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events, append_records
from tocsin.core.records import NewEvent, NewRecords, NewStep
from tocsin.core.settings import Settings


async def begin_log(connection: Connection) -> None:
    """Set partitions of ten records, and a virtual time at which new records are old ones."""
    await small_partitions(connection, 10)
    await connection.execute("select set_config('tocsin.now', %s, false)", (T0.isoformat(),))


async def end_log(connection: Connection) -> None:
    """Mark all records as read, and move the virtual time 400 days ahead."""
    await mark_read_up_to(connection, 1000)
    await set_now_to_end(connection)


async def put_alarm(connection: Connection, rule: str, state: str = "resolved", owner: str = "") -> uuid.UUID:
    id = uuid.uuid4()
    await connection.execute(
        "insert into tocsin.alarm (id, event_rule, owner, state, severity, since, opened_at, resolved_at,"
        " correlation_id) values (%(id)s, %(rule)s, %(owner)s, %(state)s, 1, %(at)s, %(at)s, %(end)s, %(id)s)",
        {
            "id": id,
            "rule": rule,
            "owner": owner or id.hex,
            "state": state,
            "at": T0 - DAY,
            "end": T0 - DAY if state == "resolved" else None,
        },
    )
    return id


async def append_alarm_event(connection: Connection, alarm_id: uuid.UUID) -> None:
    await append_events(
        connection, [NewEvent(T0, "derived", "alarm-opened", {}, rule="hot", alarm_id=alarm_id)]
    )
    await connection.execute("select tocsin.extend_log()")


async def put_run(
    connection: Connection,
    state: str,
    seq: int,
    rule: str = "page",
    ended_at: datetime = T0 - DAY,
    waits: bool = False,
) -> uuid.UUID:
    id = uuid.uuid4()
    ended = None if state in ("gathering", "queued", "running") else ended_at
    await connection.execute(
        "insert into tocsin.action (id, name, action_rule, group_key, event_id, event_seq, document, state, started_at,"
        " ended_at, correlation_id) values (%s, 'tell', %s, %s, %s, %s, '{}', %s, %s, %s, %s)",
        (id, rule, id.hex, id, seq, state, T0 - DAY, ended, id),
    )
    await connection.execute(
        "insert into tocsin.action_event (action_rule, event_id, event_seq, action_id) values (%s, %s, %s, %s)",
        (rule, id, seq, id),
    )
    if waits:
        await connection.execute("insert into tocsin.action_wait values (%s, 0, 1, 'true', 1)", (id,))
    return id


async def append_step(connection: Connection, action_id: uuid.UUID) -> None:
    new_step = NewStep(
        action_id=action_id,
        name="tell",
        owner="",
        step=0,
        attempt=1,
        state="completed",
        correlation_id=action_id,
    )
    await append_records(connection, NewRecords(steps=[new_step]))
    await connection.execute("select tocsin.extend_log()")


async def put_audit_row(connection: Connection, name: str, at: datetime) -> None:
    async with connection.transaction():
        await connection.execute("select set_config('tocsin.now', %s, true)", (at.isoformat(),))
        await connection.execute(
            "insert into tocsin.audit (at, who, via, verb, kind, name) "
            "values (tocsin.instant(), 'me', 'test', 'edit', 'schedule', %s)",
            (name,),
        )


async def put_schedule(connection: Connection, name: str, status: str, at: datetime = T0 - DAY) -> None:
    await connection.execute(
        "insert into tocsin.schedule (name, recurrence, status, created_by, created_via, created_at, updated_at)"
        """ values (%(name)s, '{"at": "2026-03-02T08:00:00Z"}', %(status)s, 'me', 'test', %(at)s, %(at)s)""",
        {"name": name, "status": status, "at": at},
    )


async def put_version(
    connection: Connection,
    kind: str,
    name: str,
    number: int,
    from_seq: int,
    until_seq: int | None,
    document: dict[str, Any] | None = None,
) -> None:
    await connection.execute(
        "insert into tocsin.rule_version (kind, name, version, document, from_seq, until_seq)"
        " values (%s, %s, %s, %s, %s, %s)",
        (kind, name, number, Jsonb(document or {}), from_seq, until_seq),
    )


async def put_series(
    connection: Connection,
    owner: str,
    key: str,
    arrived_at: datetime,
    stale: bool = False,
    handled: bool = True,
) -> None:
    since = arrived_at + timedelta(minutes=1) if stale else None
    await connection.execute(
        "insert into tocsin.current_value (owner, key, partition, value, ts, arrived_at, stream_seq, first_arrived_at,"
        " freshness, stale_since, handled_stale_since)"
        " values (%(owner)s, %(key)s, 0, '1', %(at)s, %(at)s, 1, %(at)s, %(fresh)s, %(since)s, %(handled)s)",
        {
            "owner": owner,
            "key": key,
            "at": arrived_at,
            "fresh": "stale" if stale else "fresh",
            "since": since,
            "handled": since if handled else None,
        },
    )


async def put_rule_state(
    connection: Connection, rule: str, owner: str, phase: str = "ok", lane: str = "data", **remembered: Any
) -> None:
    await connection.execute(
        "insert into tocsin.rule_state (event_rule, owner, lane, partition, phase, state)"
        " values (%s, %s, %s, 0, %s, %s)",
        (rule, owner, lane, phase, Jsonb({"phase": phase, "tracks": {}, **remembered})),
    )


async def read_ids(connection: Connection, table: str) -> set[uuid.UUID]:
    return {row["id"] for row in await all_rows(connection, f"select id from tocsin.{table}")}


async def prune_rows(connection: Connection, settings: Settings) -> dict[str, int]:
    return (await prune(connection, settings)).rows

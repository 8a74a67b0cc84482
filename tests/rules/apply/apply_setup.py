"""Applies rules from text, appends events, and returns the bodies that the stream would have."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg.rows import dict_row

from cdc.log_reader import LogReader
from rules.apply import ApplyResult, apply, preview
from rules.documents.load import load_text
from rules.documents.rule_book import known_names
from schemas.wire.event import EventRow
from schemas.wire.step import StepRow
from tests.sql import all_rows
from timers.working_set import arm
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
ACTOR = Actor("tester", "test", T0)


async def put(connection: Connection, text: str, actor: Actor = ACTOR) -> ApplyResult:
    return await apply(connection, load_text(text, known=await known_names(connection), anchor=T0), actor)


async def apply_only(connection: Connection, text: str, actor: Actor = ACTOR) -> ApplyResult:
    """Apply these documents and remove all others."""
    loaded = load_text(text, anchor=T0)
    removed = (await preview(connection, loaded, actor.now, prune=True)).plan.removed
    return await apply(connection, loaded, actor, removing=removed)


def action(name: str, message: str = "hello") -> str:
    return f'---\naction:\n  name: {name}\n  log:\n    message: "{message}"\n'


def publish_action(name: str, subject: str, payload: str = "{}") -> str:
    return f'---\naction:\n  name: {name}\n  publish:\n    subject: "{subject}"\n    payload: {payload}\n'


def rule(name: str, action: str, when: str = 'type == "noted"', extra: str = "") -> str:
    return f"---\naction_rule:\n  name: {name}\n  on: event\n  when: '{when}'\n  action: {action}\n{extra}"


def schedule(name: str, every: str = "10s", extra: str = "") -> str:
    return f"---\nschedule:\n  name: {name}\n  every: {every}\n{extra}"


async def note(connection: Connection, **fields: Any) -> int:
    """Append one event; returns its seq."""
    given = {"ts": T0, "origin": "caused", "type": "noted", **fields}
    return await append_events(connection, [NewEvent(**given)])


async def event_bodies(connection: Connection, after: int = 0) -> list[bytes]:
    return [r.body("s") for r in await LogReader(connection).read(after, 1000) if isinstance(r, EventRow)]


async def step_bodies(connection: Connection) -> list[bytes]:
    return [r.body("s") for r in await LogReader(connection).read(0, 1000) if isinstance(r, StepRow)]


async def rows(connection: Connection, table: str, order: str = "1") -> list[dict[str, Any]]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(f"select * from tocsin.{table} order by {order}")
        return await cursor.fetchall()


async def actions(connection: Connection) -> list[dict[str, Any]]:
    return await rows(connection, "action", "event_seq, action_rule")


async def versions(connection: Connection) -> list[tuple[Any, ...]]:
    found = await rows(connection, "rule_version", "kind, name, version")
    return [(row["kind"], row["name"], row["version"], row["from_seq"], row["until_seq"]) for row in found]


async def begin(connection: Connection, action_rule: str, state: str, group: str = "") -> uuid.UUID:
    """Insert a run in a state, as dispatch would; a gathering one has its timer."""
    identity = uuid.uuid4()
    active = '{"0": {"attempt": 1, "state": "due"}}' if state == "running" else "{}"
    await connection.execute(
        "insert into tocsin.action (id, name, action_rule, event_id, event_seq, document, state, active,"
        " started_at, correlation_id, group_key) values (%s, 'tell', %s, %s, 1, '{}', %s, %s, %s, %s, %s)",
        (identity, action_rule, uuid.uuid4(), state, active, T0, uuid.uuid4(), group),
    )
    if state == "gathering":
        await arm(connection, "runbook-wait", str(identity), "group", T0 + timedelta(hours=1))
    return identity


TABLES = (
    *("schedule", "timer", "event", "action", "action_step", "alarm", "rule_state", "rule_version"),
    *("rule_cutover", "audit", "log_commit", "lane_partition"),
)


async def everything(connection: Connection) -> list[dict[str, Any]]:
    """Every row of every table that an apply writes, as text, in one statement."""
    each = (f"select '{table}' as name, t::text as row from tocsin.{table} t" for table in TABLES)
    return await all_rows(connection, f"{' union all '.join(each)} order by 1, 2")

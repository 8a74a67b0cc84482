"""Carrying out what `plan` allows, table by table.

Guarantee: after the horizon is raised nobody reads what is below it, so a run that is interrupted leaves tables that
the next one drops, and no wrong answer. A table that somebody uses is left for another time, and said.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg
import structlog
from psycopg import sql

from clock.record_log import NewEvent, append_events
from clock.retention.plan import DatapointDay, Kept, Limits, LogRange, PrunePlan, plan_pruning, ranges_of
from timers.working_set import database_now
from tocsin.core.db import Connection, statement
from tocsin.core.settings import Settings

_log = structlog.get_logger()
_COMMITS_AT_ONCE = 10_000
Progress = Callable[[str], None]


@dataclass
class Pruned:
    tables: list[str] = field(default_factory=list)
    bytes: int = 0
    events_kept: int = 0
    horizon: int | None = None
    left: list[Kept] = field(default_factory=list)
    """What was allowed to go and is in use."""


async def read_plan(connection: Connection, settings: Settings) -> PrunePlan:
    tables = await (await connection.execute(statement("clock.retention/list_log_tables"))).fetchall()
    days = await (await connection.execute(statement("clock.retention/list_datapoint_tables"))).fetchall()
    limits = await (await connection.execute(statement("clock.retention/read_limits"))).fetchone()
    assert limits is not None
    size = tables[0][2] if tables else 1
    ranges = ranges_of(
        [(name, count) for name, _, _, count, _ in tables],
        size,
        {start: newest_at for _, start, _, _, newest_at in tables},
    )
    return plan_pruning(
        ranges,
        [DatapointDay(*row) for row in days],
        Limits(*limits),
        timedelta(days=settings.record_retention_d),
        timedelta(days=settings.datapoint_retention_d),
    )


async def prune(connection: Connection, settings: Settings, tell: Progress | None = None) -> Pruned:
    """One run. Needs a session of the schema's owner, outside of a transaction."""
    await connection.execute(statement("clock.retention/bound_wait"))
    planned = await read_plan(connection, settings)
    done = Pruned()
    for one in planned.ranges:
        await _drop_range(connection, one, settings, done, tell)
        if done.left:
            break
    for day in planned.days:
        await _drop(connection, day.table, day.bytes, done, tell)
    if done.horizon is not None:
        await _forget_commits(connection)
    if done.tables:
        await _record(connection, done)
    return done


async def _drop_range(
    connection: Connection, one: LogRange, settings: Settings, done: Pruned, tell: Progress | None
) -> None:
    raised = await connection.execute(
        statement("clock.retention/raise_horizon"),
        {"until": one.until, "per_rule": settings.keep_events_per_rule},
    )
    row = await raised.fetchone()
    done.events_kept += int(row[0]) if row else 0
    done.horizon = one.until
    for table in one.tables:
        await _drop(connection, table, one.bytes // len(one.tables), done, tell)


async def _drop(connection: Connection, table: str, bytes: int, done: Pruned, tell: Progress | None) -> None:
    try:
        parent = await (
            await connection.execute(statement("clock.retention/read_parent"), {"table": table})
        ).fetchone()
        if parent is not None:
            begun = statement("clock.retention/finish_detach")
            detach = begun if parent[1] else statement("clock.retention/detach")
            await connection.execute(_named(detach, parent=parent[0], table=table))
        await connection.execute(_named(statement("clock.retention/drop_table"), table=table))
    except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled) as error:
        done.left.append(Kept(table, f"somebody uses it: {str(error).splitlines()[0]}"))
        _log.warning("a partition could not be dropped, trying again later", table=table, error=error)
        return
    done.tables.append(table)
    done.bytes += bytes
    if tell is not None:
        tell(table)


def _named(query: bytes, **tables: str) -> sql.Composed:
    identifiers = {key: sql.Identifier(table) for key, table in tables.items()}
    return sql.SQL(query.decode()).format(**identifiers)


async def _forget_commits(connection: Connection) -> None:
    most = {"most": _COMMITS_AT_ONCE}
    while True:
        row = await (await connection.execute(statement("clock.retention/forget_commits"), most)).fetchone()
        if row is None or row[0] < _COMMITS_AT_ONCE:
            return


async def _record(connection: Connection, done: Pruned) -> None:
    payload = {
        "tables": done.tables,
        "bytes": done.bytes,
        "events_kept": done.events_kept,
        "horizon": done.horizon,
    }
    event = NewEvent(await database_now(connection), "derived", "log-pruned", payload)
    await append_events(connection, [event])
    _log.info("pruned", tables=len(done.tables), bytes=done.bytes, horizon=done.horizon)

"""Carrying out what `plan` allows, table by table, and then the rows that hung on what is gone.

Guarantee: after the horizon is raised nobody reads what is below it, so a run that is interrupted leaves tables and
rows that the next one removes, and no wrong answer. A table that somebody uses is left for another time, and said.
One run at a time; how far it is, and what the last one did, is in `prune_report`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import psycopg
import structlog
from psycopg import sql
from psycopg.types.json import Jsonb

from clock.retention.plan import DatapointDay, Kept, Limits, LogRange, PrunePlan, plan_pruning, ranges_of
from clock.retention.rows import KINDS, Progress, count_rows, read_bounds, remove_rows
from timers.working_set import database_now
from tocsin.core.db import Connection, fetch_all, fetch_one, fetch_value, statement
from tocsin.core.errors import Refused
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import LOCK_TIMEOUT

_log = structlog.get_logger()
_COMMITS_AT_ONCE = 1000
_SERIES_AT_ONCE = 1000
_IN_USE = (LOCK_TIMEOUT, psycopg.errors.QueryCanceled)


@dataclass
class Pruned:
    tables: list[str] = field(default_factory=list)
    """Partitions that are dropped."""
    bytes: int = 0
    events_kept: int = 0
    horizon: int | None = None
    rows: dict[str, int] = field(default_factory=dict)
    """How many rows are gone, by table."""
    left: list[Kept] = field(default_factory=list)
    """What was allowed to go and is in use."""


async def read_plan(connection: Connection, settings: Settings) -> PrunePlan:
    tables = await fetch_all(connection, "clock.retention/list_log_tables")
    days = await fetch_all(connection, "clock.retention/list_datapoint_tables")
    dead_age = {"dead_age": timedelta(days=settings.dead_action_retention_d)}
    limits = await fetch_one(connection, "clock.retention/read_limits", dead_age)
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


async def count_prunable(connection: Connection, settings: Settings, planned: PrunePlan) -> dict[str, int]:
    """How many rows of each table would go after the plan, at most: events that it keeps aside keep their alarms."""
    horizon = planned.ranges[-1].until if planned.ranges else 1
    day = planned.days[-1].day + timedelta(days=1) if planned.days else None
    bounds = await read_bounds(connection, settings, horizon, day)
    counts = {kind.table: await count_rows(connection, kind, bounds) for kind in KINDS}
    return {table: count for table, count in counts.items() if count}


async def prune(
    connection: Connection, settings: Settings, tell: Progress | None = None, *, rest: float = 0.0
) -> Pruned:
    """One run. Needs a session of the schema's owner, outside of a transaction. `rest`: see `remove_rows`."""
    await connection.execute(statement("clock.retention/bound_wait"))
    async with _turn(connection):
        await connection.execute(statement("clock.retention/begin_report"))
        done = Pruned()
        try:
            await _drop_partitions(connection, settings, done, tell)
            await _report(connection, done)
            await _remove_rows(connection, settings, done, tell, rest)
            if done.tables or done.rows:
                await _record(connection, done)
        except psycopg.Error as error:
            if not connection.closed:
                _leave(done, "what was still to do", f"it failed: {_first_line(error)}")
                await _report(connection, done, ended=True)
            raise
        await _report(connection, done, ended=True)
    return done


async def _drop_partitions(
    connection: Connection, settings: Settings, done: Pruned, tell: Progress | None
) -> None:
    planned = await read_plan(connection, settings)
    for one in planned.ranges:
        await _drop_range(connection, one, settings, done, tell)
        if done.left:
            break
    for day in planned.days:
        await _keep_last(connection, day)
        await _drop(connection, day.table, day.bytes, done, tell)


@asynccontextmanager
async def _turn(connection: Connection) -> AsyncIterator[None]:
    if not await fetch_value(connection, "clock.retention/take_turn"):
        raise Refused(
            "old records are being removed at this moment", remedy="`tocsin doctor` shows how far it is"
        )
    try:
        yield
    finally:
        if not connection.closed:
            await connection.execute(statement("clock.retention/end_turn"))


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


async def _keep_last(connection: Connection, day: DatapointDay) -> None:
    """What a replay of later days begins with."""
    last: tuple[str, str] | None = ("", "")
    while last is not None:
        given = {"owner": last[0], "key": last[1], "start": day.start, "most": _SERIES_AT_ONCE}
        last = await fetch_one(connection, "clock.retention/keep_last_datapoints", given)


async def _drop(connection: Connection, table: str, bytes: int, done: Pruned, tell: Progress | None) -> None:
    try:
        parent = await fetch_one(connection, "clock.retention/read_parent", {"table": table})
        if parent is not None:
            begun = statement("clock.retention/finish_detach")
            detach = begun if parent[1] else statement("clock.retention/detach")
            await connection.execute(_named(detach, parent=parent[0], table=table))
        await connection.execute(_named(statement("clock.retention/drop_table"), table=table))
    except _IN_USE as error:
        _leave(done, table, f"somebody uses it: {_first_line(error)}")
        return
    except psycopg.errors.InsufficientPrivilege:
        _leave(done, table, "only the owner of the schema may drop it: run `tocsin prune` as that role")
        return
    done.tables.append(table)
    done.bytes += bytes
    if tell is not None:
        tell(table, 0)


async def _remove_rows(
    connection: Connection, settings: Settings, done: Pruned, tell: Progress | None, rest: float
) -> None:
    bounds = await read_bounds(connection, settings)
    for kind in KINDS:
        try:
            gone = await remove_rows(connection, kind, bounds, rest=rest, tell=tell)
        except _IN_USE as error:
            _leave(done, kind.table, f"somebody uses it: {_first_line(error)}")
            continue
        except psycopg.Error as error:
            if connection.closed:
                raise
            # One row that cannot be read must not keep all the others for ever.
            _leave(done, kind.table, f"it failed: {_first_line(error)}")
            continue
        if gone:
            done.rows[kind.table] = gone
        await _report(connection, done)
    await _forget_commits(connection)


def _leave(done: Pruned, table: str, why: str) -> None:
    done.left.append(Kept(table, why))
    _log.warning("could not be removed, trying again later", table=table, why=why)


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0]


def _named(query: bytes, **tables: str) -> sql.Composed:
    identifiers = {key: sql.Identifier(table) for key, table in tables.items()}
    return sql.SQL(query.decode()).format(**identifiers)


async def _forget_commits(connection: Connection) -> None:
    most = {"most": _COMMITS_AT_ONCE}
    while True:
        if await fetch_value(connection, "clock.retention/forget_commits", most) < _COMMITS_AT_ONCE:
            return


async def _report(connection: Connection, done: Pruned, *, ended: bool = False) -> None:
    removed = {**({"partitions": len(done.tables)} if done.tables else {}), **done.rows}
    left = [one._asdict() for one in done.left]
    given = {"removed": Jsonb(removed), "left": Jsonb(left), "ended": ended}
    await connection.execute(statement("clock.retention/write_report"), given)


async def _record(connection: Connection, done: Pruned) -> None:
    payload = {
        "tables": done.tables,
        "bytes": done.bytes,
        "events_kept": done.events_kept,
        "horizon": done.horizon,
        "rows": done.rows,
    }
    event = NewEvent(await database_now(connection), "derived", "log-pruned", payload)
    try:
        await append_events(connection, [event])
    except _IN_USE as error:
        _leave(done, "the event log-pruned", f"somebody holds the log: {_first_line(error)}")
    _log.info("pruned", tables=len(done.tables), bytes=done.bytes, horizon=done.horizon, **done.rows)

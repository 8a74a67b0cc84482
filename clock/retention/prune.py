"""Carries out a prune plan: drops partitions, then deletes the rows that belonged to them.

Guarantee: after the horizon is raised no reader uses records below it, so an interrupted run leaves
tables and rows that the next one removes, and no wrong result. A table that is in use is left for
the next run, and that is logged. One run at a time. Its progress, and the result of the last run,
are in `prune_report`.
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

from clock.retention.plan import DatapointDay, KeptItem, Limits, LogRange, PrunePlan, plan_pruning, ranges_of
from clock.retention.rows import ROW_KINDS, Progress, count_rows, read_bounds, remove_rows
from timers.working_set import database_now
from tocsin.core.db import Connection, fetch_all, fetch_one, fetch_value, statement
from tocsin.core.errors import Refused
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings
from tocsin.core.sql_errors import LOCK_TIMEOUT

_log = structlog.get_logger()
_COMMITS_PER_CHUNK = 1000
_SERIES_PER_CHUNK = 1000
_IN_USE = (LOCK_TIMEOUT, psycopg.errors.QueryCanceled)


@dataclass
class Pruned:
    """The result of a run."""

    tables: list[str] = field(default_factory=list)
    """Dropped partitions."""
    bytes: int = 0
    events_kept: int = 0
    horizon: int | None = None
    rows: dict[str, int] = field(default_factory=dict)
    """Deleted rows by table."""
    left: list[KeptItem] = field(default_factory=list)
    """Tables that could not be pruned, each with the reason."""


async def read_plan(connection: Connection, settings: Settings) -> PrunePlan:
    tables = await fetch_all(connection, "clock.retention/list_log_tables")
    days = await fetch_all(connection, "clock.retention/list_datapoint_tables")
    dead_age = {"dead_age": timedelta(days=settings.dead_action_retention_d)}
    limits = await fetch_one(connection, "clock.retention/read_limits", dead_age)
    assert limits is not None
    size = tables[0][2] if tables else 1
    ranges = ranges_of(
        [(name, bytes) for name, _, _, bytes, _ in tables],
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
    """The largest number of rows of each table that would be deleted after the plan.

    Events that are kept for their rule also keep their alarms.
    """
    horizon = planned.ranges[-1].until if planned.ranges else 1
    day = planned.days[-1].day + timedelta(days=1) if planned.days else None
    bounds = await read_bounds(connection, settings, horizon, day)
    counts = {kind.table: await count_rows(connection, kind, bounds) for kind in ROW_KINDS}
    return {table: count for table, count in counts.items() if count}


async def prune(
    connection: Connection,
    settings: Settings,
    on_progress: Progress | None = None,
    *,
    rest_factor: float = 0.0,
) -> Pruned:
    """Prune once. Needs a session of the schema's owner, outside of a transaction.

    `rest_factor` is explained in `remove_rows`.
    """
    await connection.execute(statement("clock.retention/set_lock_timeout"))
    async with _only_run(connection):
        await connection.execute(statement("clock.retention/begin_report"))
        done = Pruned()
        try:
            await _drop_partitions(connection, settings, done, on_progress)
            await _write_report(connection, done)
            await _remove_rows(connection, settings, done, on_progress, rest_factor)
            if done.tables or done.rows:
                await _append_event(connection, done)
        except psycopg.Error as error:
            if not connection.closed:
                _note_left(done, "the rest of the run", f"it failed: {_first_line(error)}")
                await _write_report(connection, done, ended=True)
            raise
        await _write_report(connection, done, ended=True)
    return done


async def _drop_partitions(
    connection: Connection, settings: Settings, done: Pruned, on_progress: Progress | None
) -> None:
    planned = await read_plan(connection, settings)
    for log_range in planned.ranges:
        await _drop_range(connection, log_range, settings, done, on_progress)
        if done.left:
            break
    for day in planned.days:
        await _copy_last_datapoints(connection, day)
        if not await _drop(connection, day.table, day.bytes, done, on_progress):
            # Postgres detaches one partition of a table at a time.
            break


@asynccontextmanager
async def _only_run(connection: Connection) -> AsyncIterator[None]:
    """Hold the lock that allows one run at a time; `Refused` if another run has it."""
    if not await fetch_value(connection, "clock.retention/lock_run"):
        raise Refused("another prune is running", remedy="`tocsin doctor` shows its progress")
    try:
        yield
    finally:
        if not connection.closed:
            await connection.execute(statement("clock.retention/unlock_run"))


async def _drop_range(
    connection: Connection,
    log_range: LogRange,
    settings: Settings,
    done: Pruned,
    on_progress: Progress | None,
) -> None:
    bounds = {"until": log_range.until, "per_rule": settings.keep_events_per_rule}
    done.events_kept += int(await fetch_value(connection, "clock.retention/raise_horizon", bounds))
    done.horizon = log_range.until
    for table in log_range.tables:
        await _drop(connection, table, log_range.bytes // len(log_range.tables), done, on_progress)


async def _copy_last_datapoints(connection: Connection, day: DatapointDay) -> None:
    """Keep the last datapoint of each series, with which a replay of later days begins."""
    last: tuple[str, str] | None = ("", "")
    while last is not None:
        chunk = {"owner": last[0], "key": last[1], "start": day.start, "limit": _SERIES_PER_CHUNK}
        last = await fetch_one(connection, "clock.retention/keep_last_datapoints", chunk)


async def _drop(
    connection: Connection, table: str, bytes: int, done: Pruned, on_progress: Progress | None
) -> bool:
    """Detach and drop a partition; False if it is left for the next run."""
    try:
        parent = await fetch_one(connection, "clock.retention/read_parent", {"table": table})
        if parent is not None:
            finish = statement("clock.retention/finish_detach")
            detach = finish if parent[1] else statement("clock.retention/detach")
            await connection.execute(_with_names(detach, parent=parent[0], table=table))
        await connection.execute(_with_names(statement("clock.retention/drop_table"), table=table))
    except psycopg.errors.InsufficientPrivilege:
        # A role that does not own the schema: the server drops it, with a short lock of the parent.
        return await _drop_as_service(connection, table, bytes, done, on_progress)
    except _IN_USE as error:
        _note_left(done, table, f"it is in use: {_first_line(error)}")
        return False
    except psycopg.errors.ObjectNotInPrerequisiteState as error:
        _note_left(done, table, f"another one is being detached: {_first_line(error)}")
        return False
    _note_dropped(done, table, bytes, on_progress)
    return True


async def _drop_as_service(
    connection: Connection, table: str, bytes: int, done: Pruned, on_progress: Progress | None
) -> bool:
    try:
        await connection.execute(statement("clock.retention/drop_partition"), {"table": table})
    except _IN_USE as error:
        _note_left(done, table, f"it is in use: {_first_line(error)}")
        return False
    except psycopg.errors.InsufficientPrivilege:
        _note_left(done, table, "this role may not drop it: `tocsin roles check` shows what it lacks")
        return False
    _note_dropped(done, table, bytes, on_progress)
    return True


def _note_dropped(done: Pruned, table: str, bytes: int, on_progress: Progress | None) -> None:
    done.tables.append(table)
    done.bytes += bytes
    if on_progress is not None:
        on_progress(table, 0)


async def _remove_rows(
    connection: Connection, settings: Settings, done: Pruned, on_progress: Progress | None, rest_factor: float
) -> None:
    bounds = await read_bounds(connection, settings)
    for kind in ROW_KINDS:
        try:
            deleted = await remove_rows(
                connection, kind, bounds, rest_factor=rest_factor, on_progress=on_progress
            )
        except _IN_USE as error:
            _note_left(done, kind.table, f"it is in use: {_first_line(error)}")
            continue
        except psycopg.Error as error:
            if connection.closed:
                raise
            # One unreadable row must not keep all the other tables from being pruned.
            _note_left(done, kind.table, f"it failed: {_first_line(error)}")
            continue
        if deleted:
            done.rows[kind.table] = deleted
        await _write_report(connection, done)
    await _forget_commits(connection)


def _note_left(done: Pruned, table: str, why: str) -> None:
    done.left.append(KeptItem(table, why))
    _log.warning("pruning a table failed, trying again later", table=table, why=why)


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0]


def _with_names(query: bytes, **tables: str) -> sql.Composed:
    identifiers = {key: sql.Identifier(table) for key, table in tables.items()}
    return sql.SQL(query.decode()).format(**identifiers)


async def _forget_commits(connection: Connection) -> None:
    most = {"most": _COMMITS_PER_CHUNK}
    while True:
        if await fetch_value(connection, "clock.retention/forget_commits", most) < _COMMITS_PER_CHUNK:
            return


async def _write_report(connection: Connection, done: Pruned, *, ended: bool = False) -> None:
    removed = {**({"partitions": len(done.tables)} if done.tables else {}), **done.rows}
    left = [item._asdict() for item in done.left]
    report = {"removed": Jsonb(removed), "left": Jsonb(left), "ended": ended}
    await connection.execute(statement("clock.retention/write_report"), report)


async def _append_event(connection: Connection, done: Pruned) -> None:
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
        _note_left(done, "the event log-pruned", f"the log is locked: {_first_line(error)}")
    _log.info("pruned", tables=len(done.tables), bytes=done.bytes, horizon=done.horizon, **done.rows)

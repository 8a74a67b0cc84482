"""Applies the migrations that a database lacks, and rejects a database with another history.

Guarantee: all missing versions are applied together or not at all, by one migrator while the others
wait. A service rejects a database that lacks a version, or whose recorded versions are not those of
this program: one was edited, has another name, or is unknown.

Why one transaction: an upgrade that fails half-way leaves the database at the version that it had.
Services that work meanwhile may hold what a version locks, or lock it in another order. Then the
transaction is started again, a few times.

On failure: `Refused` names the database, the version and the remedy.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import psycopg
import structlog

from tocsin.core.db import Connection, fetch_all, fetch_value, statement
from tocsin.core.errors import Refused

_log = structlog.get_logger()
_ATTEMPTS = 10
_PAUSE_S = 1.0
_LOST_RACE = (psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable)


@dataclass(frozen=True)
class Migration:
    number: int
    name: str
    sql: bytes

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql).hexdigest()


@cache
def versions() -> tuple[Migration, ...]:
    folder = files("migrations") / "versions"
    scripts = sorted(
        (entry.name, entry.read_bytes()) for entry in folder.iterdir() if entry.name.endswith(".sql")
    )
    return tuple(Migration(int(name[:4]), name.removesuffix(".sql"), sql) for name, sql in scripts)


async def migrate(connection: Connection, known: tuple[Migration, ...] | None = None) -> list[str]:
    """Apply the missing versions and return their names."""
    known = versions() if known is None else known
    for attempt in range(1, _ATTEMPTS):
        try:
            return await _migrate(connection, known)
        except _LOST_RACE as error:
            _log.warning("migration starts again", attempt=attempt, error=error)
            await asyncio.sleep(_PAUSE_S)
    try:
        return await _migrate(connection, known)
    except _LOST_RACE as error:
        raise Refused(
            f"nothing was migrated: other sessions hold the locks that it needs ({str(error).splitlines()[0]})",
            remedy="stop the workers and the clock, or end the session that `pg_stat_activity` shows, and try again",
        ) from None


async def _migrate(connection: Connection, known: tuple[Migration, ...]) -> list[str]:
    applied_now: list[str] = []
    async with connection.transaction():
        await _lock_migrations(connection)
        await connection.execute(statement("migrations/bound_locks"))
        applied = await _applied(connection)
        _refuse_other_history(connection, applied, known)
        for version in known:
            if version.number in applied:
                continue
            await connection.execute(version.sql)
            await connection.execute(
                statement("migrations/record_migration"), (version.number, version.name, version.checksum)
            )
            applied_now.append(version.name)
    for name in applied_now:
        _log.info("migration applied", version=name)
    return applied_now


async def _lock_migrations(connection: Connection) -> None:
    """Create the table of the migrations, if it does not exist, and lock it.

    `create table if not exists` fails if another migrator creates the table at the same time: it waits
    for that migrator, and then violates a unique index of the catalog.
    """
    await connection.execute(statement("migrations/wait_for_locks"))
    try:
        async with connection.transaction():
            await connection.execute(statement("migrations/create_migration_table"))
    except (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable):
        _log.info("another migrator has created the table of the migrations")
    await connection.execute(statement("migrations/lock_migrations"))


async def refuse_unmigrated(connection: Connection) -> None:
    """Services call this: they never change the schema by themselves."""
    has_table = await fetch_value(connection, "migrations/find_migration_table")
    applied = await _applied(connection) if has_table else {}
    _refuse_other_history(connection, applied, versions())
    missing = [version.name for version in versions() if version.number not in applied]
    if missing:
        raise Refused(
            f"database {connection.info.dbname!r} lacks the migrations {', '.join(missing)}",
            remedy="run `tocsin migrate`",
        )


async def _applied(connection: Connection) -> dict[int, tuple[str, str]]:
    rows = await fetch_all(connection, "migrations/list_migrations")
    return {number: (name, checksum) for number, name, checksum in rows}


def _refuse_other_history(
    connection: Connection, applied: dict[int, tuple[str, str]], known: tuple[Migration, ...]
) -> None:
    database = connection.info.dbname
    by_number = {version.number: version for version in known}
    for number, (name, checksum) in sorted(applied.items()):
        version = by_number.get(number)
        if version is None:
            raise Refused(
                f"database {database!r} has migration {name!r}, which this version of tocsin does not know",
                remedy="run the newer tocsin that applied it",
            )
        if version.name != name:
            raise Refused(
                f"database {database!r} has migration {name!r} where this version of tocsin has {version.name!r}",
                remedy="use an empty database (with `tocsin up`, another --data directory), or run the version of "
                "tocsin that created this one",
            )
        if version.checksum != checksum:
            raise Refused(
                f"in database {database!r}, migration {name!r} was edited after it was applied",
                remedy="restore the file, and put the change into a new migration",
            )

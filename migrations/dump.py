"""What all migrations add up to, as text: `schema.sql`, for people to read and for a test to hold equal.

Guarantee: the text depends on the migrations alone, not on the server's version, its owner's name or the order of
its catalogue. Why our own: pg_dump writes its version and a random token, and needs to be installed.

    TOCSIN_POSTGRES=... python -m migrations.dump

rewrites `schema.sql` from a database that has all migrations; `python -m tests.migrations` does the same with a
server of its own. On failure: `Refused` if the database lacks a migration.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from migrations.runner import refuse_unmigrated
from tocsin.core.db import Connection, connect, fetch_all
from tocsin.core.settings import Settings, read_settings

SCHEMA = Path(__file__).parent / "schema.sql"
_HEADER = (
    "-- The schema that all migrations add up to. Written by `python -m tests.migrations`; do not edit.\n"
)


async def describe(connection: Connection) -> str:
    await refuse_unmigrated(connection)
    rows = await fetch_all(connection, "migrations/describe_schema")
    role = connection.info.user
    lines = [_HEADER]
    for rank, _, part, definition in rows:
        begins_entry = rank != 1 or part == 0
        lines.append(("\n" if begins_entry else "") + definition.replace(f"{role}=", "owner="))
    return "\n".join(lines).replace(f"/{role}}}", "/owner}") + "\n"


async def refresh(settings: Settings) -> None:
    connection = await connect(settings, "dump")
    try:
        SCHEMA.write_text(await describe(connection), encoding="utf-8")
    finally:
        await connection.close()


if __name__ == "__main__":
    asyncio.run(refresh(read_settings()))

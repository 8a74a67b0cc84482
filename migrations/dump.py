"""Writes `schema.sql`: the schema that all migrations add up to, as one executable file.

Guarantee: running the file on an empty database gives the same schema as `tocsin migrate`,
including the rows that say which versions it has. The text depends on the migrations alone, not on
the version of the server, the name of the owner or the order of the catalog.

Why not pg_dump: it writes its own version and a random token, and it has to be installed.

    TOCSIN_POSTGRES=... python -m migrations.dump

rewrites the file from a database that has all migrations. `python -m tests.migrations` does the
same with a server of its own. On failure: `Refused` if the database lacks a migration.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from migrations.runner import refuse_unmigrated
from tocsin.core.db import Connection, fetch_all, open_session, statement
from tocsin.core.settings import Settings, read_settings

SCHEMA = Path(__file__).parent / "schema.sql"
_HEADER = """\
-- The schema that all migrations add up to, from the catalog of Postgres. Do not edit: `python -m tests.migrations`
-- writes it. The reasons are in migrations/versions. Executable on an empty database:
--
--     psql --single-transaction --set ON_ERROR_STOP=1 --file migrations/schema.sql
"""


async def describe(connection: Connection) -> str:
    async with connection.transaction():
        await refuse_unmigrated(connection)
        await connection.execute(statement("migrations/qualify_names"))
        rows = await fetch_all(connection, "migrations/describe_schema")
    lines = [("\n" if begins_object else "") + definition for begins_object, definition in rows]
    return "\n".join([_HEADER.rstrip("\n"), *lines]) + "\n"


async def refresh(settings: Settings) -> None:
    async with open_session(settings, "dump") as connection:
        SCHEMA.write_text(await describe(connection), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(refresh(read_settings()))

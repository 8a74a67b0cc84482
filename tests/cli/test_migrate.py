"""`tocsin migrate` on an empty database."""

from __future__ import annotations

import asyncio

from tests.cdc.published_records import with_long_timeouts
from tests.cli.conftest import CommandLine
from tests.conftest import with_database
from tocsin.core.db import connect
from tocsin.core.settings import Settings


def test_migrate_brings_an_empty_database_up_to_date_once(tocsin: CommandLine, settings: Settings) -> None:
    name = f"{settings.namespace}_empty"

    async def execute(text: bytes) -> None:
        connection = await connect(with_long_timeouts(settings), "test")
        await connection.execute(text)
        await connection.close()

    asyncio.run(execute(f"create database {name}".encode()))
    try:
        tocsin.environment["TOCSIN_POSTGRES"] = with_database(settings.postgres, name)
        applied = tocsin("migrate", "--json").json
        assert applied["applied"][0] == "0001_time_settings_and_audit"
        assert applied["applied"][-1] == applied["at"]
        assert tocsin("migrate").out == f"the database is up to date, at {applied['at']}\n"
        assert tocsin("schedules").exit_code == 0
    finally:
        asyncio.run(execute(f"drop database {name} with (force)".encode()))

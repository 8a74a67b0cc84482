"""A failover of the service's database to a standby that lacks its last commits."""

from __future__ import annotations

import random
from typing import Any

from tests.client.service import publish, until_acknowledged, until_handled
from tests.sql import all_rows
from tocsin.core.db import Connection
from tocsin.core.settings import Settings

_TABLES = ("tocsin_inbox", "tocsin_inbox_ahead", "effect")


async def copy_tables(connection: Connection) -> dict[str, list[Any]]:
    """The content of the service's database, as an asynchronous standby has it at this instant."""
    async with connection.transaction():
        await connection.execute("set transaction isolation level repeatable read")
        return {
            table: [tuple(row.values()) for row in await all_rows(connection, f"select * from {table}")]
            for table in _TABLES
        }


async def fail_over(connection: Connection, standby: dict[str, list[Any]]) -> None:
    """Replace the database by its standby. Every session of the service ends, as with its server."""
    async with connection.transaction():
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name like 'tocsin consume%%' and datname = current_database()",
            (),
        )
        await connection.execute(f"lock table {', '.join(_TABLES)} in access exclusive mode")
        await connection.execute(f"truncate {', '.join(_TABLES)}")
        for table, rows in standby.items():
            for row in rows:
                values = ", ".join(["%s"] * len(row))
                await connection.execute(f"insert into {table} values ({values})", row)


async def publish_and_fail_over(
    settings: Settings,
    connection: Connection,
    chance: random.Random,
    consumer: str,
    first: int,
    *,
    at_once: int,
) -> int:
    """Publish records, and fail over to older and older standbys in between; returns the last record."""
    await until_handled(connection, [first])
    standbys, last = [await copy_tables(connection)], first
    for _ in range(chance.randint(2, 4)):
        last = await publish(settings, connection, chance.randint(1, at_once))
        if chance.random() < 0.5:
            await until_handled(connection, range(first, last + 1))
            await until_acknowledged(settings, consumer)
        standbys.append(await copy_tables(connection))
        if chance.random() < 0.7:
            del standbys[chance.randint(1, len(standbys)) :]
            await fail_over(connection, standbys[-1])
    return last

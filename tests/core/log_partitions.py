"""Partitions of the record log, small enough for a test to fill several."""

from __future__ import annotations

from tests.sql import all_rows
from tocsin.core.db import Connection


async def partitions(connection: Connection) -> list[str]:
    rows = await all_rows(
        connection,
        "select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid"
        " where c.relkind = 'r' order by 1",
    )
    return [row["relname"] for row in rows]


async def small_partitions(connection: Connection, size: int) -> None:
    """Ranges of `size` records, from the beginning of an empty log."""
    for name in await partitions(connection):
        await connection.execute(f'drop table tocsin."{name}"'.encode())
    await connection.execute("update tocsin.log_head set partition_size = %s", (size,))
    await connection.execute("select tocsin.extend_log()")

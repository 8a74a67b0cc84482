"""A real, durable Postgres of our own for one benchmark, migrated and empty."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from psycopg.conninfo import make_conninfo

from migrations.runner import migrate
from tocsin.core.db import Connection, connect, open_session, statement
from tocsin.core.settings import Settings
from tocsin.embedded import Servers, embedded_servers


@contextmanager
def bench_servers() -> Iterator[Servers]:
    with (
        tempfile.TemporaryDirectory(prefix="tocsin-bench-") as folder,
        embedded_servers(Path(folder)) as servers,
    ):
        yield servers


@asynccontextmanager
async def migrated(servers: Servers) -> AsyncIterator[tuple[Settings, Connection]]:
    """Settings and an open connection; the database is the server's only one."""
    settings = Settings(postgres=make_conninfo(servers.postgres_url), nats=servers.nats_url)
    async with open_session(settings, "bench") as connection:
        await migrate(connection)
        await connection.execute(statement("bench/unbound_session"))
        yield settings, connection


async def hold_snapshot(settings: Settings) -> Connection:
    """What a long report or a forgotten session does: nothing dead can be removed while it lives."""
    holder = await connect(settings.model_copy(update={"lease_ttl_s": 60.0}), "bench snapshot")
    await holder.execute(statement("bench/never_time_out"))
    await holder.execute(statement("bench/begin_snapshot"))
    await holder.execute(statement("bench/read_leader"))
    return holder

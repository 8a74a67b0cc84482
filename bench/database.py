"""A durable Postgres for one benchmark, migrated and empty."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from psycopg.conninfo import make_conninfo

from migrations.runner import migrate
from tocsin.core.db import Connection, connect, open_service_session, statement
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
    """Settings and an open connection to the only database of the server."""
    settings = Settings(postgres=make_conninfo(servers.postgres_url), nats=servers.nats_url)
    async with open_service_session(settings, "bench") as connection:
        await migrate(connection)
        await connection.execute(statement("bench/disable_statement_timeout"))
        yield settings, connection


async def hold_snapshot(settings: Settings) -> Connection:
    """A session as of a long report: Postgres removes no dead row while it is open."""
    holder = await connect(settings.model_copy(update={"lease_ttl_s": 60.0}), "bench snapshot")
    await holder.execute(statement("bench/disable_idle_timeout"))
    await holder.execute(statement("bench/begin_snapshot"))
    await holder.execute(statement("bench/read_leader"))
    return holder

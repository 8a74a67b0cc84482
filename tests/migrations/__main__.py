"""Writes migrations/schema.sql with a server of its own: `python -m tests.migrations`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from migrations.dump import refresh
from migrations.runner import migrate
from tocsin.core.db import connect
from tocsin.core.settings import Settings
from tocsin.embedded import embedded_postgres


async def _refresh(settings: Settings) -> None:
    connection = await connect(settings, "migrate")
    await migrate(connection)
    await connection.close()
    await refresh(settings)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, embedded_postgres(Path(folder), durable=False) as postgres:
        asyncio.run(_refresh(Settings(postgres=postgres.url)))

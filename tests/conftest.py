"""One pair of real servers per run, a database cloned from a migrated template and a namespace per test."""

from __future__ import annotations

import asyncio
import itertools
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from migrations.runner import migrate
from tests.databases import clone_template, drop_database, make_template
from tocsin.core.db import Connection, connect
from tocsin.core.settings import Settings
from tocsin.embedded import Servers, embedded_servers

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """In memory where the machine has a place for that: cloning a database is mostly writing files."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="tocsin-tests-", dir=place) as folder,
        embedded_servers(Path(folder), durable=False) as started,
    ):
        yield started


@pytest.fixture(scope="session")
def template(servers: Servers) -> str:
    """A migrated database that is cloned, never used."""
    make_template(servers.postgres_url)

    async def apply() -> None:
        settings = Settings(postgres=with_database(servers.postgres_url, "tocsin_template"))
        connection = await connect(settings, "template")
        await migrate(connection)
        await connection.close()

    asyncio.run(apply())
    return servers.postgres_url


@pytest.fixture
def settings(servers: Servers, template: str) -> Iterator[Settings]:
    """Points at a fresh database, and at a namespace of its own in NATS."""
    name = f"test_{next(_numbers)}"
    clone_template(template, name)
    yield Settings(
        postgres=with_database(template, name),
        nats=servers.nats_url,
        namespace=name,
        lease_ttl_s=1.0,
        log_format="console",
    )
    drop_database(template, name)


@pytest.fixture
async def connection(settings: Settings) -> AsyncIterator[Connection]:
    opened = await connect(settings, "test")
    try:
        yield opened
    finally:
        await opened.close()


def with_database(url: str, name: str) -> str:
    return psycopg.conninfo.make_conninfo(url, dbname=name)

"""A database that was never migrated, for tests of the migrations themselves."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest

from migrations.runner import migrate
from tests.conftest import with_database
from tests.databases import create_database, drop_database
from tocsin.core.db import Connection, connect
from tocsin.core.settings import Settings
from tocsin.embedded import Servers

_numbers = itertools.count(1)


@pytest.fixture
async def empty(servers: Servers) -> AsyncIterator[Settings]:
    name = f"empty_{next(_numbers)}"
    create_database(servers.postgres_url, name)
    yield Settings(postgres=with_database(servers.postgres_url, name), lease_ttl_s=60.0)
    drop_database(servers.postgres_url, name)


@pytest.fixture
async def fresh(empty: Settings) -> AsyncIterator[Connection]:
    """A session on the empty database."""
    connection = await connect(empty, "migrator")
    yield connection
    await connection.close()


@pytest.fixture
async def migrated(servers: Servers) -> AsyncIterator[Connection]:
    """A session on a database with all migrations and nothing else: no grants, and no time for tests."""
    name = f"migrated_{next(_numbers)}"
    create_database(servers.postgres_url, name)
    there = Settings(postgres=with_database(servers.postgres_url, name), lease_ttl_s=60.0)
    connection = await connect(there, "migrated")
    await migrate(connection)
    yield connection
    await connection.close()
    drop_database(servers.postgres_url, name)

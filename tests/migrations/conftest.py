"""A database that was never migrated, for tests of the migrations themselves."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest

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

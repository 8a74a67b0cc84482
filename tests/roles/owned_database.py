"""A database that an ordinary role migrated, and sessions of other roles in it.

The roles belong to the server. They are created once and stay.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from migrations.runner import migrate
from tests.cdc.published_records import smaller, with_long_timeouts
from tests.databases import create_database, drop_database
from tocsin.core.db import Connection, connect
from tocsin.core.settings import Settings

OWNER = "schema_owner"
STRANGER = "stranger"


@pytest.fixture
async def owned(settings: Settings, template: str) -> AsyncIterator[Settings]:
    """Settings of the owner of the schema, who is no superuser."""
    name = f"{settings.namespace}_owned"
    create_database(template, name)
    with psycopg.connect(template, autocommit=True) as server:
        for role in (f"{STRANGER} login", f"{OWNER} login createrole"):
            with suppress(psycopg.errors.DuplicateObject):
                server.execute(f"create role {role}".encode())
        server.execute(f"alter database {name} owner to {OWNER}".encode())
    there = smaller(settings, postgres=make_conninfo(settings.postgres, dbname=name, user=OWNER))
    schema_owner = await connect(with_long_timeouts(there), "migrate")
    await migrate(schema_owner)
    await schema_owner.close()
    yield there
    drop_database(template, name)


async def as_role(settings: Settings, role: str) -> Connection:
    return await connect(
        with_long_timeouts(smaller(settings, postgres=make_conninfo(settings.postgres, user=role))), role
    )

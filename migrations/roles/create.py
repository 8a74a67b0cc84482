"""Creates the roles and gives them their rights, in one transaction.

On failure: `Refused`, if the session may not create roles or does not own the schema. Nothing is
changed then.
"""

from __future__ import annotations

import psycopg

from migrations.roles.script import grant_statements, role_statements
from tocsin.core.db import Connection, fetch_value
from tocsin.core.errors import Refused


async def create_roles(connection: Connection) -> None:
    """Create the roles that do not exist, and give all of them exactly the rights that are decided."""
    try:
        async with connection.transaction():
            for statement in role_statements():
                await connection.execute(statement.encode())
            await _grant(connection)
    except psycopg.errors.InsufficientPrivilege as error:
        raise Refused(
            f"role {connection.info.user!r} cannot create the roles: {error.diag.message_primary}",
            remedy="run it as the owner of the schema, with CREATEROLE, or as a superuser",
        ) from None


async def grant_again(connection: Connection) -> bool:
    """Give the roles their rights on what a migration has added; false if there are no roles."""
    if not await fetch_value(connection, "migrations.roles/has_roles"):
        return False
    async with connection.transaction():
        await _grant(connection)
    return True


async def _grant(connection: Connection) -> None:
    for statement in grant_statements():
        await connection.execute(statement.encode())

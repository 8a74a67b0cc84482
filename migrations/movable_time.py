"""Lets the sessions of a test database set their time.

Guarantee: without this call, which only the owner of the schema can make, no setting moves the time of
a database: the record log and the audit have the time of the server. `tocsin doctor` is red in a
database where it was made.
"""

from __future__ import annotations

from tocsin.core.db import Connection, statement


async def let_sessions_set_time(connection: Connection) -> None:
    """From now on `tocsin.instant()` returns the setting `tocsin.now` of the session, if it has one."""
    await connection.execute(statement("migrations/set_time_by_session"))

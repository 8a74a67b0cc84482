"""New tz data, as a clock applies it."""

from __future__ import annotations

from timers.tz_update import TzUpdate
from tocsin.core.db import Connection, fetch_value


async def apply_tz_data(connection: Connection, version: str) -> int:
    """Apply the data of this process under the name of a version. Returns how many ticks moved."""
    update = TzUpdate(await fetch_value(connection, "clock/read_epoch"), version)
    assert await update.update_ticks(connection)
    return update.moved

"""Waits for what the worker stored, and reads dead letters."""

from __future__ import annotations

from typing import Any

import nats

from rules.lanes.dead_letters import read_dead_letters
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.core.db import Connection
from tocsin.core.settings import Settings


async def stored_series(connection: Connection, count: int) -> dict[tuple[str, str], Any]:
    """The current values of all series, when there are `count`."""
    found: dict[tuple[str, str], Any] = {}

    async def are_stored() -> bool:
        rows = await all_rows(connection, "select owner, key, value, labels, ts from tocsin.current_value")
        found.clear()
        found.update({(row["owner"], row["key"]): row for row in rows})
        return len(found) >= count

    await eventually(are_stored, f"{count} series are stored")
    return found


async def stored_events(connection: Connection, type: str, count: int) -> list[dict[str, Any]]:
    """The events of a type, when there are `count`."""
    rows: list[dict[str, Any]] = []

    async def are_stored() -> bool:
        rows[:] = await all_rows(
            connection, "select * from tocsin.event where type = %s order by seq", [type]
        )
        return len(rows) >= count

    await eventually(are_stored, f"{count} events of type {type} are stored")
    return rows


async def dead_requests(settings: Settings) -> list[dict[str, Any]]:
    bus = await nats.connect(settings.nats.split(","))
    try:
        return await read_dead_letters(bus.jetstream(), settings, "request", 100)
    finally:
        await bus.close()

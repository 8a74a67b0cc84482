"""The health of systems, for a person to look at."""

from __future__ import annotations

from typing import Any

from tocsin.core.db import Connection, fetch_dicts


async def list_health(connection: Connection) -> list[dict[str, Any]]:
    """By name; of each system the members that are not ok, the worst first, and since when a fact about it waits."""
    return await fetch_dicts(connection, "rules.health/list_health")

"""Reads the health of systems for operators."""

from __future__ import annotations

from typing import Any

from tocsin.core.db import Connection, fetch_dicts


async def list_health(connection: Connection) -> list[dict[str, Any]]:
    """The systems by name, with their members that are not ok.

    `waiting_since` is the instant of the first undecided observation.
    """
    return await fetch_dicts(connection, "rules.health/list_health")

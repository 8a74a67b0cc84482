"""Reads alarms for operators: one by its id, or many by filters, with their history.

Guarantee: reads only. An id may be shortened as long as it identifies one alarm.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from tocsin.core.db import Connection, fetch_dicts
from tocsin.core.id_prefix import IdPrefix

Row = dict[str, Any]
UNRESOLVED = ("pending", "open")
STATES = (*UNRESOLVED, "resolved")


async def find_alarm(connection: Connection, text: str) -> Row:
    """The alarm with an id, or with an id that begins with `text`."""
    prefix = IdPrefix(text, "alarm", "tocsin alarms --state all")
    return prefix.only(await fetch_dicts(connection, "rules.alarms/find_alarms", prefix.bounds()))


async def list_alarms(
    connection: Connection,
    *,
    states: Sequence[str] = UNRESOLVED,
    rule: str | None = None,
    owner: str | None = None,
    owners: Sequence[str] | None = None,
    min_severity: int = 0,
    limit: int = 100,
) -> list[Row]:
    """The most severe first; with `owners`, only of these patterns."""
    filters = {
        "states": list(states),
        "rule": rule,
        "owner": owner,
        "owners": None if owners is None else list(owners),
        "severity": min_severity,
        "limit": limit,
    }
    return await fetch_dicts(connection, "rules.alarms/list_alarms", filters)


async def list_alarm_events(connection: Connection, alarm_id: uuid.UUID) -> list[Row]:
    return await fetch_dicts(connection, "rules.alarms/list_alarm_events", {"alarm_id": alarm_id})


async def list_alarm_runs(connection: Connection, alarm_id: uuid.UUID) -> list[Row]:
    return await fetch_dicts(connection, "rules.alarms/list_alarm_runs", {"alarm_id": alarm_id})


async def list_alarm_timers(connection: Connection, alarm_id: uuid.UUID) -> list[Row]:
    return await fetch_dicts(connection, "rules.alarms/list_alarm_timers", {"alarm_id": alarm_id})

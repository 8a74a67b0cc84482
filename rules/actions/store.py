"""Reads a run, its events and its alarm.

Guarantee: the reads take no lock and return the current state: an alarm has the state of this
moment, not the one at which the run started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from rules.actions.run import ActionRun, RunFacts
from schemas.fields import ALARM_FIELDS
from schemas.wire.event_facts import event_facts
from tocsin.core.db import Connection, fetch_dict, statement
from tocsin.core.errors import InvalidInput

MAX_EVENTS = 100


async def read_run(connection: Connection, id: UUID) -> ActionRun | None:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("rules.actions/read_action"), {"id": id})
        row = await cursor.fetchone()
    return None if row is None else ActionRun(**{**row, "lineage": tuple(row["lineage"])})


async def read_facts(connection: Connection, run: ActionRun) -> RunFacts:
    """`InvalidInput` if retention has removed the event from the log."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            statement("rules.actions/read_action_events"), {"id": run.id, "limit": MAX_EVENTS}
        )
        events = tuple(event_facts(row) for row in await cursor.fetchall())
        alarm: dict[str, Any] | None = None
        if run.alarm_id is not None:
            await cursor.execute(statement("rules.actions/read_alarm"), {"id": run.alarm_id})
            alarm = await cursor.fetchone()
    if not events:
        raise InvalidInput("the event that started this run is no longer in the log")
    return RunFacts(events[0], events, _alarm_facts(alarm))


async def read_event(connection: Connection, seq: int) -> dict[str, Any] | None:
    row = await fetch_dict(connection, "rules.actions/read_event", {"seq": seq})
    return None if row is None else event_facts(row)


def _alarm_facts(row: Mapping[str, Any] | None) -> dict[str, Any]:
    if row is None:
        return {**dict.fromkeys(ALARM_FIELDS, ""), "severity": 0, "payload": {}}
    return {**row, "id": str(row["id"])}

"""Reads a run, its events and its alarms.

Guarantee: the reads take no lock and return the current state: an alarm has the state of this
moment, not the one at which the run started. A run of a group has the alarms of all its events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from rules.actions.run import ActionRun, RunFacts
from schemas.fields import ALARM_FIELDS
from schemas.wire.event_facts import event_facts
from tocsin.core.db import Connection, fetch_dict, fetch_dicts, statement
from tocsin.core.errors import InvalidInput

MAX_EVENTS = 100


async def read_run(connection: Connection, id: UUID) -> ActionRun | None:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("rules.actions/read_action"), {"id": id})
        row = await cursor.fetchone()
    return None if row is None else ActionRun(**{**row, "lineage": tuple(row["lineage"])})


async def read_facts(connection: Connection, run: ActionRun, *, is_notification: bool = False) -> RunFacts:
    """`InvalidInput` if retention has removed the event from the log.

    A notification needs its alarms only: they can be open for longer than events are kept."""
    if is_notification:
        alarms = await read_alarms(connection, run)
        return RunFacts({}, (), alarms[0] if alarms else NO_ALARM, alarms)
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(
            statement("rules.actions/read_action_events"), {"id": run.id, "limit": MAX_EVENTS}
        )
        events = tuple(event_facts(row) for row in await cursor.fetchall())
    alarms = await read_alarms(connection, run) if run.alarm_id is not None else ()
    if not events:
        raise InvalidInput("the event that started this run is no longer in the log")
    alarm = next((alarm for alarm in alarms if alarm["id"] == str(run.alarm_id)), None)
    return RunFacts(events[0], events, NO_ALARM if alarm is None else alarm, alarms)


async def read_alarms(connection: Connection, run: ActionRun) -> tuple[dict[str, Any], ...]:
    """The alarms of all events of a run, as they are now."""
    rows = await fetch_dicts(connection, "rules.actions/read_alarms_of_run", {"id": run.id})
    return tuple({**row, "id": str(row["id"])} for row in rows)


async def read_event(connection: Connection, seq: int) -> dict[str, Any] | None:
    row = await fetch_dict(connection, "rules.actions/read_event", {"seq": seq})
    return None if row is None else event_facts(row)


async def read_resolutions(connection: Connection, alarms: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The events with which alarms resolved, by the ids of the alarms."""
    if not alarms:
        return {}
    rows = await fetch_dicts(connection, "rules.actions/read_resolutions", {"alarms": list(alarms)})
    return {str(row["alarm_id"]): event_facts(row) for row in rows}


NO_ALARM: Mapping[str, Any] = {**dict.fromkeys(ALARM_FIELDS, ""), "severity": 0, "payload": {}}
"""The facts of a run without an alarm."""

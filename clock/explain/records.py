"""Reads the records for `explain`: the schedule, its changes, its fires and its misses.

Guarantee: nothing is locked. The schedule is read before the log, so an occurrence that fires
meanwhile is seen as fired, never as absent.

On failure: `Refused` if there is no such schedule.
"""

from __future__ import annotations

from datetime import datetime

from clock.explain.explanation import Explanation, ScheduleRecords, explain, possible_ids
from clock.explain.history import default_instant, history_of, last_instant
from timers.recurrence.recurrence import as_utc
from timers.schedules import find_schedule
from tocsin.core.db import Connection, fetch_dicts, fetch_value
from tocsin.core.errors import Refused


async def explain_schedule(
    connection: Connection, owner: str, name: str, now: datetime, asked: datetime | None = None
) -> Explanation:
    """Explain the occurrence at `asked`, by default the latest one."""
    row = await find_schedule(connection, owner, name)
    if row is None:
        of_owner = f" of owner {owner!r}" if owner else ""
        raise Refused(f"there is no schedule {name!r}{of_owner}", remedy="`tocsin schedules` lists them")
    key = {"owner": owner, "name": name}
    history = history_of(row, await fetch_dicts(connection, "clock.explain/list_changes", key))
    now = as_utc(now, "now")
    asked = default_instant(row, history, now) if asked is None else as_utc(asked, "asked")
    fires = await fetch_dicts(
        connection, "clock.explain/find_fires", {"ids": list(possible_ids(row, history, asked))}
    )
    missed = await fetch_dicts(
        connection,
        "clock.explain/list_missed",
        {**key, "asked": asked, "until": last_instant(asked)},
    )
    by_id = {fire["id"].hex: fire for fire in fires}
    return explain(ScheduleRecords(row, history, asked, now, by_id, missed, await _log_from(connection)))


async def _log_from(connection: Connection) -> datetime | None:
    began_at: datetime | None = await fetch_value(connection, "clock.explain/read_log_beginning")
    return began_at

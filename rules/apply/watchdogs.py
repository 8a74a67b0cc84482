"""Re-arms the watchdogs of series whose datapoint_type changes.

Guarantee: after an apply a fresh series is watched exactly if its type has an interval, with the
tolerance of that type. The watchdog of a series whose type was removed is deleted. A series that a
new type covers is watched from its last arrival on. A deadline is never before the watermark of the
partition: a shorter tolerance counts from the change, and makes nothing stale in the past. A stale
series stays stale until a datapoint arrives.

Why in the apply: an arrival would re-arm the watchdog, but a series without data has no arrivals.
Re-arming 100,000 series takes three seconds, in which no batch commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from rules.engine import TypeIndex
from rules.lanes.batch import Writes
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.instant import MICROSECOND


class ChangedWatchdogs(Writes):
    def __init__(self, tolerances: Mapping[str, timedelta | None]) -> None:
        """The tolerance of each changed key; None: it is no longer watched."""
        self._disarmed = [key for key, tolerance in tolerances.items() if tolerance is None]
        self._armed = {
            key: tolerance // MICROSECOND for key, tolerance in tolerances.items() if tolerance is not None
        }

    async def timers(self, connection: Connection) -> None:
        if self._disarmed:
            await connection.execute(statement("rules.apply/disarm_watchdogs"), {"keys": self._disarmed})
        if self._armed:
            await connection.execute(
                statement("rules.apply/arm_watchdogs"),
                {"keys": list(self._armed), "within_us": list(self._armed.values())},
            )


async def read_tolerances(
    connection: Connection, before: TypeIndex, after: TypeIndex
) -> dict[str, timedelta | None]:
    """The new tolerance of each existing key whose tolerance changes."""
    if before.types == after.types:
        return {}
    rows = await fetch_all(connection, "rules.alarms/list_keys")
    return {
        key: after.stale_after(key) for (key,) in rows if before.stale_after(key) != after.stale_after(key)
    }

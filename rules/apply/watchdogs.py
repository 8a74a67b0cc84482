"""Re-arms the watchdogs of series whose datapoint_type changes.

Guarantee: after an apply a fresh series is watched if, and only if, its type has an interval. It
becomes stale after the `interval` times the `tolerance` of that type (`stale_after`). The watchdog
of a series whose type was removed is deleted. A series that a new type covers is watched from its
last arrival on. A deadline is never before the watermark of the partition, so a shorter time makes
no series stale at an instant before the change. A stale series stays stale until a datapoint
arrives.

Why the apply does this: otherwise only the next arrival would re-arm the watchdog, and a series
that has stopped has none. Re-arming 100,000 series takes three seconds, in which no batch commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from rules.engine import TypeIndex
from rules.lanes.batch import Writes
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.instant import MICROSECOND


class ChangedWatchdogs(Writes):
    """Disarms and re-arms the watchdogs of the keys whose `stale_after` changes."""

    def __init__(self, stale_after: Mapping[str, timedelta | None]) -> None:
        """`stale_after` has the new time of each key, or None if the key is no longer watched."""
        self._disarmed = [key for key, time in stale_after.items() if time is None]
        self._armed = {key: time // MICROSECOND for key, time in stale_after.items() if time is not None}

    async def write_timers(self, connection: Connection) -> None:
        if self._disarmed:
            await connection.execute(statement("rules.apply/disarm_watchdogs"), {"keys": self._disarmed})
        if self._armed:
            await connection.execute(
                statement("rules.apply/arm_watchdogs"),
                {"keys": list(self._armed), "within_us": list(self._armed.values())},
            )


async def read_changed_stale_after(
    connection: Connection, before: TypeIndex, after: TypeIndex
) -> dict[str, timedelta | None]:
    """The new `stale_after` of each existing key for which it changes."""
    if before.types == after.types:
        return {}
    rows = await fetch_all(connection, "rules.alarms/list_keys")
    return {
        key: after.stale_after(key) for (key,) in rows if before.stale_after(key) != after.stale_after(key)
    }

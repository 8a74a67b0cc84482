"""The watchdogs of series whose datapoint_type changes.

Guarantee: after an apply a fresh series is watched exactly if its type has a cadence, with the tolerance of that type:
one that was watched by a type that is gone is not, and one that a new type covers is, from its last arrival on. A
deadline never lies before `watermark` of the partition: a tighter tolerance counts from the change, and calls
nothing stale in the past. A series that is stale stays so until a datapoint arrives: an edit takes no verdict back.

Why at once: an arrival would set it right, but a series that is silent has none. Re-arming 100,000 series takes three
seconds, in which no batch commits.
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
        """By key, of those that changed; None: it is not watched any more."""
        self._gone = [key for key, within in tolerances.items() if within is None]
        self._armed = {key: within // MICROSECOND for key, within in tolerances.items() if within is not None}

    async def timers(self, connection: Connection) -> None:
        if self._gone:
            await connection.execute(statement("rules.apply/disarm_watchdogs"), {"keys": self._gone})
        if self._armed:
            await connection.execute(
                statement("rules.apply/arm_watchdogs"),
                {"keys": list(self._armed), "within_us": list(self._armed.values())},
            )


async def read_tolerances(
    connection: Connection, before: TypeIndex, after: TypeIndex
) -> dict[str, timedelta | None]:
    """Of the keys that have ever been seen and whose tolerance changes."""
    if before.types == after.types:
        return {}
    rows = await fetch_all(connection, "rules.alarms/list_keys")
    return {
        key: after.stale_after(key) for (key,) in rows if before.stale_after(key) != after.stale_after(key)
    }

"""The systems and their members, when documents change.

Guarantee: after an apply every system has exactly the members that its document names, with the series that were seen,
and the apply's own append rolls all of them up. Of a system that is gone a last verdict says that nobody judges
it any more, so that no alarm over its health is left behind.

The log is locked before the rows are, because every append changes them under that lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import uuid4

from clock.record_log import NewCalculated, Records
from rules.applying.decisions import Decided
from rules.health.members import MemberRow, Members
from rules.health.rollup import Weights
from rules.health.writing import member_columns
from rules.lanes.phases import Writes
from schemas.calculated import HEALTH_KEY
from schemas.severities import severities
from tocsin.core.db import Connection, statement


class ChangedSystems(Writes):
    """After all other entities: see above."""

    def __init__(self, names: Sequence[str], rows: Sequence[MemberRow], at: datetime) -> None:
        self._names = names
        self._rows = rows
        self._at = at
        self._gone: list[NewCalculated] = []

    async def entities(self, connection: Connection) -> None:
        await connection.execute(statement("rules.applying/lock_log"))
        gone = await connection.execute(statement("rules.applying/delete_systems"), {"names": self._names})
        self._gone = [_last(name, health, self._at) for name, health in await gone.fetchall()]
        if not self._names:
            return
        weights = Weights.among(len(severities()))
        await connection.execute(
            statement("rules.applying/put_systems"), {"names": self._names, **weights._asdict()}
        )
        columns = member_columns(self._rows)
        await connection.execute(statement("rules.applying/delete_members"), columns)
        await connection.execute(statement("rules.applying/put_members"), columns)

    def records(self) -> Records:
        return Records(calculated=self._gone)


async def read_systems(connection: Connection, decided: Decided, at: datetime) -> list[ChangedSystems]:
    """One, or none if no document changes that health depends on."""
    if decided.systems is None:
        return []
    members = Members(decided.systems)
    rows = await (
        await connection.execute(
            statement("rules.datapoints/list_keys_of_owners"), {"owners": members.owners}
        )
    ).fetchall()
    seen: dict[str, list[str]] = {}
    for owner, key in rows:
        seen.setdefault(owner, []).append(key)
    names = sorted(one.name for one in decided.systems)
    return [ChangedSystems(names, members.rows(seen, decided.after), at)]


def _last(name: str, health: str, at: datetime) -> NewCalculated:
    payload = {"health": "unknown", "reason": "uncovered", "was": health, "members": []}
    return NewCalculated(name, HEALTH_KEY, at, "health", payload, uuid4())

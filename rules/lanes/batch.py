"""A batch in phases: timers, then entities, then one append for all records.

Guarantee: however many kinds of work join a batch, its transaction takes locks in the global order
and appends once, at the end. Each kind of work locks its own rows in key order. The kinds come in
the order of the entities that they lock (current_value, rule_state, alarm, action). Several kinds
of work change actions, so the actions of all of them are locked together, in key order, before the
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from tocsin.core.db import Connection, statement
from tocsin.core.record_log import append_records
from tocsin.core.records import NewRecords


class Writes:
    """The part of a batch's transaction that one kind of work adds.

    It is made without a lock, from what was read before. If that has changed, any method raises
    `Conflict`.
    """

    async def stage(self, connection: Connection) -> None:
        """Copy rows to the session, before the first lock."""

    async def write_timers(self, connection: Connection) -> None:
        """Lock, delete and arm timers, in the order of (kind, ref, key)."""

    def actions_to_lock(self) -> Iterable[UUID]:
        """The existing actions that `write_entities` will lock."""
        return ()

    async def write_entities(self, connection: Connection) -> None:
        """Write entities in key order, verified by version."""

    def records_to_append(self) -> NewRecords:
        """The records to append; called after `write_entities`, whose result they may depend on."""
        return NewRecords()

    def committed(self) -> None:
        """Called after the commit."""


class PhasedPlan:
    def __init__(self, works: Sequence[Writes]) -> None:
        self._works = works

    async def stage(self, connection: Connection) -> None:
        for work in self._works:
            await work.stage(connection)

    async def write(self, connection: Connection) -> None:
        for work in self._works:
            await work.write_timers(connection)
        unlocked = sorted({id for work in self._works for id in work.actions_to_lock()})
        for work in self._works:
            if unlocked and any(work.actions_to_lock()):
                await connection.execute(statement("rules.lanes/lock_actions"), {"ids": unlocked})
                unlocked = []
            await work.write_entities(connection)
        await append_records(connection, NewRecords.joined(work.records_to_append() for work in self._works))

    def committed(self) -> None:
        for work in self._works:
            work.committed()

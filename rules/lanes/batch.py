"""A batch in phases: timers, then entities, then one append for all records.

Guarantee: however many kinds of work join a batch, its transaction locks in the order of the house and appends once,
last. Each kind of work locks its own rows in key order; `works` come in the order of the entities that they lock
(current_value, rule_state, alarm, action). Actions are changed by several kinds of work, so they are locked together,
in key order, before the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from tocsin.core.db import Connection, statement
from tocsin.core.record_log import append_records
from tocsin.core.records import Records


class Writes:
    """What one kind of work adds to a batch's transaction. Made without a lock, from what was read before; where that
    turns out to have changed, any of these raises `Conflict`."""

    async def stage(self, connection: Connection) -> None:
        """Before the first lock: rows on their way to the session."""

    async def timers(self, connection: Connection) -> None:
        """Lock, delete, arm: in the order of (kind, ref, key)."""

    def actions(self) -> Iterable[UUID]:
        """Actions that are there already and that `entities` will lock."""
        return ()

    async def entities(self, connection: Connection) -> None:
        """In key order, verified by version."""

    def records(self) -> Records:
        """What is appended; called after `entities`, so it may depend on which rows were won."""
        return Records()

    def committed(self) -> None:
        """After the commit."""


class PhasedPlan:
    def __init__(self, works: Sequence[Writes]) -> None:
        self._works = works

    async def stage(self, connection: Connection) -> None:
        for work in self._works:
            await work.stage(connection)

    async def write(self, connection: Connection) -> None:
        for work in self._works:
            await work.timers(connection)
        unlocked = sorted({id for work in self._works for id in work.actions()})
        for work in self._works:
            if unlocked and any(work.actions()):
                await connection.execute(statement("rules.lanes/lock_actions"), {"ids": unlocked})
                unlocked = []
            await work.entities(connection)
        await append_records(connection, Records.joined(work.records() for work in self._works))

    def committed(self) -> None:
        for work in self._works:
            work.committed()

"""Begins queued runs (`overlap: queue`): the next one begins when the one before it has ended.

Guarantee: the oldest queued run of an (action_rule, group key) begins in the transaction that ends
the active run. A queued run whose row another transaction had locked at that moment is found by the
record lane (`QueueBackstop`): the end of the other run is a record, so the lane has a batch after
it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rules.lanes.batch import Writes
from schemas.wire.event import Event
from tocsin.core.db import Connection, fetch_all
from tocsin.core.records import NewRecords, NewStep


class QueueBackstop:
    """Takes part in the record lane: begins queued runs that have no active run before them."""

    async def plan(self, connection: Connection, events: Sequence[Event]) -> BeginQueued:
        return BeginQueued(await fetch_all(connection, "rules.actions/list_idle_queues"))


class BeginQueued(Writes):
    def __init__(self, queues: Sequence[tuple[str, str]]) -> None:
        self._queues = queues
        self._steps: list[NewStep] = []

    async def write_entities(self, connection: Connection) -> None:
        if self._queues:
            self._steps = await begin_queued(connection, self._queues)

    def records_to_append(self) -> NewRecords:
        return NewRecords(steps=self._steps)


async def begin_queued(connection: Connection, queues: Sequence[tuple[str, str]]) -> list[NewStep]:
    """Begin the next run of each (action_rule, group key) without an active run.

    Called in the phase of the entities, after the runs that ended were updated. The caller appends
    the first steps, which are returned."""
    columns = {"rules": [rule for rule, _ in queues], "groups": [group for _, group in queues]}
    return [
        NewStep(
            action_id=id,
            name=name,
            owner=owner,
            step=0,
            attempt=1,
            state="due",
            correlation_id=correlation_id,
            source_event_id=event_id,
        )
        for id, name, owner, correlation_id, event_id in await fetch_all(
            connection, "rules.actions/start_queued", columns
        )
    ]

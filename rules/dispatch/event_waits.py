"""Wakes steps that wait for an event, in the record lane.

Guarantee: the step becomes due in the transaction that moves the position of the lane, so an event
wakes it once. Of an event and a timeout at the same moment, the first to lock the run wins.

Why the lane and not the performers: the lane reads every event once and in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from rules.dispatch.wait_matcher import EventWait, MetWait, match_waits
from rules.lanes.batch import Writes
from rules.language.cel.steps import TRIGGER_FIELDS
from schemas.wire.event import Event
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.records import NewRecords, NewStep


class EventWaits:
    """Takes part in the record lane."""

    async def plan(self, connection: Connection, events: Sequence[Event]) -> WakeRuns:
        if not events:
            return WakeRuns([])
        rows = await fetch_all(connection, "rules.dispatch/read_event_waits", {"newest": events[-1].seq})
        waits = [_wait(row) for row in rows]
        return WakeRuns(match_waits(waits, [event.facts() for event in events]) if waits else [])


def _wait(row: Sequence[Any]) -> EventWait:
    run_id, step, attempt, condition, after_seq, *values = row
    trigger = dict(zip(TRIGGER_FIELDS, values, strict=True))
    return EventWait(run_id, step, attempt, condition, after_seq, trigger)


class WakeRuns(Writes):
    def __init__(self, met: Sequence[MetWait]) -> None:
        self._met = met
        self._steps: list[NewStep] = []

    def actions_to_lock(self) -> Iterable[UUID]:
        return {met.wait.run_id for met in self._met}

    async def write_entities(self, connection: Connection) -> None:
        if not self._met:
            return
        columns = {
            "ids": [met.wait.run_id for met in self._met],
            "steps": [met.wait.step for met in self._met],
            "attempts": [met.wait.attempt for met in self._met],
            "seqs": [met.event_seq for met in self._met],
        }
        self._steps = [
            NewStep(
                action_id=id,
                name=name,
                owner=owner,
                step=step,
                attempt=attempt,
                state="due",
                correlation_id=correlation_id,
                source_event_id=event_id,
                result={"met": True},
            )
            for id, name, owner, correlation_id, event_id, step, attempt in await fetch_all(
                connection, "rules.dispatch/wake_actions", columns
            )
        ]
        await connection.execute(statement("rules.dispatch/delete_met_waits"), columns)

    def records_to_append(self) -> NewRecords:
        return NewRecords(steps=self._steps)

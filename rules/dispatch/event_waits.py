"""Wakes steps that wait for an event, in the record lane.

Guarantee: the step becomes due in the transaction that moves the position of the lane, so an event
wakes it once. Of an event and a timeout at the same moment, the first to lock the run wins. All
events after the one that started the run count, also those that the lane had read when the step
began: they are read from the log once, when the lane finds the new wait. The step that begins to
wait is a record, so the lane has a batch after it.

A look back is bounded: the last `MAX_LOOK_BACK` seqs before the step began, and of these the last
`MAX_EVENTS` whose type can meet the condition.

Why the lane and not the performers: the lane reads every event once and in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from rules.dispatch.wait_matcher import EventWait, MetWait, match_waits, types_of
from rules.lanes.batch import Writes
from rules.language.cel.steps import TRIGGER_FIELDS
from schemas.wire.event import Event
from schemas.wire.event_facts import event_facts
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.records import NewRecords, NewStep

MAX_LOOK_BACK = 200_000
MAX_EVENTS = 10_000


class EventWaits:
    """Takes part in the record lane."""

    async def plan(self, connection: Connection, events: Sequence[Event]) -> WakeRuns:
        newest = events[-1].seq if events else 0
        rows = await fetch_all(connection, "rules.dispatch/read_event_waits", {"newest": newest})
        waits: list[EventWait] = []
        new: list[EventWait] = []
        met: list[MetWait] = []
        for row in rows:
            wait, since_seq, is_new = _wait(row), row[5], row[6]
            found = await _look_back(connection, wait, since_seq) if is_new else []
            met += found
            new += [wait] if is_new else []
            waits += [] if found else [wait]
        met += match_waits(waits, [event.facts() for event in events]) if waits and events else []
        return WakeRuns(met, new)


async def _look_back(connection: Connection, wait: EventWait, since_seq: int) -> list[MetWait]:
    """Match the events between the one that started the run and the begin of the wait."""
    bounds = {
        "after": max(since_seq, wait.after_seq - MAX_LOOK_BACK),
        "until": wait.after_seq,
        "types": types_of(wait.condition),
        "limit": MAX_EVENTS,
    }
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement("rules.dispatch/read_events_between"), bounds)
        events = [event_facts(row) for row in await cursor.fetchall()]
    return match_waits([wait._replace(after_seq=since_seq)], events) if events else []


def _wait(row: Sequence[Any]) -> EventWait:
    run_id, step, attempt, condition, after_seq, _, _, *values = row
    trigger = dict(zip(TRIGGER_FIELDS, values, strict=True))
    return EventWait(run_id, step, attempt, condition, after_seq, trigger)


class WakeRuns(Writes):
    def __init__(self, met: Sequence[MetWait], new: Sequence[EventWait] = ()) -> None:
        self._met = met
        self._new = new
        """Waits that have been compared with the earlier events."""
        self._steps: list[NewStep] = []

    def actions_to_lock(self) -> Iterable[UUID]:
        return {wait.run_id for wait in (*self._new, *(met.wait for met in self._met))}

    async def write_entities(self, connection: Connection) -> None:
        if self._new:
            compared = {
                "ids": [wait.run_id for wait in self._new],
                "steps": [wait.step for wait in self._new],
                "attempts": [wait.attempt for wait in self._new],
            }
            await connection.execute(statement("rules.dispatch/end_look_back"), compared)
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

"""Actions that take turns (`overlap: queue`): the next one begins when the one before it has ended.

Guarantee: of one (action_rule, group key), the oldest queued action begins in the transaction that ends the one under
way. One that somebody else held at that very moment is found by the record lane (`Turns`): the end of the other is a
record, so the lane has a batch after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rules.actions.store import Action
from rules.lanes.batch import Writes
from schemas.wire.event import Event
from tocsin.core.db import Connection, statement
from tocsin.core.records import NewStep, Records


class Turns:
    """Joins the record lane: begins what is queued behind nothing."""

    async def plan(self, connection: Connection, events: Sequence[Event]) -> BeginQueued:
        rows = await connection.execute(statement("rules.actions/find_turns"))
        return BeginQueued([(rule, group) for rule, group in await rows.fetchall()])


class BeginQueued(Writes):
    def __init__(self, turns: Sequence[tuple[str, str]]) -> None:
        self._turns = turns
        self._steps: list[NewStep] = []

    async def entities(self, connection: Connection) -> None:
        if self._turns:
            self._steps = await begin_queued(connection, self._turns)

    def records(self) -> Records:
        return Records(steps=self._steps)


async def begin_turns(connection: Connection, ended: Sequence[Action]) -> list[NewStep]:
    """In the phase of the entities, after `ended` were updated; the first steps of what begins, to be appended."""
    return await begin_queued(connection, [(one.rule, one.group_key) for one in ended])


async def begin_queued(connection: Connection, turns: Sequence[tuple[str, str]]) -> list[NewStep]:
    """The same for pairs of (action_rule, group key)."""
    columns = {"rules": [rule for rule, _ in turns], "groups": [group for _, group in turns]}
    cursor = await connection.execute(statement("rules.actions/start_queued"), columns)
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
        for id, name, owner, correlation_id, event_id in await cursor.fetchall()
    ]

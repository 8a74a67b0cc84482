"""The alarms that hold, when the rules change.

Guarantee: what `state_changes` decides is written as everything else about alarms is (`AlarmBatch`), in the apply's own
transaction, a page at a time: timers first, then states and alarms; and events for the one append. The partitions are
locked, so only the clock could change a state meanwhile; then `Conflict` is raised, and the apply begins again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple

from rules.alarms.batch_writes import AlarmBatch, StoredState, Subject
from rules.alarms.rule_change import StateChange, change_state
from rules.engine import RuleState
from tocsin.core.db import Connection, statement
from tocsin.core.records import NewEvent

_AT_ONCE = 250
Complete = Mapping[tuple[str, int], datetime | None]
"""`watermark` by lane and partition."""


class Held(NamedTuple):
    """A state with an alarm, and until when its partition is complete."""

    stored: StoredState
    watermark: datetime | None


class ChangedAlarms(AlarmBatch):
    """Of a page of states that `read_held` gave."""

    def __init__(
        self, held: Mapping[Subject, Held], changes: Mapping[str, StateChange], at: datetime
    ) -> None:
        # Where a state belongs is only asked of new ones, and here are none.
        super().__init__("data", 0, {subject: one.stored for subject, one in held.items()})
        for subject, one in held.items():
            change = changes[subject[0]]
            self.change(subject, partial(change_state, change=change, watermark=one.watermark, at=at))


async def change_alarms(
    connection: Connection, changes: Mapping[str, StateChange], complete: Complete, at: datetime
) -> list[NewEvent]:
    """What is to be appended; the states of rules that have ended are forgotten."""
    events: list[NewEvent] = []
    async for held in read_held(connection, changes, complete):
        page = ChangedAlarms(held, changes, at)
        await page.timers(connection)
        await page.entities(connection)
        events += page.events
    ended = sorted(name for name, change in changes.items() if change.rule is None)
    if ended:
        await connection.execute(statement("rules.apply/delete_states"), {"rules": ended})
    return events


async def read_held(
    connection: Connection, changes: Mapping[str, StateChange], complete: Complete
) -> AsyncIterator[dict[Subject, Held]]:
    """Page by page: what is done with one takes its time, and a session that is idle for long inside of a transaction
    is ended."""
    after: Subject = ("", "")
    query = statement("rules.apply/read_held_states")
    while changes:
        given = {"rules": sorted(changes), "rule": after[0], "owner": after[1], "most": _AT_ONCE}
        rows = await (await connection.execute(query, given)).fetchall()
        if rows:
            after = rows[-1][:2]
            yield {
                (rule, owner): Held(
                    StoredState(RuleState.from_json(state), version, correlation_id),
                    complete.get((lane, partition)),
                )
                for rule, owner, lane, partition, version, state, correlation_id in rows
            }
        if len(rows) < _AT_ONCE:
            return

"""Changes the alarms of rules that an apply changes.

Guarantee: the decisions of `state_changes` are written like every other change of alarms
(`AlarmBatch`), in the transaction of the apply, one chunk at a time: timers first, then states and
alarms. The events are returned for the one append. The partitions are locked, so only the clock can
change a state in the meantime; then `Conflict` is raised, and the apply starts again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple

from rules.alarms.batch_writes import AlarmBatch, StoredState, Subject
from rules.alarms.rule_change import StateChange, change_state
from rules.engine import RuleState
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.records import NewEvent

_CHUNK = 250
Watermarks = Mapping[tuple[str, int], datetime | None]
"""By lane and partition."""


class StateAtWatermark(NamedTuple):
    """A state that has an alarm, and the watermark of its partition."""

    stored: StoredState
    watermark: datetime | None


class ChangedAlarms(AlarmBatch):
    """The changes of one chunk of `read_alarm_states`."""

    def __init__(
        self, states: Mapping[Subject, StateAtWatermark], changes: Mapping[str, StateChange], at: datetime
    ) -> None:
        # The lane and the partition are used for new states only, and there are none.
        super().__init__("data", 0, {subject: state.stored for subject, state in states.items()})
        for subject, state in states.items():
            change = changes[subject[0]]
            self.change(subject, partial(change_state, change=change, watermark=state.watermark, at=at))


async def change_alarms(
    connection: Connection, changes: Mapping[str, StateChange], watermarks: Watermarks, at: datetime
) -> list[NewEvent]:
    """Change the alarms and delete the states of removed rules; returns the events to append."""
    events: list[NewEvent] = []
    async for states in read_alarm_states(connection, changes, watermarks):
        batch = ChangedAlarms(states, changes, at)
        await batch.timers(connection)
        await batch.entities(connection)
        events += batch.events
    ended = sorted(name for name, change in changes.items() if change.rule is None)
    if ended:
        await connection.execute(statement("rules.apply/delete_states"), {"rules": ended})
    return events


async def read_alarm_states(
    connection: Connection, changes: Mapping[str, StateChange], watermarks: Watermarks
) -> AsyncIterator[dict[Subject, StateAtWatermark]]:
    """Yield chunks: Postgres ends a session that is idle for long inside a transaction."""
    after: Subject = ("", "")
    while changes:
        parameters = {"rules": sorted(changes), "rule": after[0], "owner": after[1], "most": _CHUNK}
        rows = await fetch_all(connection, "rules.apply/read_alarm_states", parameters)
        if rows:
            after = rows[-1][:2]
            yield {
                (rule, owner): StateAtWatermark(
                    StoredState(RuleState.from_json(state), version, correlation_id),
                    watermarks.get((lane, partition)),
                )
                for rule, owner, lane, partition, version, state, correlation_id in rows
            }
        if len(rows) < _CHUNK:
            return

"""Changes the alarms of rules that an apply changes.

Guarantee: the changes that `rules.alarms.rule_change.state_changes` decided are written like every
other change of alarms (`AlarmBatch`), in the transaction of the apply, one chunk at a time: timers
first, then states and alarms. The events are returned for the one append. The apply has locked
every partition, so no worker changes a state. If the clock changes one, `Conflict` is raised and
the apply starts again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple

from rules.alarms.batch_writes import AlarmBatch, StateKey, StoredState
from rules.alarms.rule_change import StateChange, change_state
from rules.engine import RuleState
from tocsin.core.db import Connection, fetch_all, statement
from tocsin.core.records import NewEvent

_CHUNK = 250
Watermarks = Mapping[tuple[str, int], datetime | None]
"""The watermark of each (lane, partition)."""


class StateAtWatermark(NamedTuple):
    """A state that has an alarm, and the watermark of its partition."""

    stored: StoredState
    watermark: datetime | None


def changed_alarms(
    states: Mapping[StateKey, StateAtWatermark], changes: Mapping[str, StateChange], at: datetime
) -> AlarmBatch:
    """The changes of one chunk of `read_alarm_states`."""
    # The lane and the partition are used for new states only, and there are none.
    batch = AlarmBatch("data", 0, {key: state.stored for key, state in states.items()})
    for key, state in states.items():
        change = partial(change_state, change=changes[key[0]], watermark=state.watermark, at=at)
        batch.change_state(key, change)
    return batch


async def change_alarms(
    connection: Connection, changes: Mapping[str, StateChange], watermarks: Watermarks, at: datetime
) -> list[NewEvent]:
    """Change the alarms and delete the states of removed rules; returns the events to append."""
    events: list[NewEvent] = []
    async for states in read_alarm_states(connection, changes, watermarks):
        batch = changed_alarms(states, changes, at)
        await batch.write_timers(connection)
        await batch.write_entities(connection)
        events += batch.events
    removed_rules = sorted(name for name, change in changes.items() if change.rule is None)
    if removed_rules:
        await connection.execute(statement("rules.apply/delete_states"), {"rules": removed_rules})
    return events


async def read_alarm_states(
    connection: Connection, changes: Mapping[str, StateChange], watermarks: Watermarks
) -> AsyncIterator[dict[StateKey, StateAtWatermark]]:
    """Yield the states in chunks.

    Computing the changes of all of them at once could take so long that Postgres ends the session
    (idle_in_transaction_session_timeout).
    """
    if not changes:
        return
    after: StateKey = ("", "", "")
    while True:
        rule, owner, instance = after
        parameters = {
            "rules": sorted(changes),
            "rule": rule,
            "owner": owner,
            "instance": instance,
            "limit": _CHUNK,
        }
        rows = await fetch_all(connection, "rules.apply/read_alarm_states", parameters)
        if rows:
            after = rows[-1][:3]
            yield {
                (rule, owner, instance): StateAtWatermark(
                    StoredState(RuleState.from_json(state), version, correlation_id),
                    watermarks.get((lane, partition)),
                )
                for rule, owner, instance, lane, partition, version, state, correlation_id in rows
            }
        if len(rows) < _CHUNK:
            return

"""What applying a plan would do beyond the documents: fires that move, alarms that close, actions that go on.

Guarantee: reads only, and decides by the functions that apply uses: `change_state` for alarms, the recurrence that
would be armed for schedules. What it says is true of the moment in which it looked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rules.alarms.rule_change import StateChange, change_state
from rules.apply.actions import UnderWay, count_under_way
from rules.apply.alarms import Held, read_held
from rules.apply.impact import decide
from rules.apply.plan import Key, Plan, plan, read_stored
from rules.apply.schedules import Foreseen, foresee, refuse_orphans
from rules.documents.load import Loaded
from rules.engine import DropPending, Resolve
from tocsin.core.db import Connection, fetch_all


@dataclass(frozen=True)
class AlarmEnd:
    event_rule: str
    owner: str
    since: datetime
    outcome: str
    """resolved, or dropped before it opened"""
    reason: str


@dataclass(frozen=True)
class Preview:
    plan: Plan
    fires: Mapping[Key, Foreseen]
    """Of the schedules that change."""
    alarms: tuple[AlarmEnd, ...]
    under_way: Mapping[Key, UnderWay]
    """Of the action_rules and actions that change."""


async def preview(connection: Connection, loaded: Loaded, now: datetime, *, prune: bool) -> Preview:
    stored = await read_stored(connection)
    planned = plan(loaded, stored, prune=prune)
    await refuse_orphans(connection, planned)
    fires = {change.key: await foresee(connection, change, now) for change in planned.of_kind("schedule")}
    rows = await fetch_all(connection, "rules.apply/read_partitions")
    complete = {(lane, partition): until for lane, partition, until in rows}
    changes = decide(stored, planned).state_changes
    alarms = [
        end
        async for held in read_held(connection, changes, complete)
        for (rule, _), one in held.items()
        if (end := _end(one, changes[rule], now)) is not None
    ]
    return Preview(planned, fires, tuple(alarms), await count_under_way(connection, planned.effective))


def _end(held: Held, change: StateChange, at: datetime) -> AlarmEnd | None:
    alarm = held.stored.state.alarm
    assert alarm is not None, "only such states are read"
    _, effects = change_state(held.stored.state, change, held.watermark, at)
    for effect in effects:
        if isinstance(effect, Resolve):
            return AlarmEnd(alarm.rule, alarm.owner, alarm.since, "resolved", effect.reason)
        if isinstance(effect, DropPending):
            return AlarmEnd(alarm.rule, alarm.owner, alarm.since, "dropped", change.reason)
    return None

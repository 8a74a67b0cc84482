"""What applying a plan would do beyond the documents: fires that move, alarms that close, actions that go on.

Guarantee: reads only, and decides by the functions that apply uses: `switch` for alarms, the recurrence that would be
armed for schedules. What it says is true of the moment in which it looked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rules.applying.actions import UnderWay, count_under_way
from rules.applying.alarms import Fate, Switched, foresee_alarms, planned_fates
from rules.applying.plan import Key, Plan, plan, read_stored
from rules.applying.schedules import Foreseen, foresee, refuse_orphans
from rules.engine import DropPending, Resolve
from rules.loading import Loaded
from tocsin.core.db import Connection, statement


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
    rows = await (await connection.execute(statement("rules.applying/read_partitions"))).fetchall()
    complete = {(lane, partition): until for lane, partition, until in rows}
    decided = planned_fates(stored, planned)
    switched = await foresee_alarms(connection, decided, complete, now)
    ends = (_end(one, decided[one.held.event_rule]) for one in switched)
    alarms = tuple(end for end in ends if end is not None)
    return Preview(planned, fires, alarms, await count_under_way(connection, planned.effective))


def _end(one: Switched, fate: Fate) -> AlarmEnd | None:
    alarm = one.held.state.alarm
    assert alarm is not None
    for effect in one.effects:
        if isinstance(effect, Resolve):
            return AlarmEnd(alarm.rule, alarm.owner, alarm.since, "resolved", effect.reason)
        if isinstance(effect, DropPending):
            return AlarmEnd(alarm.rule, alarm.owner, alarm.since, "dropped", fate.reason)
    return None

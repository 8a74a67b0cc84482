"""Computes the effects of a plan beyond the documents: changed fires, ended alarms, cancelled runs.

Guarantee: it only reads. It computes the effects with the code that an apply uses: `change_state`
for alarms, and for schedules the code that arms them. Later changes of alarms and runs are not
included. `tocsin plan` shows the result, and `tocsin apply --prune` asks with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from rules.alarms.rule_change import StateChange, change_state
from rules.apply.actions import RunImpact, count_active_runs
from rules.apply.alarms import StateAtWatermark, read_alarm_states
from rules.apply.impact import impact_of
from rules.apply.maintenance import NextWindows, preview_windows
from rules.apply.plan import ApplyPlan, DocumentKey, plan_changes, read_stored
from rules.apply.schedules import NextFires, preview_fires, refuse_orphaned_schedules
from rules.documents.load import LoadedDocuments
from rules.engine import DropPending, Resolve
from tocsin.core.db import Connection, fetch_all


@dataclass(frozen=True)
class AlarmEnd:
    event_rule: str
    owner: str
    since: datetime
    outcome: Literal["resolved", "dropped"]
    """`dropped` if the alarm was pending."""
    reason: str


@dataclass(frozen=True)
class Preview:
    plan: ApplyPlan
    fires: Mapping[DocumentKey, NextFires]
    """The next fires of each schedule that changes."""
    alarms: tuple[AlarmEnd, ...]
    runs: Mapping[DocumentKey, RunImpact]
    """The effect on the runs of each action_rule and action that changes."""
    windows: Mapping[DocumentKey, NextWindows] = field(default_factory=dict)
    """The next windows of each maintenance that changes."""


async def preview(connection: Connection, loaded: LoadedDocuments, now: datetime, *, prune: bool) -> Preview:
    """Raises `Refused` for a plan that an apply would refuse."""
    stored = await read_stored(connection)
    plan = plan_changes(loaded, stored, prune=prune)
    await refuse_orphaned_schedules(connection, plan)
    fires = {change.key: await preview_fires(connection, change, now) for change in plan.of_kind("schedule")}
    windows = {
        change.key: await preview_windows(connection, change, now) for change in plan.of_kind("maintenance")
    }
    rows = await fetch_all(connection, "rules.apply/read_partitions")
    watermarks = {(lane, partition): watermark for lane, partition, watermark in rows}
    changes = impact_of(stored, plan).state_changes
    alarms: list[AlarmEnd] = []
    async for states in read_alarm_states(connection, changes, watermarks):
        for (rule, *_), state in states.items():
            end = _alarm_end(state, changes[rule], now)
            if end is not None:
                alarms.append(end)
    runs = await count_active_runs(connection, plan.effective)
    return Preview(plan, fires, tuple(alarms), runs, windows)


def _alarm_end(state: StateAtWatermark, change: StateChange, at: datetime) -> AlarmEnd | None:
    alarm = state.stored.state.alarm
    assert alarm is not None, "only states with an alarm are read"
    _, effects = change_state(state.stored.state, change, state.watermark, at)
    for effect in effects:
        if isinstance(effect, Resolve):
            return AlarmEnd(alarm.rule, alarm.owner, alarm.since, "resolved", effect.reason)
        if isinstance(effect, DropPending):
            # A dropped pending alarm has no event, hence no reason of its own.
            return AlarmEnd(alarm.rule, alarm.owner, alarm.since, "dropped", change.reason)
    return None

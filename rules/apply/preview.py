"""The effects of a plan beyond the documents: changed fires, ended alarms, cancelled runs.

Guarantee: it only reads, and uses the functions that an apply uses: `change_state` for alarms, the
recurrence that would be armed for schedules. The result is true for the instant of the read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rules.alarms.rule_change import StateChange, change_state
from rules.apply.actions import RunImpact, count_active_runs
from rules.apply.alarms import StateAtWatermark, read_alarm_states
from rules.apply.impact import assess
from rules.apply.plan import ApplyPlan, DocumentKey, plan_changes, read_stored
from rules.apply.schedules import NextFires, check_orphans, preview_fires
from rules.documents.load import Loaded
from rules.engine import DropPending, Resolve
from tocsin.core.db import Connection, fetch_all


@dataclass(frozen=True)
class AlarmEnd:
    event_rule: str
    owner: str
    since: datetime
    outcome: str
    """`resolved`, or `dropped` for an alarm that was pending."""
    reason: str


@dataclass(frozen=True)
class Preview:
    plan: ApplyPlan
    fires: Mapping[DocumentKey, NextFires]
    """By schedule that changes."""
    alarms: tuple[AlarmEnd, ...]
    runs: Mapping[DocumentKey, RunImpact]
    """By action_rule and action that changes."""


async def preview(connection: Connection, loaded: Loaded, now: datetime, *, prune: bool) -> Preview:
    stored = await read_stored(connection)
    plan = plan_changes(loaded, stored, prune=prune)
    await check_orphans(connection, plan)
    fires = {change.key: await preview_fires(connection, change, now) for change in plan.of_kind("schedule")}
    rows = await fetch_all(connection, "rules.apply/read_partitions")
    watermarks = {(lane, partition): watermark for lane, partition, watermark in rows}
    changes = assess(stored, plan).state_changes
    alarms = [
        end
        async for states in read_alarm_states(connection, changes, watermarks)
        for (rule, _), state in states.items()
        if (end := _end(state, changes[rule], now)) is not None
    ]
    return Preview(plan, fires, tuple(alarms), await count_active_runs(connection, plan.effective))


def _end(state: StateAtWatermark, change: StateChange, at: datetime) -> AlarmEnd | None:
    alarm = state.stored.state.alarm
    assert alarm is not None, "only states with an alarm are read"
    _, effects = change_state(state.stored.state, change, state.watermark, at)
    for effect in effects:
        if isinstance(effect, Resolve):
            return AlarmEnd(alarm.rule, alarm.owner, alarm.since, "resolved", effect.reason)
        if isinstance(effect, DropPending):
            return AlarmEnd(alarm.rule, alarm.owner, alarm.since, "dropped", change.reason)
    return None

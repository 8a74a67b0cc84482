"""Begins to expect the check-ins of heartbeats that an apply adds or changes.

Guarantee: a heartbeat is expected from the watermark of its partition on, for each of its owners, also
for one that has never checked in. A changed one continues with its new times from there; its alarm and
its runs stay. A replay begins it at the same instant (`rules/replay/memory.py`).

If no worker has run yet, the number of partitions is not known. The heartbeat is then expected from the
apply on, and the first worker places its state (`rules/lanes/data_lane.py`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import datetime
from functools import partial

from rules.alarms.batch_writes import AlarmBatch, StateKey, read_states
from rules.alarms.over_series import OwnerWatermark, plan_batch
from rules.apply.alarms import Watermarks
from rules.apply.impact import Impact
from rules.engine import Effects, HeartbeatRule, RuleState, begin_heartbeat
from rules.health.observations import Observation
from rules.lanes.data_stream import partition_of
from schemas.wire.subjects import token
from tocsin.core.db import Connection, fetch_all
from tocsin.core.records import NewRecords


async def pass_deadlines(
    connection: Connection, watermarks: Watermarks, impact: Impact
) -> tuple[NewRecords, list[Observation]]:
    """Handle what is due before the watermarks, with the rules that held.

    Returns the records to append, and the observations of members.
    """
    records: list[NewRecords] = []
    observations: list[Observation] = []
    for (lane, partition), watermark in sorted(watermarks.items()):
        if lane != "data" or watermark is None or not impact.before.heartbeats:
            continue
        parameters = {"partition": partition, "until": watermark}
        rows = await fetch_all(connection, "rules.alarms/list_due_rechecks", parameters)
        due: defaultdict[str, list[StateKey]] = defaultdict(list)
        for rule, owner, instance in rows:
            due[owner].append((rule, owner, instance))
        if due:
            inputs = [OwnerWatermark(owner, watermark, tuple(keys)) for owner, keys in sorted(due.items())]
            batch = await plan_batch(connection, partition, inputs, impact.before, impact.members)
            await batch.write_timers(connection)
            await batch.write_entities(connection)
            records.append(batch.records_to_append())
            observations += batch.observations
    return replace(NewRecords.joined(records), observations=None), observations


async def begin_heartbeats(
    connection: Connection, watermarks: Watermarks, impact: Impact, at: datetime
) -> NewRecords:
    """Begin the heartbeats that are new or expect other times; returns records to append."""
    rules = {rule.name: rule for rule in impact.after.heartbeats if _is_changed(rule, impact)}
    if not rules:
        return NewRecords()
    rows = await fetch_all(connection, "rules.apply/list_heartbeat_states", {"rules": sorted(rules)})
    keys = {(rule, owner, "") for rule, owner in rows}
    keys |= {(rule.name, owner, "") for rule in rules.values() for owner in rule.owners}
    partitions = sum(lane == "data" for lane, _ in watermarks)
    placed: defaultdict[int, list[StateKey]] = defaultdict(list)
    for key in sorted(keys):
        placed[partition_of(token(key[1]), partitions) if partitions else 0].append(key)
    records = []
    for partition, of_partition in sorted(placed.items()):
        begin = watermarks.get(("data", partition)) or at
        batch = AlarmBatch("data", partition, await read_states(connection, of_partition))
        for key in of_partition:
            rule, owner, _ = key
            batch.change_state(key, partial(_begin, rules[rule], owner, begin))
        await batch.write_timers(connection)
        await batch.write_entities(connection)
        records.append(batch.records_to_append())
    return NewRecords.joined(records)


def _begin(rule: HeartbeatRule, owner: str, at: datetime, state: RuleState) -> tuple[RuleState, Effects]:
    return begin_heartbeat(rule, owner, state, at)


def _is_changed(rule: HeartbeatRule, impact: Impact) -> bool:
    before = impact.before.rules.get(rule.name)
    return before is None or before.fingerprint != rule.fingerprint

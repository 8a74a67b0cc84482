"""Resolves an open alarm for an operator.

Guarantee: the alarm, the state of its rule, the audit row and the event (`alarm-resolved`,
`origin=caused`, with the reason `operator`) commit together or not at all. The partition of the
lane is locked meanwhile, and the event names its position, so that a replay resolves the alarm
between the same two inputs. Deadlines before the watermark happened before.

The rule opens another alarm at its next transition: its series must be clear first. An alarm over
events opens again with the next event that fires.

On failure: `Refused` names the state of the alarm.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from rules.alarms.batch_writes import AlarmBatch, StateKey, read_states
from rules.alarms.operator import OperatorResult, check_note, not_open
from rules.alarms.queries import Row, find_alarm
from rules.engine import Effects, RuleState, advance, resolve_by_operator
from rules.health.observations import Observation
from tocsin.core.audit import Actor, record_audit
from tocsin.core.db import Connection, fetch_one, retrying
from tocsin.core.errors import Conflict
from tocsin.core.instant import MICROSECOND
from tocsin.core.record_log import append_records
from tocsin.core.records import NewRecords

_MAX_ATTEMPTS = 10


async def resolve(connection: Connection, alarm: Row, actor: Actor, note: str = "") -> OperatorResult:
    check_note(note)

    async def once() -> OperatorResult:
        async with connection.transaction():
            return await _resolve(connection, alarm, actor, note)

    for attempt in range(1, _MAX_ATTEMPTS + 1):
        try:
            return await retrying(once)
        except Conflict:
            # The clock fired a sustain of the alarm meanwhile.
            if attempt == _MAX_ATTEMPTS:
                raise
    raise AssertionError("unreachable")


async def _resolve(connection: Connection, alarm: Row, actor: Actor, note: str) -> OperatorResult:
    key: StateKey = (alarm["event_rule"], alarm["owner"], alarm["instance"])
    parameters = dict(zip(("rule", "owner", "instance"), key, strict=True))
    row = await fetch_one(connection, "rules.alarms/lock_lane_of_alarm", parameters)
    states = await read_states(connection, [key])
    state = states[key].state if key in states else None
    if row is None or state is None or state.alarm is None or state.alarm.id != alarm["id"]:
        raise not_open(await find_alarm(connection, str(alarm["id"])), "resolved")
    lane, partition, last_seq, watermark = row
    position = {"lane": lane, "partition": partition, "seq": last_seq, "watermark": _text(watermark)}
    facts = {"who": actor.who, "via": actor.via, "note": note, "position": position}
    at = max(actor.now, state.last_opened_at or actor.now)
    batch = AlarmBatch(lane, partition, states)
    batch.change_state(
        key, lambda before: resolved_state(before, watermark, at, facts, is_over_events=lane == "record")
    )
    if not batch.events or batch.events[-1].payload.get("reason") != "operator":
        raise not_open(await find_alarm(connection, str(alarm["id"])), "resolved")
    event = replace(batch.events[-1], origin="caused")
    events = [*batch.events[:-1], event]
    await batch.write_timers(connection)
    await batch.write_entities(connection)
    new = {"alarm": str(alarm["id"]), "who": actor.who, "note": note}
    await record_audit(connection, actor, "resolve", "alarm", event.rule, owner=event.owner, new=new)
    # In the time of the partition, which later observations about the rule follow.
    observed_at = max((instant for instant in (watermark, state.last_opened_at) if instant), default=at)
    observation = Observation(event.owner, observed_at, "alarm", event.rule, key[2])
    observations = [observation.to_json()] if lane == "data" else None
    return OperatorResult(
        True, await append_records(connection, NewRecords(events, observations=observations))
    )


def resolved_state(
    state: RuleState,
    watermark: datetime | None,
    at: datetime,
    facts: dict[str, Any],
    *,
    is_over_events: bool,
) -> tuple[RuleState, Effects]:
    """The state after an operator resolved its alarm. A replay calls this, too."""
    effects: Effects = ()
    if watermark is not None:
        state, effects = advance(state, watermark - MICROSECOND)
    state, more = resolve_by_operator(state, at, facts, is_over_events=is_over_events)
    return state, effects + more


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.isoformat()

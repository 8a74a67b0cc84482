"""Collects what the engine decides for a batch of inputs, and writes it in the batch's transaction.

It collects new states, alarms, sustain timers and events. The lanes use it through `over_events`
and `over_series`, an apply through `rules.apply`.

Guarantee: an `AlarmBatch` starts from states that were read without a lock, and writes only if they
are still current. If the clock or an apply changed one of them, `write_timers` or `write_entities`
raises `Conflict`: the transaction is rolled back and the batch is planned again. If a sustain fires
while an input clears its alarm, exactly one of them wins, and the row of the timer decides which.

Only the difference between the first and the last state of the batch is written. A sustain that was
armed and cancelled within the batch never reaches the table. The transitions of an alarm are all
written, in order, as events.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import structlog

from rules.alarms.rule_change import StateChange, change_state
from rules.engine import (
    BLANK,
    Alarm,
    Changed,
    Describe,
    DropPending,
    Effect,
    Effects,
    Input,
    MessageFailed,
    Open,
    Pend,
    Resolve,
    Rule,
    RuleState,
    Suppressed,
    pass_time,
    step,
)
from rules.health.observations import Observation, alarm_observations
from rules.lanes.batch import Writes
from rules.lanes.lineage_store import insert_lineages
from schemas.wire.alarm_events import (
    TIMED_TRANSITIONS,
    RuleTransition,
    suppressed_event,
    transition_event,
    transition_event_id,
)
from tocsin.core.columns import column
from tocsin.core.db import Connection, fetch_all, fetch_one, statement
from tocsin.core.errors import Conflict
from tocsin.core.instant import MICROSECOND
from tocsin.core.records import NewEvent, NewRecords

_log = structlog.get_logger()
StateKey = tuple[str, str, str]
"""An event_rule, an owner and an instance: the key of a state."""
StateFunction = Callable[[RuleState], tuple[RuleState, Effects]]


class StoredState(NamedTuple):
    """A state as it was read. The version is 0 if no state is stored."""

    state: RuleState = BLANK
    version: int = 0
    correlation_id: uuid.UUID | None = None


class ArmedSustain(NamedTuple):
    ref: str
    key: str
    at: datetime
    payload: Mapping[str, Any]


@dataclass(slots=True)
class TouchedAlarm:
    """An alarm that the batch changed, as it is at the end of the batch."""

    alarm: Alarm
    correlation_id: uuid.UUID
    is_stored: bool
    state: str = "pending"
    opened_at: datetime | None = None
    resolved_at: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class BatchColumns:
    """Parameters of the statements that write a batch. Empty where there is nothing to write."""

    cancelled: Mapping[str, Any]
    cancelled_count: int
    armed: Mapping[str, Any]
    states: Mapping[str, Any]
    alarms: Mapping[str, Any]


_NOT_STORED = StoredState()


def state_key(rule: Rule, input: Input) -> StateKey:
    """The key of the state that an input concerns."""
    return rule.name, input.owner, rule.instance_of(input)


async def read_keys_with_alarm(connection: Connection, rules: Iterable[str]) -> list[StateKey]:
    """The keys of the states of some rules that have a pending or open alarm."""
    rows = await fetch_all(connection, "rules.alarms/list_keys_with_alarm", {"rules": sorted(rules)})
    return [(rule, owner, instance) for rule, owner, instance in rows]


async def read_states(connection: Connection, wanted: Iterable[StateKey]) -> dict[StateKey, StoredState]:
    keys = sorted(set(wanted))
    if not keys:
        return {}
    rows = await fetch_all(
        connection,
        "rules.alarms/read_rule_states",
        {
            "rules": [rule for rule, _, _ in keys],
            "owners": [owner for _, owner, _ in keys],
            "instances": [instance for _, _, instance in keys],
        },
    )
    return {
        (rule, owner, instance): StoredState(RuleState.from_json(state), version, correlation_id)
        for rule, owner, instance, state, version, correlation_id in rows
    }


class AlarmBatch(Writes):
    """States, alarms and events of one batch.

    Call `freeze` before the transaction if the batch may be large. Computing the rows of a thousand
    alarms takes about a second on a busy machine. Inside the transaction, Postgres could end the
    session as idle.

    The methods are called in the order inputs, `freeze`, `write_timers`, `write_entities`,
    `records_to_append`.
    """

    def __init__(
        self,
        lane: str,
        partition: int,
        stored: Mapping[StateKey, StoredState],
        observed_owners: AbstractSet[str] = frozenset(),
    ) -> None:
        """`observed_owners` are the owners of members of systems. Their alarms become observations."""
        self._lane = lane
        self._partition = partition
        self._stored = stored
        self._states: dict[StateKey, RuleState] = {}
        self._alarms: dict[uuid.UUID, TouchedAlarm] = {}
        self._dropped: list[uuid.UUID] = []
        self._columns: BatchColumns | None = None
        self._observed_owners = observed_owners
        self.events: list[NewEvent] = []
        """The transitions, in the order in which they happened."""
        self.observations: list[Observation] = []
        self._lineages: dict[uuid.UUID, tuple[str, ...]] = {}

    def apply_input(
        self,
        rule: Rule,
        input: Input,
        correlation_id: uuid.UUID | None = None,
        lineage: tuple[str, ...] = (),
    ) -> None:
        """Evaluate an input.

        `correlation_id` is the one of an event. An alarm over datapoints begins a correlation of
        its own. The transitions that the input causes inherit its `lineage`.
        """
        key, first = state_key(rule, input), len(self.events)
        before = self._state(key) if lineage else BLANK
        self.apply_observed(key, lambda state: step(rule, state, input), correlation_id)
        if lineage:
            ids = [event.id for event in self.events[first:]]
            self._lineages |= dict.fromkeys([*ids, *_sustained_event_ids(before, self._state(key))], lineage)

    def keys_to_recheck(self, until: datetime) -> list[StateKey]:
        """The states that the batch changed, and that change again before an instant."""
        states = self._states.items()
        return [key for key, state in states if state.recheck_at is not None and state.recheck_at < until]

    def apply_time(self, rule: Rule, key: StateKey, until: datetime) -> None:
        """Handle what is due before `until` without an input. Inputs at that instant may follow."""
        self.apply_observed(key, lambda state: pass_time(rule, key[1], state, until - MICROSECOND))

    def apply_observed(
        self, key: StateKey, function: StateFunction, correlation_id: uuid.UUID | None = None
    ) -> None:
        effects = self.change_state(key, function, correlation_id)
        if key[1] in self._observed_owners:
            self.observations += alarm_observations(key, effects)

    def apply_rule_changes(self, changes: Mapping[str, StateChange], at: datetime) -> None:
        """Change the states of the rules that an `apply` changed. `at` is the position of the cutover
        in the lane."""
        for key in sorted({*self._stored, *self._states}):
            if key[0] in changes:
                change = changes[key[0]]
                self.change_state(key, partial(change_state, change=change, watermark=at, at=at))

    def change_state(
        self, key: StateKey, function: StateFunction, correlation_id: uuid.UUID | None = None
    ) -> Effects:
        """Replace one state by the result of `function`, and collect its effects."""
        before = self._state(key)
        after, effects = function(before)
        if after is not before:
            self._states[key] = after
        for effect in effects:
            self._collect(key, effect, correlation_id)
        return effects

    def _state(self, key: StateKey) -> RuleState:
        state = self._states.get(key)
        return state if state is not None else self._stored.get(key, _NOT_STORED).state

    def _collect(self, key: StateKey, effect: Effect, correlation_id: uuid.UUID | None) -> None:
        if isinstance(effect, Pend):
            self._touched_alarm(key, effect.alarm, correlation_id)
        elif isinstance(effect, Describe):
            self._touched_alarm(key, effect.alarm, correlation_id).alarm = effect.alarm
        elif isinstance(effect, DropPending):
            # An alarm that began in this batch is not stored yet, so there is nothing to delete.
            touched = self._alarms.pop(effect.alarm_id, None)
            if touched is None or touched.is_stored:
                self._dropped.append(effect.alarm_id)
        elif isinstance(effect, Open):
            touched = self._touched_alarm(key, effect.alarm, correlation_id)
            touched.state, touched.opened_at, touched.alarm = "open", effect.at, effect.alarm
            self._append_transition(touched, "opened", effect)
        elif isinstance(effect, Changed):
            touched = self._touched_alarm(key, effect.alarm, correlation_id)
            touched.state, touched.alarm = "open", effect.alarm
            self._append_transition(touched, "changed", effect)
        elif isinstance(effect, Resolve):
            touched = self._touched_alarm(key, effect.alarm, correlation_id)
            touched.state, touched.resolved_at, touched.reason = "resolved", effect.at, effect.reason
            self._append_transition(touched, "resolved", effect)
        elif isinstance(effect, Suppressed):
            _log.warning("event changed no alarm", rule=key[0], owner=key[1], reason=effect.reason)
            self.events.append(
                suppressed_event(key[0], key[1], effect.at, effect.event_id, effect.depth, effect.reason)
            )
        elif isinstance(effect, MessageFailed):
            _log.warning("message cannot be filled", rule=key[0], owner=key[1], error=effect.error)

    def _append_transition(
        self, touched: TouchedAlarm, transition: RuleTransition, effect: Open | Changed | Resolve
    ) -> None:
        ref = touched.alarm.ref(touched.correlation_id)
        self.events.append(transition_event(ref, transition, effect.at, effect.payload))

    def _touched_alarm(self, key: StateKey, alarm: Alarm, correlation_id: uuid.UUID | None) -> TouchedAlarm:
        touched = self._alarms.get(alarm.id)
        if touched is None:
            stored = self._stored.get(key, _NOT_STORED)
            is_stored = stored.state.alarm is not None and stored.state.alarm.id == alarm.id
            correlation_id = stored.correlation_id if is_stored else correlation_id
            touched = TouchedAlarm(alarm, correlation_id or alarm.id, is_stored)
            self._alarms[alarm.id] = touched
        return touched

    def freeze(self) -> AlarmBatch:
        """Build the columns to write. No input may follow."""
        cancelled: list[ArmedSustain] = []
        armed: list[ArmedSustain] = []
        for key, after in self._states.items():
            old, new = _sustain(self._stored.get(key, _NOT_STORED).state), _sustain(after)
            if old is not None and (new is None or (old.ref, old.key) != (new.ref, new.key)):
                cancelled.append(old)
            if new is not None and new != old:
                armed.append(new)
        # A resolved alarm may have a snooze. Its timer is deleted if there is one, and not counted.
        ended = [
            str(id) for id, alarm in self._alarms.items() if alarm.state == "resolved" and alarm.is_stored
        ]
        self._columns = BatchColumns(
            cancelled=_cancel_columns(cancelled, ended) if cancelled or ended else {},
            cancelled_count=len(cancelled),
            armed=_arm_columns(armed) if armed else {},
            states=self._state_columns() if self._states else {},
            alarms=_alarm_columns(list(self._alarms.values())) if self._alarms else {},
        )
        return self

    def _frozen(self) -> BatchColumns:
        if self._columns is None:
            self.freeze()
        assert self._columns is not None
        return self._columns

    async def write_timers(self, connection: Connection) -> None:
        columns = self._frozen()
        if columns.cancelled:
            row = await fetch_one(connection, "rules.alarms/cancel_sustains", columns.cancelled)
            if row is None or row[0] != columns.cancelled_count:
                raise Conflict("a sustain fired before the batch could cancel it")
        if columns.armed:
            await connection.execute(statement("rules.alarms/arm_sustains"), columns.armed)

    async def write_entities(self, connection: Connection) -> None:
        columns = self._frozen()
        if columns.states:
            row = await fetch_one(connection, "rules.alarms/put_rule_states", columns.states)
            if row is None or row[0] != len(self._states):
                raise Conflict("the state of a rule changed while the batch was being planned")
        if self._dropped:
            await connection.execute(statement("rules.alarms/drop_pending_alarms"), {"ids": self._dropped})
        if columns.alarms:
            await connection.execute(statement("rules.alarms/put_alarms"), columns.alarms)
        await insert_lineages(connection, self._lineages)

    def records_to_append(self) -> NewRecords:
        return NewRecords(events=self.events)

    def _state_columns(self) -> dict[str, Any]:
        keys = list(self._states)
        states = list(self._states.values())
        return {
            "lane": self._lane,
            "partition": self._partition,
            "rules": column(rule for rule, _, _ in keys),
            "owners": column(owner for _, owner, _ in keys),
            "instances": column(instance for _, _, instance in keys),
            "recheck_at": column(state.recheck_at for state in states),
            "phases": column(state.phase for state in states),
            "alarm_ids": column(None if state.alarm is None else state.alarm.id for state in states),
            "states": column(state.to_json() for state in states),
            "versions": column(self._stored.get(key, _NOT_STORED).version for key in keys),
        }


def _sustain(state: RuleState) -> ArmedSustain | None:
    """The timer that a state has armed."""
    if state.alarm is None or state.due_at is None:
        return None
    if state.phase == "pending":
        return ArmedSustain(str(state.alarm.id), "open", state.due_at, state.alarm.payload)
    return ArmedSustain(str(state.alarm.id), "clear", state.due_at, state.resolution or {})


def _sustained_event_ids(before: RuleState, after: RuleState) -> Iterator[uuid.UUID]:
    """The id of the event that the sustain will write which the change to `after` armed."""
    sustain = _sustain(after)
    if sustain is not None and sustain != _sustain(before):
        transition = TIMED_TRANSITIONS[sustain.key].transition
        yield transition_event_id(uuid.UUID(sustain.ref), transition, sustain.at)


def _cancel_columns(cancelled: Sequence[ArmedSustain], ended: Sequence[str]) -> dict[str, Any]:
    return {
        "refs": column([*(sustain.ref for sustain in cancelled), *ended]),
        "keys": column([*(sustain.key for sustain in cancelled), *("snooze" for _ in ended)]),
    }


def _arm_columns(armed: Sequence[ArmedSustain]) -> dict[str, Any]:
    return {
        "refs": column(sustain.ref for sustain in armed),
        "keys": column(sustain.key for sustain in armed),
        "at": column(sustain.at for sustain in armed),
        "payloads": column(sustain.payload for sustain in armed),
    }


def _alarm_columns(touched: Sequence[TouchedAlarm]) -> dict[str, Any]:
    alarms = [alarm.alarm for alarm in touched]
    return {
        "ids": column(alarm.id for alarm in alarms),
        "rules": column(alarm.rule for alarm in alarms),
        "owners": column(alarm.owner for alarm in alarms),
        "instances": column(alarm.instance for alarm in alarms),
        "states": column(change.state for change in touched),
        "severities": column(alarm.severity for alarm in alarms),
        "since": column(alarm.since for alarm in alarms),
        "opened_at": column(change.opened_at for change in touched),
        "resolved_at": column(change.resolved_at for change in touched),
        "reasons": column(change.reason for change in touched),
        "payloads": column(alarm.payload for alarm in alarms),
        "source_event_ids": column(alarm.source_event_id for alarm in alarms),
        "correlation_ids": column(change.correlation_id for change in touched),
    }

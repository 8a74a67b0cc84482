"""What a batch of inputs means: the engine's states and effects, gathered into rows and one list of events.

Guarantee: `Judgement` is made from states that were read without a lock and writes nothing that does not fit them.
`timers` and `entities` raise `Conflict` when the clock or an apply changed one of them meanwhile: the
transaction is rolled back, and the batch is judged again from what is true now. So a sustain that fires and an input
that clears have one winner, decided by the timer's row.

What is written is the difference between the first and the last state of the batch. A sustain that was armed and
cancelled within it never reaches the table; the edges of an alarm all do, in their order, as events.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from rules.alarms.rule_change import Fate, switch
from rules.engine import (
    BLANK,
    Alarm,
    DropPending,
    Effect,
    Effects,
    Input,
    Open,
    Pend,
    Resolve,
    Rule,
    RuleState,
    advance,
    step,
)
from rules.health.observations import Fact, holding_facts
from rules.lanes.batch import Writes
from schemas.wire.alarm_events import transition_event
from tocsin.core.columns import column
from tocsin.core.db import Connection, fetch_one, statement
from tocsin.core.errors import Conflict
from tocsin.core.records import NewEvent, Records

Subject = tuple[str, str]
"""An event_rule and an owner."""
Turn = Callable[[RuleState], tuple[RuleState, Effects]]


class Seen(NamedTuple):
    """A state as it was read; version 0: none is stored."""

    state: RuleState = BLANK
    version: int = 0
    correlation_id: uuid.UUID | None = None


class Sustain(NamedTuple):
    ref: str
    key: str
    at: datetime
    payload: Mapping[str, Any]


@dataclass(slots=True)
class _Held:
    """An alarm that the batch touched, as it is at its end."""

    alarm: Alarm
    correlation_id: uuid.UUID
    stored: bool
    state: str = "pending"
    opened_at: datetime | None = None
    resolved_at: datetime | None = None
    reason: str | None = None


_NOT_SEEN = Seen()


async def read_subjects(connection: Connection, rules: Iterable[str]) -> list[Subject]:
    """Of which owners these rules hold an alarm."""
    cursor = await connection.execute(statement("rules.alarms/list_held_subjects"), {"rules": sorted(rules)})
    return [(rule, owner) for rule, owner in await cursor.fetchall()]


async def read_states(connection: Connection, subjects: Iterable[Subject]) -> dict[Subject, Seen]:
    wanted = sorted(set(subjects))
    if not wanted:
        return {}
    cursor = await connection.execute(
        statement("rules.alarms/read_rule_states"),
        {"rules": [rule for rule, _ in wanted], "owners": [owner for _, owner in wanted]},
    )
    return {
        (rule, owner): Seen(RuleState.from_json(state), version, correlation_id)
        for rule, owner, state, version, correlation_id in await cursor.fetchall()
    }


class Judgement(Writes):
    """`prepare` it before the transaction, where a batch may be large: a thousand alarms are a second of work for a
    busy machine, and a session that is idle inside of a transaction for that long is ended."""

    def __init__(
        self,
        lane: str,
        partition: int,
        seen: Mapping[Subject, Seen],
        followed: AbstractSet[str] = frozenset(),
    ) -> None:
        """`followed`: owners of whose alarms facts are wanted."""
        self._lane = lane
        self._partition = partition
        self._seen = seen
        self._states: dict[Subject, RuleState] = {}
        self._alarms: dict[uuid.UUID, _Held] = {}
        self._dropped: list[uuid.UUID] = []
        self._columns: dict[str, dict[str, Any]] = {}
        self._gone = 0
        self._followed = followed
        self.events: list[NewEvent] = []
        """The edges, in the order in which they happened."""
        self.facts: list[Fact] = []

    def hear(self, rule: Rule, owner: str, given: Input, correlation_id: uuid.UUID | None = None) -> None:
        """`correlation_id` is that of the event that is judged; an alarm over datapoints begins a chain of its own."""
        self._turn((rule.name, owner), given.at, lambda state: step(rule, state, given), correlation_id)

    def advance(self, subject: Subject, until: datetime) -> None:
        """Realise the deadline that is due by then."""
        self._turn(subject, until, lambda state: advance(state, until))

    def _turn(
        self, subject: Subject, at: datetime, turn: Turn, correlation_id: uuid.UUID | None = None
    ) -> None:
        before = self._state(subject)
        self.change(subject, turn, correlation_id)
        if subject[1] in self._followed:
            self.facts += holding_facts(*subject, at, before, self._state(subject))

    def switch(self, fates: Mapping[str, Fate], at: datetime) -> None:
        """The rules changed at an instant of the lane: see `rules.alarms.rule_change`."""
        for subject in sorted({*self._seen, *self._states}):
            if subject[0] in fates:
                self.change(subject, partial(switch, fate=fates[subject[0]], watermark=at, at=at))

    def change(self, subject: Subject, turn: Turn, correlation_id: uuid.UUID | None = None) -> None:
        before = self._state(subject)
        after, effects = turn(before)
        if after is not before:
            self._states[subject] = after
        for effect in effects:
            self._note(subject, effect, correlation_id)

    def _state(self, subject: Subject) -> RuleState:
        known = self._states.get(subject)
        return known if known is not None else self._seen.get(subject, _NOT_SEEN).state

    def _note(self, subject: Subject, effect: Effect, correlation_id: uuid.UUID | None) -> None:
        if isinstance(effect, Pend):
            self._hold(subject, effect.alarm, correlation_id)
        elif isinstance(effect, DropPending):
            # One that the batch itself began never was; one that it began again has been dropped before.
            if self._alarms.pop(effect.alarm_id, None) is None:
                self._dropped.append(effect.alarm_id)
        elif isinstance(effect, Open):
            held = self._hold(subject, effect.alarm, correlation_id)
            held.state, held.opened_at = "open", effect.at
            ref = held.alarm.ref(held.correlation_id)
            self.events.append(transition_event(ref, "opened", effect.at, effect.payload))
        elif isinstance(effect, Resolve):
            held = self._hold(subject, effect.alarm, correlation_id)
            held.state, held.resolved_at, held.reason = "resolved", effect.at, effect.reason
            ref = held.alarm.ref(held.correlation_id)
            self.events.append(transition_event(ref, "resolved", effect.at, effect.payload))

    def _hold(self, subject: Subject, alarm: Alarm, correlation_id: uuid.UUID | None) -> _Held:
        held = self._alarms.get(alarm.id)
        if held is None:
            seen = self._seen.get(subject, _NOT_SEEN)
            stored = seen.state.alarm is not None and seen.state.alarm.id == alarm.id
            known = seen.correlation_id if stored else correlation_id
            held = self._alarms[alarm.id] = _Held(alarm, known or alarm.id, stored)
        return held

    def prepare(self) -> Judgement:
        """Everything has been heard: what is to be written, as columns."""
        gone: list[Sustain] = []
        armed: list[Sustain] = []
        for subject, after in self._states.items():
            was, now = _sustain(self._seen.get(subject, _NOT_SEEN).state), _sustain(after)
            if was is not None and (now is None or (was.ref, was.key) != (now.ref, now.key)):
                gone.append(was)
            if now is not None and (was is None or was != now):
                armed.append(now)
        # An alarm that ends may be snoozed, or not: nothing depends on it.
        ended = [str(id) for id, held in self._alarms.items() if held.state == "resolved" and held.stored]
        self._gone = len(gone)
        self._columns = {
            "gone": {
                "refs": column([*(one.ref for one in gone), *ended]),
                "keys": column([*(one.key for one in gone), *("snooze" for _ in ended)]),
            }
            if gone or ended
            else {},
            "armed": _sustain_columns(armed) if armed else {},
            "states": self._state_columns() if self._states else {},
            "alarms": _alarm_columns(self._alarms.values()) if self._alarms else {},
        }
        return self

    async def timers(self, connection: Connection) -> None:
        if not self._columns:
            self.prepare()
        if self._columns["gone"]:
            row = await fetch_one(connection, "rules.alarms/cancel_sustains", self._columns["gone"])
            if row is None or row[0] != self._gone:
                raise Conflict("a sustain fired while its end was being judged")
        if self._columns["armed"]:
            await connection.execute(statement("rules.alarms/arm_sustains"), self._columns["armed"])

    async def entities(self, connection: Connection) -> None:
        if self._columns["states"]:
            row = await fetch_one(connection, "rules.alarms/put_rule_states", self._columns["states"])
            if row is None or row[0] != len(self._states):
                raise Conflict("the state of a rule changed while it was being judged")
        if self._dropped:
            await connection.execute(statement("rules.alarms/drop_pending_alarms"), {"ids": self._dropped})
        if self._columns["alarms"]:
            await connection.execute(statement("rules.alarms/put_alarms"), self._columns["alarms"])

    def records(self) -> Records:
        return Records(events=self.events)

    def _state_columns(self) -> dict[str, Any]:
        subjects = list(self._states)
        states = list(self._states.values())
        return {
            "lane": self._lane,
            "partition": self._partition,
            "rules": column(rule for rule, _ in subjects),
            "owners": column(owner for _, owner in subjects),
            "phases": column(state.phase for state in states),
            "alarm_ids": column(None if state.alarm is None else state.alarm.id for state in states),
            "states": column(state.to_json() for state in states),
            "versions": column(self._seen.get(subject, _NOT_SEEN).version for subject in subjects),
        }


def _sustain(state: RuleState) -> Sustain | None:
    """The timer that a state has armed."""
    if state.alarm is None or state.due_at is None:
        return None
    if state.phase == "pending":
        return Sustain(str(state.alarm.id), "open", state.due_at, state.alarm.payload)
    return Sustain(str(state.alarm.id), "clear", state.due_at, state.resolution or {})


def _sustain_columns(armed: Sequence[Sustain]) -> dict[str, Any]:
    return {
        "refs": column(one.ref for one in armed),
        "keys": column(one.key for one in armed),
        "at": column(one.at for one in armed),
        "payloads": column(one.payload for one in armed),
    }


def _alarm_columns(alarms: Iterable[_Held]) -> dict[str, Any]:
    held = list(alarms)
    return {
        "ids": column(one.alarm.id for one in held),
        "rules": column(one.alarm.rule for one in held),
        "owners": column(one.alarm.owner for one in held),
        "states": column(one.state for one in held),
        "severities": column(one.alarm.severity for one in held),
        "since": column(one.alarm.since for one in held),
        "opened_at": column(one.opened_at for one in held),
        "resolved_at": column(one.resolved_at for one in held),
        "reasons": column(one.reason for one in held),
        "payloads": column(one.alarm.payload for one in held),
        "source_event_ids": column(one.alarm.source_event_id for one in held),
        "correlation_ids": column(one.correlation_id for one in held),
    }

"""What a batch of inputs means: the engine's states and effects, gathered into rows and one list of events.

Guarantee: `Judgement` is made from states that were read without a lock and writes nothing that does not fit them.
`timers` and `entities` raise `Overtaken` when the clock or an apply changed one of them meanwhile: the
transaction is rolled back, and the batch is judged again from what is true now. So a sustain that fires and an input
that clears have one winner, decided by the timer's row.

What is written is the difference between the first and the last state of the batch. A sustain that was armed and
cancelled within it never reaches the table; the edges of an alarm all do, in their order, as events.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from psycopg.types.json import Jsonb

from clock.record_log import NewEvent, Records
from rules.alarms.fates import Fate, switch
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
    edge_event_id,
    step,
)
from rules.lanes.lane import Overtaken
from rules.lanes.phases import Writes
from tocsin.core.db import Connection, statement

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
    cursor = await connection.execute(statement("rules/list_held_subjects"), {"rules": sorted(rules)})
    return [(rule, owner) for rule, owner in await cursor.fetchall()]


async def read_states(connection: Connection, subjects: Iterable[Subject]) -> dict[Subject, Seen]:
    wanted = sorted(set(subjects))
    if not wanted:
        return {}
    cursor = await connection.execute(
        statement("rules/read_rule_states"),
        {"rules": [rule for rule, _ in wanted], "owners": [owner for _, owner in wanted]},
    )
    return {
        (rule, owner): Seen(RuleState.from_json(state), version, correlation_id)
        for rule, owner, state, version, correlation_id in await cursor.fetchall()
    }


class Judgement(Writes):
    def __init__(self, lane: str, partition: int, seen: Mapping[Subject, Seen]) -> None:
        self._lane = lane
        self._partition = partition
        self._seen = seen
        self._states: dict[Subject, RuleState] = {}
        self._alarms: dict[uuid.UUID, _Held] = {}
        self._dropped: list[uuid.UUID] = []
        self.events: list[NewEvent] = []
        """The edges, in the order in which they happened."""

    def hear(self, rule: Rule, owner: str, given: Input, correlation_id: uuid.UUID | None = None) -> None:
        """`correlation_id` is that of the event that is judged; an alarm over datapoints begins a chain of its own."""
        self.change((rule.name, owner), lambda state: step(rule, state, given), correlation_id)

    def switch(self, fates: Mapping[str, Fate], at: datetime) -> None:
        """The rules changed at an instant of the lane: see `rules.alarms.fates`."""
        for subject in sorted({*self._seen, *self._states}):
            if subject[0] in fates:
                self.change(subject, partial(switch, fate=fates[subject[0]], complete_until=at, at=at))

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
            held = self._alarms.pop(effect.alarm_id, None)
            if held is None or held.stored:
                self._dropped.append(effect.alarm_id)
        elif isinstance(effect, Open):
            held = self._hold(subject, effect.alarm, correlation_id)
            held.state, held.opened_at = "open", effect.at
            self.events.append(_edge(held, "opened", effect.at, effect.alarm.payload))
        elif isinstance(effect, Resolve):
            held = self._hold(subject, effect.alarm, correlation_id)
            held.state, held.resolved_at, held.reason = "resolved", effect.at, effect.reason
            self.events.append(_edge(held, "resolved", effect.at, effect.payload))

    def _hold(self, subject: Subject, alarm: Alarm, correlation_id: uuid.UUID | None) -> _Held:
        held = self._alarms.get(alarm.id)
        if held is None:
            seen = self._seen.get(subject, _NOT_SEEN)
            stored = seen.state.alarm is not None and seen.state.alarm.id == alarm.id
            known = seen.correlation_id if stored else correlation_id
            held = self._alarms[alarm.id] = _Held(alarm, known or alarm.id, stored)
        return held

    async def timers(self, connection: Connection) -> None:
        gone: list[Sustain] = []
        armed: list[Sustain] = []
        for subject, after in self._states.items():
            was, now = _sustain(self._seen.get(subject, _NOT_SEEN).state), _sustain(after)
            if was is not None and (now is None or (was.ref, was.key) != (now.ref, now.key)):
                gone.append(was)
            if now is not None and (was is None or was != now):
                armed.append(now)
        await self._cancel(connection, gone)
        if armed:
            await connection.execute(
                statement("rules/arm_sustains"),
                {
                    "refs": [one.ref for one in armed],
                    "keys": [one.key for one in armed],
                    "at": [one.at for one in armed],
                    "payloads": [Jsonb(dict(one.payload)) for one in armed],
                },
            )

    async def _cancel(self, connection: Connection, gone: list[Sustain]) -> None:
        ended = [str(id) for id, held in self._alarms.items() if held.state == "resolved" and held.stored]
        if not gone and not ended:
            return
        # An alarm that ends may be snoozed, or not: nothing depends on it.
        refs = [*(one.ref for one in gone), *ended]
        keys = [*(one.key for one in gone), *("snooze" for _ in ended)]
        row = await (
            await connection.execute(statement("rules/cancel_sustains"), {"refs": refs, "keys": keys})
        ).fetchone()
        if row is None or row[0] != len(gone):
            raise Overtaken("a sustain fired while its end was being judged")

    async def entities(self, connection: Connection) -> None:
        if self._states:
            await self._put_states(connection)
        if self._dropped:
            await connection.execute(statement("rules/drop_pending_alarms"), {"ids": self._dropped})
        if self._alarms:
            await connection.execute(statement("rules/put_alarms"), _alarm_columns(self._alarms.values()))

    def records(self) -> Records:
        return Records(events=self.events)

    async def _put_states(self, connection: Connection) -> None:
        subjects = list(self._states)
        states = [self._states[subject] for subject in subjects]
        row = await (
            await connection.execute(
                statement("rules/put_rule_states"),
                {
                    "lane": self._lane,
                    "partition": self._partition,
                    "rules": [rule for rule, _ in subjects],
                    "owners": [owner for _, owner in subjects],
                    "phases": [state.phase for state in states],
                    "alarm_ids": [None if state.alarm is None else state.alarm.id for state in states],
                    "states": [Jsonb(state.to_json()) for state in states],
                    "versions": [self._seen.get(subject, _NOT_SEEN).version for subject in subjects],
                },
            )
        ).fetchone()
        if row is None or row[0] != len(subjects):
            raise Overtaken("the state of a rule changed while it was being judged")


def _sustain(state: RuleState) -> Sustain | None:
    """The timer that a state has armed."""
    if state.alarm is None or state.due_at is None:
        return None
    if state.phase == "pending":
        return Sustain(str(state.alarm.id), "open", state.due_at, state.alarm.payload)
    return Sustain(str(state.alarm.id), "clear", state.due_at, state.resolution or {})


def _edge(held: _Held, edge: Any, at: datetime, payload: Mapping[str, Any]) -> NewEvent:
    alarm = held.alarm
    return NewEvent(
        id=edge_event_id(alarm.id, edge),
        ts=at,
        origin="derived",
        type=f"alarm-{edge}",
        payload=payload,
        rule=alarm.rule,
        owner=alarm.owner,
        alarm_id=alarm.id,
        severity=alarm.severity,
        source_event_id=alarm.source_event_id,
        correlation_id=held.correlation_id,
    )


def _alarm_columns(alarms: Iterable[_Held]) -> dict[str, list[Any]]:
    held = list(alarms)
    return {
        "ids": [one.alarm.id for one in held],
        "rules": [one.alarm.rule for one in held],
        "owners": [one.alarm.owner for one in held],
        "states": [one.state for one in held],
        "severities": [one.alarm.severity for one in held],
        "since": [one.alarm.since for one in held],
        "opened_at": [one.opened_at for one in held],
        "resolved_at": [one.resolved_at for one in held],
        "reasons": [one.reason for one in held],
        "payloads": [Jsonb(one.alarm.payload) for one in held],
        "source_event_ids": [one.alarm.source_event_id for one in held],
        "correlation_ids": [one.correlation_id for one in held],
    }

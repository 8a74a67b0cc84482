"""Alarms, series and silences of a simulation: a shell around the engine, as workers and the clock are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from rules.alarms.staleness import StalenessTracker
from rules.engine import (
    BLANK,
    Alarm,
    Arrival,
    CompiledRules,
    Effects,
    EventSeen,
    Input,
    MessageFailed,
    Open,
    Resolve,
    Rule,
    RuleState,
    WentStale,
    advance,
    step,
)
from rules.health.observations import Fact, holding_facts
from rules.replay.rule_tests.health import Health
from rules.replay.rule_tests.log import Happening
from rules.replay.rule_tests.scheduler import SILENCE, SUSTAIN, Agenda
from schemas.fields import ALARM_FIELDS
from schemas.values.severities import level_name
from schemas.wire.alarm_events import AlarmRef, RuleTransition, transition_event
from tocsin.core.records import NewEvent

_log = structlog.get_logger()


@dataclass
class Held:
    """An alarm that has opened."""

    alarm: Alarm
    state: str
    correlation_id: UUID
    acknowledged_by: str = ""
    snoozed_until: datetime | None = None

    @property
    def ref(self) -> AlarmRef:
        return self.alarm.ref(self.correlation_id)


def alarm_facts(held: Held | None, now: datetime) -> dict[str, Any]:
    """As rules.actions.store gives them."""
    if held is None:
        return {**dict.fromkeys(ALARM_FIELDS, ""), "severity": 0, "payload": {}, "acknowledged": False}
    alarm = held.alarm
    return {
        "id": str(alarm.id),
        "rule": alarm.rule,
        "owner": alarm.owner,
        "state": held.state,
        "severity": alarm.severity,
        "since": alarm.since,
        "payload": alarm.payload,
        "message": str(alarm.payload.get("message", "")),
        "acknowledged": bool(held.acknowledged_by),
        "acknowledged_by": held.acknowledged_by,
        "snoozed": held.snoozed_until is not None and held.snoozed_until > now,
    }


def open_alarms(held: Iterable[Held], now: datetime) -> list[dict[str, Any]]:
    """As a digest lists them."""
    return [
        {**alarm_facts(one, now), "severity": level_name(one.alarm.severity)}
        for one in held
        if one.state == "open"
    ]


class Alarms:
    def __init__(
        self,
        rules: CompiledRules,
        agenda: Agenda,
        append: Callable[[NewEvent], None],
        note: Callable[[Happening], None],
        health: Health,
    ) -> None:
        self._rules = rules
        self._health = health
        self._agenda = agenda
        self._append = append
        self._note = note
        self._states: dict[tuple[str, str], RuleState] = {}
        self._staleness = StalenessTracker((), rules.types, track_unwatched=True)
        self.held: dict[UUID, Held] = {}

    def arrive(self, given: Arrival) -> None:
        is_new = self._staleness.find(given.owner, given.key) is None
        was_stale = self._staleness.arrive(given)
        if was_stale:
            self._note(Happening(given.at, "fresh", given.key, given.owner, "fresh", {"value": given.value}))
        if was_stale or is_new:
            self._health.hear([Fact(given.owner, given.at, "fresh", given.key)])
        series = self._staleness.find(given.owner, given.key)
        if series is not None and series.deadline is not None:
            pass_deadlines = partial(self._pass_deadlines, given.owner, series.deadline)
            self._agenda.add(series.deadline, SILENCE, pass_deadlines)
        self._hear(given.key, given)

    def _pass_deadlines(self, owner: str, at: datetime) -> None:
        for given, _ in self._staleness.pass_deadlines(owner, at):
            self._note(Happening(given.at, "stale", given.key, owner, "stale", {"value": given.value}))
            self._health.hear([Fact(owner, given.at, "stale", given.key)])
            self._hear(given.key, given)

    def see(self, at: datetime, facts: Mapping[str, Any], correlation_id: UUID) -> None:
        for rule in self._rules.for_event(facts["type"]):
            self._judge(rule, facts["owner"], EventSeen(at, facts), correlation_id)

    def _hear(self, key: str, given: Arrival | WentStale) -> None:
        for rule in self._rules.for_key(key):
            self._judge(rule, given.owner, given)

    def _judge(self, rule: Rule, owner: str, given: Input, correlation_id: UUID | None = None) -> None:
        subject = (rule.name, owner)
        before = self._states.get(subject, BLANK)
        after, effects = step(rule, before, given)
        if owner in self._health.owners and rule.document.event is None:
            self._health.hear(holding_facts(*subject, given.at, before, after))
        self._keep(subject, after, effects, correlation_id)

    def _advance(self, subject: tuple[str, str], due_at: datetime) -> None:
        state = self._states[subject]
        if state.due_at == due_at:
            after, effects = advance(state, due_at)
            if subject[1] in self._health.owners:
                self._health.hear(holding_facts(*subject, due_at, state, after))
            self._keep(subject, after, effects)

    def _keep(
        self, subject: tuple[str, str], state: RuleState, effects: Effects, correlation_id: UUID | None = None
    ) -> None:
        before = self._states.get(subject)
        self._states[subject] = state
        if state.due_at is not None and (before is None or before.due_at != state.due_at):
            self._agenda.add(state.due_at, SUSTAIN, partial(self._advance, subject, state.due_at))
        for effect in effects:
            if isinstance(effect, Open):
                self.held[effect.alarm.id] = Held(effect.alarm, "open", correlation_id or effect.alarm.id)
                self._record_transition(effect.alarm, "opened", effect.at, effect.alarm.payload)
            elif isinstance(effect, Resolve):
                self.held[effect.alarm.id].state = "resolved"
                self._record_transition(effect.alarm, "resolved", effect.at, effect.payload)
            elif isinstance(effect, MessageFailed):
                _log.warning(
                    "message cannot be filled", rule=subject[0], owner=subject[1], error=effect.error
                )

    def _record_transition(
        self, alarm: Alarm, transition: RuleTransition, at: datetime, payload: Mapping[str, Any]
    ) -> None:
        self._note(Happening(at, "alarm", alarm.rule, alarm.owner, transition, payload))
        self._append(transition_event(self.held[alarm.id].ref, transition, at, payload))

    def open_of(self, rule: str, owner: str) -> Held | None:
        return next(
            (
                one
                for one in self.held.values()
                if (one.alarm.rule, one.alarm.owner, one.state) == (rule, owner, "open")
            ),
            None,
        )

    def stale(self) -> list[dict[str, Any]]:
        """Series that are stale now, as a digest lists them."""
        return [
            {"owner": one.owner, "key": one.key, "stale_since": one.stale_since, "value": one.value}
            for one in self._staleness.stale_series()
        ]

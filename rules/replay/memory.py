"""Keeps the rule states of one owner in memory, and returns the transitions of its inputs.

It is the shell of the engine that rule tests and backtests share: it does what a worker does in a
batch (`rules/alarms/batch_writes.py`) and the clock for sustains, without a database.

Guarantee: the engine evaluates every input, there is no other evaluation. Each transition, change
of staleness and observation is reported to the listener once, in the order in which it happens,
with its nominal instant. `RuleMemory` holds the rules of one lane. The two lanes of an owner share
an `AlarmStore`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import structlog

from rules.alarms.resolve import resolved_state
from rules.alarms.rule_change import StateChange, change_state
from rules.alarms.staleness import NO_GAPS
from rules.documents.compiled_rules import CompiledRuleSet
from rules.engine import (
    BLANK,
    Arrival,
    Changed,
    DropPending,
    Effects,
    HeartbeatRule,
    Input,
    MessageFailed,
    Open,
    Pend,
    Resolve,
    Rule,
    RuleState,
    Suppressed,
    WentStale,
    adopt,
    advance,
    begin_heartbeat,
    pass_gap,
    pass_time,
    step,
)
from rules.health.observations import Observation, alarm_observations
from rules.lanes.arrival_gap import ArrivalGap
from rules.replay.alarms import AlarmRecord, AlarmStore
from rules.replay.staleness import FreshnessChange, OwnerStaleness
from schemas.wire.alarm_events import RuleTransition
from tocsin.core.instant import MICROSECOND

_log = structlog.get_logger()
MemoryKey = tuple[str, str]
"""An event_rule and an instance: the key of a state of one owner."""


class TransitionListener(Protocol):
    def on_transition(
        self, record: AlarmRecord, transition: RuleTransition, at: datetime, payload: Mapping[str, Any]
    ) -> None: ...

    def on_sustain(self, memory: RuleMemory, key: MemoryKey, due_at: datetime) -> None:
        """A state changes at an instant, unless an input comes before."""

    def on_suppressed(self, rule: str, owner: str, suppressed: Suppressed) -> None:
        """An event changed no alarm of the rule, because too many transitions led to it."""


class SeriesListener(TransitionListener, Protocol):
    def on_stale(self, went_stale: WentStale) -> None: ...

    def on_fresh(self, arrival: Arrival) -> None:
        """A datapoint of a stale series arrived."""

    def on_observations(self, observations: Iterable[Observation]) -> None:
        """A member of a system changed."""


class RuleMemory:
    """The states of an owner's rules in one lane."""

    def __init__(self, owner: str, alarms: AlarmStore, listener: TransitionListener) -> None:
        self.owner = owner
        self.states: dict[MemoryKey, RuleState] = {}
        self._rules: dict[str, Rule] = {}
        """The rules that made the states."""
        self._alarms = alarms
        self._listener = listener
        self._pending: dict[UUID, UUID] = {}
        """Correlation ids of pending alarms."""

    def step(self, rule: Rule, given: Input, correlation_id: UUID | None = None) -> None:
        """Evaluate an input. An alarm over events has the `correlation_id` of its event."""
        key = rule.name, rule.instance_of(given)
        self._rules[rule.name] = rule
        before = self.states.get(key, BLANK)
        after, effects = step(rule, before, given)
        if after is not before or effects:
            self._change(key, after, effects, correlation_id)

    def restore(self, rule: Rule, state: RuleState) -> None:
        """Continue a state with an open alarm from before the replay."""
        alarm, opened_at = state.alarm, state.last_opened_at
        assert alarm is not None
        assert opened_at is not None
        self._alarms.open(alarm, opened_at)
        self._rules[rule.name] = rule
        key = (rule.name, alarm.instance)
        if rule.is_heartbeat:
            heartbeat = self.states.get(key, BLANK).heartbeat
            self.keep(key, state._replace(heartbeat=heartbeat, fingerprint=rule.fingerprint), ())
            return
        self.keep(key, *adopt(rule, state, opened_at))

    @property
    def next_due(self) -> datetime | None:
        """The next instant at which a state changes without an input."""
        return min(
            (
                at
                for state in self.states.values()
                for at in (state.due_at, state.recheck_at)
                if at is not None
            ),
            default=None,
        )

    def advance(self, key: MemoryKey, until: datetime) -> None:
        """Handle what is due at or before an instant without an input.

        The state of a rule that was removed meanwhile is gone.
        """
        before = self.states.get(key)
        if before is None:
            return
        rule = self._rule(key[0])
        after, effects = (
            advance(before, until) if rule is None else pass_time(rule, self.owner, before, until)
        )
        if after is not before:
            self._change(key, after, effects)

    def _rule(self, name: str) -> Rule | None:
        return self._rules.get(name)

    def resolve(
        self, alarm_id: UUID, watermark: datetime | None, at: datetime, facts: dict[str, Any]
    ) -> Mapping[str, Any] | None:
        """Resolve an open alarm, as an operator did; the payload of the event, None if it is not open.

        The caller reports the event.
        """
        for key, state in list(self.states.items()):
            if state.alarm is None or state.alarm.id != alarm_id:
                continue
            after, effects = resolved_state(
                state, watermark, at, facts, is_over_events=not isinstance(self, SeriesMemory)
            )
            *earlier, last = effects or (None,)
            if not isinstance(last, Resolve) or last.reason != "operator":
                return None
            self._observe(key, effects)
            self.keep(key, after, tuple(effect for effect in earlier if effect is not None))
            self._alarms.resolve(alarm_id, at)
            return last.payload
        return None

    def change_rules(self, changes: Mapping[str, StateChange], at: datetime) -> None:
        """Convert the states of rules that an apply changed or removed at an instant."""
        for key in sorted(key for key in self.states if key[0] in changes):
            change, state = changes[key[0]], self.states[key]
            if state.phase != "ok":
                self._change(key, *change_state(state, change, at, at))
            if change.rule is None:
                del self.states[key]
            else:
                self._rules[key[0]] = change.rule

    def advance_all(self, until: datetime) -> None:
        for key in list(self.states):
            self.advance(key, until)

    def _change(
        self, key: MemoryKey, after: RuleState, effects: Effects, correlation_id: UUID | None = None
    ) -> None:
        self._observe(key, effects)
        self.keep(key, after, effects, correlation_id)

    def _observe(self, key: MemoryKey, effects: Effects) -> None:
        """Report what a change means for systems. Only series are members of systems."""

    def keep(
        self, key: MemoryKey, state: RuleState, effects: Effects, correlation_id: UUID | None = None
    ) -> None:
        """Store a state of the engine and carry out its effects."""
        before = self.states.get(key, BLANK)
        self.states[key] = state
        if state.due_at is not None and state.due_at != before.due_at:
            self._listener.on_sustain(self, key, state.due_at)
        if state.recheck_at is not None and state.recheck_at != before.recheck_at:
            self._listener.on_sustain(self, key, state.recheck_at)
        for effect in effects:
            if isinstance(effect, Pend):
                self._pending[effect.alarm.id] = correlation_id or effect.alarm.id
            elif isinstance(effect, DropPending):
                self._pending.pop(effect.alarm_id, None)
            elif isinstance(effect, Open):
                began_by = self._pending.pop(effect.alarm.id, correlation_id)
                record = self._alarms.open(effect.alarm, effect.at, began_by)
                self._listener.on_transition(record, "opened", effect.at, effect.payload)
            elif isinstance(effect, Changed):
                record = self._alarms.change(effect.alarm)
                self._listener.on_transition(record, "changed", effect.at, effect.payload)
            elif isinstance(effect, Resolve):
                record = self._alarms.resolve(effect.alarm.id, effect.at)
                self._listener.on_transition(record, "resolved", effect.at, effect.payload)
            elif isinstance(effect, Suppressed):
                self._listener.on_suppressed(key[0], self.owner, effect)
            elif isinstance(effect, MessageFailed):
                _log.warning("message cannot be filled", rule=key[0], owner=self.owner, error=effect.error)


class SeriesMemory(RuleMemory):
    """The states of an owner's rules over series, and the staleness of the series."""

    def __init__(
        self,
        owner: str,
        rules: CompiledRuleSet,
        alarms: AlarmStore,
        listener: SeriesListener,
        gaps: Sequence[ArrivalGap] = NO_GAPS,
    ) -> None:
        super().__init__(owner, alarms, listener)
        self.rules = rules
        self.series = OwnerStaleness(owner, rules.types, gaps)
        self.is_observed = owner in rules.members.owners
        """Whether the owner is a member of a system, and its changes are observations."""
        self._series_listener = listener
        self._gaps = gaps
        self._ended_gaps = 0
        """The number of gaps that the heartbeats have passed."""

    def arrive(self, arrivals: Sequence[Arrival]) -> None:
        series, states, rules_for_key = self.series, self.states, self.rules.for_key
        for arrival in arrivals:
            if self._gaps and self.rules.heartbeats:
                # A gap begins with the arrival before it.
                self._pass_gaps(arrival.at - MICROSECOND)
            if arrival.at >= series.next_due:
                self.pass_deadlines(arrival.at)
            if series.is_late(arrival):
                arrival = arrival._replace(is_late=True)
            change = series.arrive(arrival)
            if change is not None:
                self._freshen(arrival, change)
            for rule in rules_for_key(arrival.key):
                key = (rule.name, arrival.key if rule.is_per_series else "")
                before = states.get(key, BLANK)
                after, effects = step(rule, before, arrival)
                if after is before:
                    continue
                if effects or after.expire_at is not before.expire_at or rule.is_heartbeat:
                    self._change(key, after, effects)
                else:
                    states[key] = after

    def begin_heartbeats(self, at: datetime) -> None:
        """Begin the heartbeats that expect this owner, or other times of it, at an instant."""
        for rule in self.rules.heartbeats:
            key = (rule.name, "")
            if self.owner in rule.owners or key in self.states:
                before = self.states.get(key, BLANK)
                after, effects = begin_heartbeat(rule, self.owner, before, at)
                if after is not before:
                    self._change(key, after, effects)

    def restore_heartbeats(
        self, last_arrivals: Sequence[Arrival], begins: Mapping[str, datetime], start: datetime
    ) -> None:
        """Continue the heartbeats from the last check-in before a replay. It reports nothing.

        `begins` are the instants at which they began, as far as they are known.
        """
        last = {arrival.key: arrival for arrival in last_arrivals}
        self._ended_gaps = sum(gap.began_at < start for gap in self._gaps)
        for rule in self.rules.heartbeats:
            if self.owner not in rule.owners:
                continue
            arrival = last.get(rule.key)
            begun_at = begins.get(rule.name, start) if arrival is None else arrival.at
            state, _ = begin_heartbeat(rule, self.owner, BLANK, begun_at)
            if arrival is not None:
                state, _ = step(rule, state, arrival)
            if begun_at < start:
                state, _ = self._passed(rule, state, start - MICROSECOND)
                beat = state.heartbeat
                state = BLANK._replace(heartbeat=beat, fingerprint=rule.fingerprint)
            self.states[rule.name, ""] = state
            if state.recheck_at is not None:
                self._listener.on_sustain(self, (rule.name, ""), state.recheck_at)

    def _passed(self, rule: HeartbeatRule, state: RuleState, until: datetime) -> tuple[RuleState, Effects]:
        """The state after the gaps and deadlines up to an instant."""
        for gap in self._gaps[: self._ended_gaps]:
            state, _ = pass_gap(rule, self.owner, state, gap.began_at, gap.ended_at)
        return pass_time(rule, self.owner, state, until)

    def advance(self, key: MemoryKey, until: datetime) -> None:
        if self._gaps and isinstance(self._rule(key[0]), HeartbeatRule):
            self._pass_gaps(until)
        super().advance(key, until)

    def _pass_gaps(self, until: datetime) -> None:
        """End the gaps that began before an instant: nothing arrives in between."""
        while self._ended_gaps < len(self._gaps) and self._gaps[self._ended_gaps].began_at <= until:
            began_at, ended_at = self._gaps[self._ended_gaps]
            self._ended_gaps += 1
            for rule in self.rules.heartbeats:
                before = self.states.get((rule.name, ""))
                if before is not None:
                    after, effects = pass_gap(rule, self.owner, before, began_at, ended_at)
                    if after is not before:
                        self._change((rule.name, ""), after, effects)

    def pass_deadlines(self, until: datetime) -> None:
        """Make the series stale whose deadlines are at or before an instant."""
        for went_stale in self.series.pass_deadlines(until):
            self._series_listener.on_stale(went_stale)
            if self.is_observed:
                self._series_listener.on_observations(
                    [Observation(self.owner, went_stale.at, "stale", went_stale.key)]
                )
            for rule in self.rules.for_key(went_stale.key):
                self.step(rule, went_stale)

    def _freshen(self, arrival: Arrival, change: FreshnessChange) -> None:
        if change == "fresh":
            self._series_listener.on_fresh(arrival)
        if self.is_observed:
            self._series_listener.on_observations([Observation(self.owner, arrival.at, "fresh", arrival.key)])

    def _rule(self, name: str) -> Rule | None:
        return self.rules.rules.get(name)

    def _observe(self, key: MemoryKey, effects: Effects) -> None:
        if self.is_observed:
            rule, instance = key
            observations = alarm_observations((rule, self.owner, instance), effects)
            self._series_listener.on_observations(observations)

"""Evaluates the alarms of a rule test: the memories of all owners, driven by the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from rules.alarms.rule_change import (
    StateChange,
    rules_over_alarms_to_begin,
    rules_to_reevaluate,
    state_changes,
)
from rules.alarms.staleness import NO_GAPS, TrackedSeries, extended_deadline
from rules.documents.compiled_rules import CompiledRuleSet
from rules.engine import Arrival, EventSeen, Suppressed, WentStale
from rules.health.observations import Observation
from rules.lanes.arrival_gap import ArrivalGap
from rules.replay.alarms import AlarmRecord, AlarmStore
from rules.replay.log import LogEntry
from rules.replay.memory import MemoryKey, RuleMemory, SeriesMemory
from rules.replay.rule_tests.health import SimulatedHealth
from rules.replay.scheduler import EVENT_SUSTAIN, STALENESS, SUSTAIN, Scheduler
from rules.replay.seen_alarms import SeenAlarms
from schemas.wire.alarm_events import RuleTransition, suppressed_event, transition_event
from tocsin.core.records import NewEvent

Lineage = tuple[str, ...]


class SimulatedAlarms:
    """Logs what happens to series and alarms, and appends the events of transitions."""

    def __init__(
        self,
        rules: CompiledRuleSet,
        scheduler: Scheduler,
        append: Callable[[NewEvent, Lineage], None],
        log: Callable[[LogEntry], None],
        health: SimulatedHealth,
        gaps: Sequence[ArrivalGap] = NO_GAPS,
        *,
        is_changed_later: bool = False,
    ) -> None:
        """`is_changed_later`: `change_rules` will be called."""
        self._rules = self._event_rules = rules
        self._scheduler = scheduler
        self._append = append
        self._log = log
        self._health = health
        self._gaps = gaps
        self._is_changed_later = is_changed_later
        self._over_series: dict[str, SeriesMemory] = {}
        self._over_events: dict[str, RuleMemory] = {}
        self._seen: dict[str, SeenAlarms] = {}
        self.store = AlarmStore()
        self._lineage: Lineage = ()
        """The lineage of the input that is being evaluated. Its transitions inherit it."""

    def begin_heartbeats(self, at: datetime) -> None:
        for owner in sorted({owner for rule in self._rules.heartbeats for owner in rule.owners}):
            self._memory(owner).begin_heartbeats(at)

    def _memory(self, owner: str) -> SeriesMemory:
        memory = self._over_series.get(owner)
        if memory is None:
            memory = SeriesMemory(owner, self._rules, self.store, self, self._gaps)
            # An apply may make any owner a member of a system.
            memory.is_observed |= self._is_changed_later
            self._over_series[owner] = memory
        return memory

    def arrive(self, arrival: Arrival, lineage: Lineage = ()) -> None:
        memory = self._memory(arrival.owner)
        with self._inheriting(lineage):
            memory.arrive([arrival])
        stale_after = self._rules.types.stale_after(arrival.key)
        if stale_after is not None:
            self._await_deadline(memory, extended_deadline(arrival.at, stale_after, self._gaps))

    def _await_deadline(self, memory: SeriesMemory, deadline: datetime) -> None:
        self._scheduler.add(deadline, STALENESS, partial(memory.pass_deadlines, deadline))

    def change_rules(self, after: CompiledRuleSet, at: datetime) -> Mapping[str, StateChange]:
        """Continue series with other rules, as a live apply does at a watermark of `at`.

        Returns the changes for `change_event_rules`.
        """
        changes, reevaluated = state_changes(self._rules, after), rules_to_reevaluate(self._rules, after)
        self._rules = after
        for memory in self._over_series.values():
            memory.change_rules(changes, at)
            memory.series.change_types(after.types, at)
            memory.rules = after
            memory.begin_heartbeats(at)
            for went_stale in memory.series.stale_inputs(at, at):
                for rule in after.for_key(went_stale.key):
                    if rule.name in reevaluated:
                        memory.step(rule, went_stale)
            for deadline in memory.series.deadlines():
                self._await_deadline(memory, max(deadline, at))
        self.begin_heartbeats(at)
        self._health.change(after, at)
        return changes

    def change_event_rules(
        self, after: CompiledRuleSet, changes: Mapping[str, StateChange], at: datetime
    ) -> None:
        """Continue alarms over events with other rules, once the events before the apply were seen."""
        begun = rules_over_alarms_to_begin(self._event_rules, after)
        self._event_rules = after
        for memory in self._over_events.values():
            memory.change_rules(changes, at)
        for owner, seen in sorted(self._seen.items()) if begun else ():
            seen.begin(self._events_of(owner), begun, at)

    def _events_of(self, owner: str) -> RuleMemory:
        memory = self._over_events.get(owner)
        if memory is None:
            memory = self._over_events[owner] = RuleMemory(owner, self.store, self)
        return memory

    def see(
        self, at: datetime, facts: Mapping[str, Any], correlation_id: UUID, lineage: Lineage = ()
    ) -> None:
        if self._is_changed_later:
            self._seen.setdefault(facts["owner"], SeenAlarms()).follow(facts)
        rules = self._event_rules.for_event(facts["type"], facts["rule"])
        if not rules:
            return
        memory = self._events_of(facts["owner"])
        with self._inheriting(lineage):
            for rule in rules:
                memory.step(rule, EventSeen(at, facts), correlation_id)

    def resolve(self, record: AlarmRecord, at: datetime, facts: dict[str, Any]) -> None:
        """Resolve an alarm, as an operator asks."""
        alarm = record.alarm
        memories = (self._over_series.get(alarm.owner), self._over_events.get(alarm.owner))
        for memory in memories:
            payload = None if memory is None else memory.resolve(alarm.id, at, at, facts)
            if payload is not None:
                self._log(LogEntry(at, "alarm", alarm.rule, alarm.owner, "resolved", payload))
                event = transition_event(record.ref, "resolved", at, payload)
                self._append(replace(event, origin="caused"), ())

    def stale_series(self) -> list[TrackedSeries]:
        return [series for memory in self._over_series.values() for series in memory.series.stale_series()]

    def on_transition(
        self, record: AlarmRecord, transition: RuleTransition, at: datetime, payload: Mapping[str, Any]
    ) -> None:
        self._log(LogEntry(at, "alarm", record.alarm.rule, record.alarm.owner, transition, payload))
        self._append(transition_event(record.ref, transition, at, payload), self._lineage)

    def on_suppressed(self, rule: str, owner: str, suppressed: Suppressed) -> None:
        at, event_id, depth, reason = suppressed.at, suppressed.event_id, suppressed.depth, suppressed.reason
        self._append(suppressed_event(rule, owner, at, event_id, depth, reason), self._lineage)

    def on_sustain(self, memory: RuleMemory, key: MemoryKey, due_at: datetime) -> None:
        rank = SUSTAIN if isinstance(memory, SeriesMemory) else EVENT_SUSTAIN
        self._scheduler.add(due_at, rank, partial(self._advance, memory, key, due_at, self._lineage))

    def _advance(self, memory: RuleMemory, key: MemoryKey, due_at: datetime, lineage: Lineage) -> None:
        with self._inheriting(lineage):
            memory.advance(key, due_at)

    @contextmanager
    def _inheriting(self, lineage: Lineage) -> Iterator[None]:
        self._lineage = lineage
        try:
            yield
        finally:
            self._lineage = ()

    def on_stale(self, went_stale: WentStale) -> None:
        at, owner, key = went_stale.at, went_stale.owner, went_stale.key
        self._log(LogEntry(at, "stale", key, owner, "stale", {"value": went_stale.value}))

    def on_fresh(self, arrival: Arrival) -> None:
        at, owner, key = arrival.at, arrival.owner, arrival.key
        self._log(LogEntry(at, "fresh", key, owner, "fresh", {"value": arrival.value}))

    def on_observations(self, observations: Iterable[Observation]) -> None:
        self._health.observe(observations)

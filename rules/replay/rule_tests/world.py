"""Simulates an instance in virtual time: schedules, alarms and actions, without deliveries."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from pydantic import BaseModel

from rules.dispatch.matcher import ActionMatcher
from rules.documents.compiled_rules import CompiledRuleSet
from rules.documents.load.recurrences import recurrence_of
from rules.documents.rule_book import RuleSet
from rules.engine import Arrival, Value
from rules.health.systems import HealthChange
from rules.replay.alarms import AlarmStore, alarm_facts, open_alarm_facts
from rules.replay.log import LogEntry
from rules.replay.perform import Failure
from rules.replay.rule_tests.alarms import SimulatedAlarms
from rules.replay.rule_tests.health import SimulatedHealth
from rules.replay.rule_tests.operator import SimulatedOperator
from rules.replay.runs import Facts, Runs, SimulationHooks
from rules.replay.scheduler import EVENT, INPUT, Scheduler
from schemas.documents import ScheduleDocument
from schemas.wire.calculated import HEALTH_KEY
from schemas.wire.event_facts import event_facts
from timers.identity import spread_of
from timers.recurrence import Recurrence
from tocsin.core.errors import InvalidInput
from tocsin.core.records import NewEvent

_EVENTS = uuid.UUID("9f0d0c58-4d5e-5a53-8b4e-7c2e7f1b6a90")
_MAX_ENTRIES = 1_000_000
_OPERATOR = "operator"


class World:
    def __init__(self, documents: Iterable[BaseModel], start: datetime) -> None:
        rules = RuleSet(list(documents))
        self.now = self.start = start
        self.log: list[LogEntry] = []
        self._scheduler = Scheduler()
        self._matcher = ActionMatcher(rules)
        self._events: list[Facts] = []
        self._lineages: dict[str, tuple[str, ...]] = {}
        compiled = CompiledRuleSet(rules)
        health = SimulatedHealth(compiled, self._scheduler, start, self._change_health)
        self._alarms = SimulatedAlarms(compiled, self._scheduler, self.append, self.log.append, health)
        self._operator = SimulatedOperator(self.alarms, self._scheduler, lambda: self.now, self.append)
        self._runs = Runs(
            SimulationHooks(
                scheduler=self._scheduler,
                now=lambda: self.now,
                append=self.append,
                log=self.log.append,
                alarm=self._alarm_facts,
                digest_rows=self._digest_rows,
                newest_seq=lambda: len(self._events),
                events_after=lambda seq: self._events[seq:],
                record=self._record,
            )
        )
        for schedule in rules.of(ScheduleDocument).values():
            if schedule.enabled:
                self._arm(schedule, recurrence_of(schedule, anchor=start, hash_id=schedule.name), start)

    @property
    def alarms(self) -> AlarmStore:
        return self._alarms.store

    def run_until(self, until: datetime) -> None:
        """Run everything that is due up to an instant, each call at its own."""
        while (due := self._scheduler.next(until)) is not None:
            at, call = due
            self.now = max(self.now, at)
            call()
            if len(self.log) > _MAX_ENTRIES:
                raise InvalidInput(
                    f"the log has more than {_MAX_ENTRIES} entries", remedy="end the test earlier"
                )
        self.now = max(self.now, until)

    def at(self, at: datetime, method: str, **arguments: Any) -> None:
        """Schedule an input: `arrive`, `emit`, `acknowledge`, `snooze`, `unsnooze` or `fail`."""
        self._scheduler.add(at, INPUT, partial(getattr(self, method), **arguments))

    def arrive(
        self,
        owner: str,
        key: str,
        value: Value,
        labels: Mapping[str, str] | None = None,
        lineage: tuple[str, ...] = (),
    ) -> None:
        self._alarms.arrive(
            Arrival(self.now, len(self._events), owner, key, value, self.now, dict(labels or {})), lineage
        )

    def emit(
        self, type: str, owner: str = "", payload: Mapping[str, Any] | None = None, **fields: Any
    ) -> None:
        id = uuid.uuid5(_EVENTS, f"{len(self._events)}/{type}/{owner}/{self.now.isoformat()}")
        self.append(NewEvent(self.now, "external", type, payload or {}, owner=owner, id=id, **fields))

    def acknowledge(self, rule: str, owner: str = "", who: str = _OPERATOR) -> None:
        self._operator.acknowledge(rule, owner, who)

    def snooze(self, rule: str, lasts: timedelta, owner: str = "", who: str = _OPERATOR) -> None:
        self._operator.snooze(rule, owner, who, lasts)

    def unsnooze(self, rule: str, owner: str = "", who: str = _OPERATOR) -> None:
        self._operator.unsnooze(rule, owner, who)

    def fail(self, action: str, step: str | None = None, times: int = 1, error: str = "it failed") -> None:
        self._runs.failures.append(Failure(action, step, times, error))

    def append(self, event: NewEvent, lineage: tuple[str, ...] = ()) -> None:
        """Record an event now, and dispatch it."""
        recorded = {
            **vars(event),
            "seq": len(self._events) + 1,
            "recorded_at": self.now,
            "correlation_id": event.correlation_id or event.id,
            "payload": dict(event.payload),
        }
        facts = {**event_facts(recorded), "alarm_id": event.alarm_id}
        self._events.append(facts)
        if lineage:
            self._lineages[facts["id"]] = lineage
        self.log.append(LogEntry(event.ts, "event", event.type, event.owner, event.origin, facts))
        self._scheduler.add(self.now, EVENT, partial(self._dispatch, facts))

    def _dispatch(self, facts: Facts) -> None:
        lineage = self._lineages.get(facts["id"], ())
        self._alarms.see(facts["recorded_at"], facts, uuid.UUID(facts["correlation_id"]), lineage)
        for match in self._matcher.match(facts):
            self._runs.start(match, facts, facts["alarm_id"], lineage)
        self._runs.see(facts)

    def _arm(self, schedule: ScheduleDocument, recurrence: Recurrence, after: datetime) -> None:
        occurrence = recurrence.next_after(after)
        if occurrence is not None:
            spread = spread_of(schedule.owner, schedule.name, schedule.spread or timedelta(0))
            fire = partial(self._fire, schedule, recurrence, occurrence)
            self._scheduler.add(occurrence + spread, INPUT, fire)

    def _fire(self, schedule: ScheduleDocument, recurrence: Recurrence, at: datetime) -> None:
        self.append(
            NewEvent(
                at,
                "scheduled",
                schedule.type,
                schedule.payload,
                schedule=schedule.name,
                action=schedule.action or "",
                owner=schedule.owner,
                id=uuid.uuid5(_EVENTS, f"{schedule.name}/{at.isoformat()}"),
            )
        )
        self._arm(schedule, recurrence, at)

    def _change_health(self, change: HealthChange) -> None:
        """Log a change of health. It arrives at once as a datapoint of the system."""
        system, health = change.system, change.health
        self.log.append(LogEntry(self.now, "health", system, system, health, change.payload))
        labels = {} if change.reason is None else {"reason": str(change.reason)}
        self.at(self.now, "arrive", owner=system, key=HEALTH_KEY, value=health, labels=labels)

    def _record(self, datapoints: Facts, lineage: tuple[str, ...]) -> None:
        for key, value in datapoints["values"].items():
            self.at(self.now, "arrive", owner=datapoints["owner"], key=key, value=value, lineage=lineage)

    def _alarm_facts(self, alarm_id: uuid.UUID | None) -> Facts:
        return alarm_facts(self.alarms.get(alarm_id), self.now)

    def _digest_rows(self, after: int, upto: int) -> Facts:
        return {
            "open_alarms": open_alarm_facts(self.alarms, self.now),
            "events": [event for event in self._events if after < event["seq"] <= upto],
            "stale_series": self._alarms.stale_series(),
        }

"""A world in virtual time: schedules fire, datapoints arrive, alarms open, actions run, and nothing is sent."""

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
from rules.replay.rule_tests.alarms import Alarms, alarm_facts, open_alarms
from rules.replay.rule_tests.health import Health
from rules.replay.rule_tests.log import Happening
from rules.replay.rule_tests.operator import Acts
from rules.replay.rule_tests.perform import Failure
from rules.replay.rule_tests.runs import Facts, Runs, Surroundings
from rules.replay.rule_tests.scheduler import EVENT, INPUT, Agenda
from schemas.documents import ScheduleDocument
from schemas.wire.calculated import HEALTH_KEY
from schemas.wire.event_facts import event_facts
from timers.identity import spread_of
from timers.recurrence import Recurrence
from tocsin.core.errors import InvalidInput
from tocsin.core.records import NewEvent

_EVENTS = uuid.UUID("9f0d0c58-4d5e-5a53-8b4e-7c2e7f1b6a90")
MOST_HAPPENINGS = 1_000_000


class World:
    def __init__(self, documents: Iterable[BaseModel], start: datetime) -> None:
        models = list(documents)
        rules = RuleSet(models)
        self.now = self.start = start
        self.happenings: list[Happening] = []
        self._agenda = Agenda()
        self._matcher = ActionMatcher(rules)
        self._events: list[Facts] = []
        self._lineages: dict[str, tuple[str, ...]] = {}
        compiled = CompiledRuleSet(rules)
        health = Health(compiled, self._agenda, start, self._tell_health)
        self._alarms = Alarms(compiled, self._agenda, self._append, self._note, health)
        self._acts = Acts(self._alarms, self._agenda, lambda: self.now, self._append)
        around = Surroundings(
            agenda=self._agenda,
            now=lambda: self.now,
            append=self._append,
            note=self._note,
            alarm=self._alarm,
            looks=self._looks,
            newest=lambda: len(self._events),
            record=self._record,
        )
        self._runs = Runs(around)
        for schedule in rules.of(ScheduleDocument).values():
            if schedule.enabled:
                self._arm(schedule, recurrence_of(schedule, anchor=start, hash_id=schedule.name), start)

    def run_until(self, until: datetime) -> None:
        """Let everything that is due up to an instant happen, each at its own."""
        while (due := self._agenda.next(until)) is not None:
            at, what = due
            self.now = max(self.now, at)
            what()
            if len(self.happenings) > MOST_HAPPENINGS:
                raise InvalidInput(
                    f"more than {MOST_HAPPENINGS} things happened", remedy="end the test earlier"
                )
        self.now = max(self.now, until)

    def at(self, at: datetime, act: str, **arguments: Any) -> None:
        """Put an input on the agenda: `arrive`, `emit`, `acknowledge`, `snooze`, `unsnooze` or `fail`."""
        self._agenda.add(at, INPUT, partial(getattr(self, act), **arguments))

    def arrive(self, owner: str, key: str, value: Value, labels: Mapping[str, str] | None = None) -> None:
        self._alarms.arrive(
            Arrival(self.now, len(self._events), owner, key, value, self.now, dict(labels or {}))
        )

    def emit(
        self, type: str, owner: str = "", payload: Mapping[str, Any] | None = None, **fields: Any
    ) -> None:
        self._append(
            NewEvent(
                self.now, "external", type, payload or {}, owner=owner, id=self._id(type, owner), **fields
            )
        )

    def acknowledge(self, rule: str, owner: str = "", who: str = "somebody") -> None:
        self._acts.acknowledge(rule, owner, who)

    def snooze(self, rule: str, lasts: timedelta, owner: str = "", who: str = "somebody") -> None:
        self._acts.snooze(rule, owner, who, lasts)

    def unsnooze(self, rule: str, owner: str = "", who: str = "somebody") -> None:
        self._acts.unsnooze(rule, owner, who)

    def fail(self, action: str, step: str | None = None, times: int = 1, error: str = "it failed") -> None:
        self._runs.failures.append(Failure(action, step, times, error))

    def _arm(self, schedule: ScheduleDocument, recurrence: Recurrence, after: datetime) -> None:
        occurrence = recurrence.next_after(after)
        if occurrence is not None:
            spread = spread_of(schedule.owner, schedule.name, schedule.spread or timedelta(0))
            fire = partial(self._fire, schedule, recurrence, occurrence)
            self._agenda.add(occurrence + spread, INPUT, fire)

    def _fire(self, schedule: ScheduleDocument, recurrence: Recurrence, at: datetime) -> None:
        self._append(
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

    def _tell_health(self, change: HealthChange) -> None:
        """It comes back at once, as a datapoint of the system."""
        system, health = change.system, change.health
        self._note(Happening(self.now, "health", system, system, health, change.payload))
        labels = {} if change.reason is None else {"reason": str(change.reason)}
        self.at(self.now, "arrive", owner=system, key=HEALTH_KEY, value=health, labels=labels)

    def _append(self, event: NewEvent, lineage: tuple[str, ...] = ()) -> None:
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
        self._note(Happening(event.ts, "event", event.type, event.owner, event.origin, facts))
        self._agenda.add(self.now, EVENT, partial(self._hear, facts))

    def _hear(self, facts: Facts) -> None:
        self._alarms.see(facts["recorded_at"], facts, uuid.UUID(facts["correlation_id"]))
        for found in self._matcher.match(facts):
            self._runs.start(found, facts, facts["alarm_id"], self._lineages.get(facts["id"], ()))
        self._runs.see(facts)

    def _record(self, recorded: Facts) -> None:
        for key, value in recorded["values"].items():
            self.at(self.now, "arrive", owner=recorded["owner"], key=key, value=value)

    def _alarm(self, id: uuid.UUID | None) -> Facts:
        return alarm_facts(None if id is None else self._alarms.held.get(id), self.now)

    def _looks(self, after: int, upto: int) -> Facts:
        return {
            "open_alarms": open_alarms(self._alarms.held.values(), self.now),
            "events": [event for event in self._events if after < event["seq"] <= upto],
            "stale_series": self._alarms.stale(),
        }

    def _note(self, happening: Happening) -> None:
        self.happenings.append(happening)

    def _id(self, type: str, owner: str) -> uuid.UUID:
        return uuid.uuid5(_EVENTS, f"{len(self._events)}/{type}/{owner}/{self.now.isoformat()}")

"""Simulates an instance in virtual time: schedules, alarms and actions, without deliveries."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from rules.actions.steps.digest_results import DigestMaterial, digest_period
from rules.alarms.check_ins import check_in_events
from rules.alarms.rule_change import StateChange
from rules.alarms.staleness import NO_GAPS
from rules.calc.rule import CalcPoint
from rules.delivery.probe import ProbeResult
from rules.dispatch.matcher import ActionMatcher
from rules.dispatch.schedule_retries import with_retry
from rules.documents.compiled_rules import CompiledRuleSet
from rules.documents.rule_book import RuleSet
from rules.engine import Arrival, TypeIndex, Value
from rules.health.systems import HealthChange
from rules.lanes.arrival_gap import ArrivalGap
from rules.lanes.data_lane import ParsedBatch
from rules.lanes.lane import LaneMessage
from rules.replay.alarms import AlarmStore, alarm_facts
from rules.replay.digest_rows import alarm_rows, dead_run_rows, event_rows, stale_rows
from rules.replay.log import LogEntry
from rules.replay.perform import Failure, ProbeFinding
from rules.replay.rule_tests.alarms import SimulatedAlarms
from rules.replay.rule_tests.apply import applied_event, changed_documents, ended_action_rules
from rules.replay.rule_tests.calc import SimulatedCalc
from rules.replay.rule_tests.health import SimulatedHealth
from rules.replay.rule_tests.instants import since_start
from rules.replay.rule_tests.operator import SimulatedOperator
from rules.replay.rule_tests.schedules import SimulatedSchedules
from rules.replay.runs import Runs, SimulationHooks
from rules.replay.scheduler import EVENT, INPUT, Scheduler
from rules.replay.silences import SimulatedSilences
from rules.replay.simulated_run import Facts
from rules.suppression.reader import compile_inhibits
from schemas.documents import ChannelDocument, DatapointTypeDocument, MaintenanceDocument, ScheduleDocument
from schemas.wire.calculated import HEALTH_KEY
from schemas.wire.check_in import CheckIn, check_in_datapoints
from schemas.wire.datapoint import TimestampBounds
from schemas.wire.event_facts import event_facts
from schemas.wire.ingest_event import read_ingest_event
from schemas.wire.subjects import token
from tocsin.core.errors import InvalidInput
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings

_EVENTS = uuid.UUID("9f0d0c58-4d5e-5a53-8b4e-7c2e7f1b6a90")
_DEFAULTS = Settings.model_fields
_BOUNDS = TimestampBounds(
    timedelta(days=_DEFAULTS["datapoint_retention_d"].default),
    timedelta(seconds=_DEFAULTS["datapoint_future_s"].default),
)
"""The bounds of `ts` with the default settings."""
_MAX_ENTRIES = 1_000_000
_OPERATOR = "operator"
NO_RULES: Mapping[tuple[str, ...], Sequence[BaseModel]] = {}


class World:
    def __init__(
        self,
        documents: Iterable[BaseModel],
        start: datetime,
        gaps: Sequence[ArrivalGap] = NO_GAPS,
        later: Mapping[tuple[str, ...], Sequence[BaseModel]] = NO_RULES,
    ) -> None:
        """`gaps` are the times in which no datapoint arrives, in order; `later` are the documents of the
        files that `apply` names."""
        rules = self._rules = RuleSet(list(documents))
        self._later = {files: RuleSet(models) for files, models in later.items()}
        self.now = self.start = start
        self.log: list[LogEntry] = []
        self._scheduler = Scheduler()
        self._matcher = ActionMatcher(rules)
        self._events: list[Facts] = []
        self._ids: set[UUID] = set()
        self._gaps = gaps
        self._lineages: dict[str, tuple[str, ...]] = {}
        self._types = TypeIndex(rules.of(DatapointTypeDocument).values())
        compiled = CompiledRuleSet(rules)
        health = SimulatedHealth(compiled, self._scheduler, start, self._change_health)
        later_rules = self._later.values()
        self._calc = SimulatedCalc(rules, self._scheduler, start, gaps, self._calculate, later_rules)
        self._alarms = SimulatedAlarms(
            *(compiled, self._scheduler, self.append, self.log.append, health, gaps),
            is_changed_later=bool(later),
        )
        self._alarms.begin_heartbeats(start)
        self._operator = SimulatedOperator(
            self.alarms, self._scheduler, lambda: self.now, self.append, self._alarms.resolve
        )
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
                suppressions=lambda alarms: self._silences.suppressions(alarms),
            )
        )
        self._silences = SimulatedSilences(
            compile_inhibits(rules), self._scheduler, lambda: self.now, self.append, self._open_alarms
        )
        self._runs.targets.channels = rules.of(ChannelDocument)
        self._silences.change_maintenances(rules.of(MaintenanceDocument), start)
        self._schedules = SimulatedSchedules(self._scheduler, self.append)
        self._schedules.change(rules.of(ScheduleDocument).values(), start)

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
        """Schedule an input: a method of this class and its arguments."""
        self._scheduler.add(at, INPUT, partial(getattr(self, method), **arguments))

    def apply(self, files: tuple[str, ...], who: str = _OPERATOR) -> None:
        """Other rules are in force from now on."""
        before, rules, now = self._rules, self._later[files], self.now
        self._rules, compiled = rules, CompiledRuleSet(rules)
        self._types = compiled.types
        changes = changed_documents(before, rules)
        self._runs.cancel_unstarted(ended_action_rules(before, rules))
        self._runs.targets.channels = rules.of(ChannelDocument)
        changed_states = self._alarms.change_rules(compiled, now)
        self._calc.change(rules, now)
        self._schedules.change(rules.of(ScheduleDocument).values(), now)
        self._silences.inhibits = compile_inhibits(rules)
        self.append(applied_event(changes, now, who))
        # Events before it are still dispatched by the rules before, as in the record lane.
        self._scheduler.add(now, EVENT, partial(self._begin_dispatch, rules, compiled, changed_states))
        self._silences.change_maintenances(rules.of(MaintenanceDocument), now, who)

    def _begin_dispatch(
        self, rules: RuleSet, compiled: CompiledRuleSet, changed_states: Mapping[str, StateChange]
    ) -> None:
        self._matcher = ActionMatcher(rules)
        self._alarms.change_event_rules(compiled, changed_states, self.now)

    def arrive(self, owner: str, key: str, value: Value, labels: Mapping[str, str] | None = None) -> None:
        self.receive(owner, [{"key": key, "value": value, "labels": dict(labels or {})}])

    def receive(
        self, owner: str, datapoints: Sequence[Mapping[str, Any]], lineage: tuple[str, ...] = ()
    ) -> None:
        """A message of a producer arrives, unless the data stream is out. The live lane parses it."""
        if any(gap.began_at < self.now < gap.ended_at for gap in self._gaps):
            return
        subject = f"tocsin.v1.data.0.{token(owner)}._"
        body = json.dumps({"batch": list(datapoints)}).encode()
        parsed = ParsedBatch(self._types, _BOUNDS)
        parsed.add(LaneMessage(len(self._events), self.now, subject, body))
        for event in check_in_events(parsed.inputs):
            self.append(event, lineage)
        for arrival in parsed.inputs:
            assert isinstance(arrival, Arrival)
            self._calc.arrive(arrival)
            self._alarms.arrive(arrival, lineage)
        for _, reason in parsed.rejected:
            key = str(datapoints[0]["key"])
            self.log.append(LogEntry(self.now, "rejected", key, owner, "rejected", {"text": reason}))

    def check_in(self, heartbeat: str, owner: str, check_in: CheckIn, log: str = "") -> None:
        """A job checks in, as `tocsin checkin` does."""
        self.receive(owner, check_in_datapoints(heartbeat, check_in, log))

    def emit(
        self, type: str, owner: str = "", payload: Mapping[str, Any] | None = None, **fields: Any
    ) -> None:
        """An event of a producer arrives. Its fields are those of the message (`IngestEvent`)."""
        number = f"{len(self._events)}/{type}/{owner}/{self.now.isoformat()}"
        message = {"id": number, "type": type, "owner": owner, "payload": dict(payload or {}), **fields}
        event = read_ingest_event(json.dumps(message, default=str).encode())
        id = event.event_id if "id" in fields else uuid.uuid5(_EVENTS, number)
        if id in self._ids:
            return
        self._ids.add(id)
        self.append(
            NewEvent(
                event.ts or self.now,
                "external",
                event.type,
                event.payload,
                owner=event.owner,
                id=id,
                severity=event.rank,
                correlation_id=event.correlation_id,
            )
        )

    def reply(self, action: str, **event: Any) -> None:
        """An event with the correlation id of the newest run of an action arrives."""
        correlation_id = self._runs.correlation_id(action)
        if correlation_id is None:
            raise InvalidInput(
                f"no run of {action!r} is active at {self._offset()}, so nothing can reply to it"
            )
        self.emit(**event, correlation_id=correlation_id)

    def acknowledge(self, rule: str, owner: str = "", who: str = _OPERATOR) -> None:
        self._operator.acknowledge(rule, owner, who)

    def snooze(self, rule: str, lasts: timedelta, owner: str = "", who: str = _OPERATOR) -> None:
        self._operator.snooze(rule, owner, who, lasts)

    def unsnooze(self, rule: str, owner: str = "", who: str = _OPERATOR) -> None:
        self._operator.unsnooze(rule, owner, who)

    def resolve(self, rule: str, owner: str = "", who: str = _OPERATOR) -> None:
        self._operator.resolve(rule, owner, who)

    def silence(self, where: str, lasts: timedelta, reason: str = "", who: str = _OPERATOR) -> None:
        self._silences.add(where, lasts, reason, who)

    def expire(self, where: str, who: str = _OPERATOR) -> None:
        self._silences.expire(where, who)

    def fail(self, action: str, step: str | None = None, times: int = 1, error: str = "it failed") -> None:
        self._runs.targets.failures.append(Failure(action, step, times, error))

    def probe(self, action: str, step: str | None, result: ProbeResult) -> None:
        """The probes of an action find this from now on."""
        self._runs.targets.findings.append(ProbeFinding(action, step, result))

    def await_reports(self, action: str) -> None:
        """The dispatched steps of an action wait for reports, instead of being completed at once."""
        self._runs.targets.reported.add(action)

    def report(self, action: str, step: str | None, report: Facts) -> None:
        if not self._runs.report(action, step, report):
            raise InvalidInput(f"no step of {action!r} waits for a report at {self._offset()}")

    def _offset(self) -> str:
        return since_start(self.now, self.start)

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
            own = with_retry(match, self._schedules.retry_of(facts["owner"], facts["schedule"]))
            self._runs.start(own, facts, facts["alarm_id"], lineage)
        self._runs.see(facts)
        self._silences.release(facts, self._runs)

    def _open_alarms(self) -> list[Facts]:
        return [alarm_facts(record, self.now) for record in self.alarms if record.state == "open"]

    def _change_health(self, change: HealthChange) -> None:
        """Log a change of health. It arrives at once as a datapoint of the system."""
        system, health = change.system, change.health
        self.log.append(LogEntry(self.now, "health", system, system, health, change.payload))
        labels = {} if change.reason is None else {"reason": str(change.reason)}
        arrival = Arrival(self.now, len(self._events), system, HEALTH_KEY, health, self.now, labels)
        self._scheduler.add(self.now, INPUT, partial(self._alarms.arrive, arrival))

    def _calculate(self, rule: str, point: CalcPoint) -> None:
        """Log a result of a calc_rule. It arrives at once as a datapoint of its series."""
        details = {"value": point.value, "key": point.key, "labels": point.labels}
        self.log.append(LogEntry(self.now, "calculated", rule, point.owner, "", details))
        seq, labels = len(self._events), dict(point.labels)
        arrival = Arrival(self.now, seq, point.owner, point.key, point.value, self.now, labels)
        self._scheduler.add(self.now, INPUT, partial(self._alarms.arrive, arrival))

    def _record(self, datapoints: Facts, lineage: tuple[str, ...]) -> None:
        batch = [{"key": key, "value": value} for key, value in datapoints["values"].items()]
        self.at(self.now, "receive", owner=datapoints["owner"], datapoints=batch, lineage=lineage)

    def _alarm_facts(self, alarm_id: uuid.UUID | None) -> Facts:
        return alarm_facts(self.alarms.get(alarm_id), self.now)

    def _digest_rows(self, after: int, upto: int) -> DigestMaterial:
        event = self._events[upto - 1]
        recurrence = self._schedules.recurrence(event["schedule"])
        next_at = None if recurrence is None else recurrence.next_after(event["ts"])
        previous_at = self._events[after - 1]["recorded_at"] if after else None
        since = digest_period(previous_at, next_at, event["recorded_at"])
        is_first = not after
        if is_first:
            after = sum(one["recorded_at"] < since for one in self._events)
        return DigestMaterial(
            since=since,
            until=event["recorded_at"],
            is_first=is_first,
            alarms=alarm_rows(self.alarms, since, self.now),
            events=event_rows(self._events, after, upto),
            stale_series=stale_rows(self._alarms.stale_series()),
            dead_runs=dead_run_rows(self.log, since),
        )

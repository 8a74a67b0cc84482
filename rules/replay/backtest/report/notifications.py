"""Counts the notifications of a backtest, by running the relevant events through dispatch.

Guarantee: limits, groups, overlaps, waits and the end of an escalation are those of the live code
(`rules.replay.runs`). Every delivery succeeds, and nothing is sent. A notification is a message
that a step sends: to a channel, a webhook, Slack, by email or through Apprise.

Silences are those of the recording (`recorded_silences`). Windows of candidate maintenances are
computed, and replace the recorded windows.

Limits and overlaps apply across owners, so notifications are counted when all owners have been
replayed, in the order of time. Events that an action emits and datapoints that it records are
ignored: those of the time are in the recording.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from rules.actions.steps.digest_results import DigestMaterial
from rules.dispatch.event_waits import MAX_EVENTS
from rules.replay.alarms import AlarmStore, alarm_facts
from rules.replay.backtest.operator import alarm_of, apply_operator_event, is_operator_event
from rules.replay.backtest.recorded_silences import is_window, recorded_silences
from rules.replay.backtest.recording.model import RecordedEvent
from rules.replay.backtest.relevant_events import NotificationKey, event_order, matches
from rules.replay.backtest.timelines import Timelines
from rules.replay.digest_rows import alarm_rows
from rules.replay.log import LogEntry
from rules.replay.perform import DELIVERIES
from rules.replay.runs import Runs, SimulationHooks
from rules.replay.scheduler import EVENT, Scheduler
from rules.replay.silences import SimulatedSilences
from schemas.wire.alarm_events import event_type
from tocsin.core.instant import MICROSECOND
from tocsin.core.records import NewEvent


def count_notifications(
    timelines: Timelines, events: Sequence[RecordedEvent], since: datetime, until: datetime
) -> Counter[NotificationKey]:
    """Count notifications in the window. `events` are the relevant events of all owners."""
    dispatch = _Dispatch(timelines, since)
    for silence in recorded_silences(events, with_windows=timelines.maintenance is None):
        dispatch.silences.put(silence)
    maintenances = {document.name: document for document in timelines.maintenance or ()}
    dispatch.silences.change_maintenances(maintenances, since)
    for event in sorted(events, key=event_order):
        dispatch.add(event)
    dispatch.run_until(until)
    return dispatch.notifications


class _Dispatch:
    def __init__(self, timelines: Timelines, since: datetime) -> None:
        self.notifications: Counter[NotificationKey] = Counter()
        self._timelines = timelines
        self._since = self._now = since
        self._seq = 0
        self._newest: deque[Mapping[str, Any]] = deque(maxlen=MAX_EVENTS)
        """The facts of the last events, for steps that begin to wait for one."""
        self._alarms = AlarmStore()
        self._scheduler = Scheduler()
        self._runs = Runs(
            SimulationHooks(
                scheduler=self._scheduler,
                now=lambda: self._now,
                append=lambda event, lineage: None,
                log=self._count,
                alarm=self._alarm_facts,
                digest_rows=self._digest_rows,
                newest_seq=lambda: self._seq,
                events_after=lambda seq: [event for event in self._newest if event["seq"] > seq],
                record=lambda datapoints, lineage: None,
                suppressions=lambda alarms: self.silences.suppressions(alarms),
            )
        )
        self.silences = SimulatedSilences(
            (), self._scheduler, lambda: self._now, self._append_silence_event, self._open_alarms
        )

    def add(self, event: RecordedEvent) -> None:
        """Dispatch an event, after everything that is due before its instant."""
        self.run_until(event.recorded_at - MICROSECOND)
        self._scheduler.add(event.recorded_at, EVENT, partial(self._dispatch, event))

    def run_until(self, until: datetime) -> None:
        while (due := self._scheduler.next(until)) is not None:
            self._now, call = due
            call()

    def _dispatch(self, event: RecordedEvent) -> None:
        self._seq += 1
        self._runs.targets.channels = self._timelines.matcher(event.seq).channels
        self.silences.inhibits = self._timelines.inhibits(event.seq)
        self._update_alarm(event)
        facts = {**event.facts(), "seq": self._seq, "alarm_id": event.alarm_id}
        self._newest.append(facts)
        for match in matches(self._timelines, event):
            self._runs.start(match, facts, event.alarm_id, ())
        self._runs.see(facts)
        if not is_window(event) or self._timelines.maintenance is None:
            self.silences.release(facts, self._runs)

    def _append_silence_event(self, event: NewEvent) -> None:
        """Dispatch an event of a computed window, which no recording has."""
        recorded = RecordedEvent.of(event, self._seq)
        facts = {**recorded.facts(), "alarm_id": None}
        self._scheduler.add(self._now, EVENT, partial(self.silences.release, facts, self._runs))

    def _open_alarms(self) -> list[Mapping[str, Any]]:
        return [alarm_facts(record, self._now) for record in self._alarms if record.state == "open"]

    def _update_alarm(self, event: RecordedEvent) -> None:
        if event.alarm_id is None:
            return
        record = self._alarms.get(event.alarm_id)
        if record is None or event.type == event_type("opened"):
            record = self._alarms.open(alarm_of(event), event.recorded_at, event.correlation_id)
        if event.type == event_type("resolved"):
            self._alarms.resolve(event.alarm_id, event.recorded_at)
        elif event.type == event_type("changed"):
            self._alarms.change(alarm_of(event))
        elif is_operator_event(event):
            apply_operator_event(self._alarms, record, event)

    def _alarm_facts(self, alarm_id: UUID | None) -> Mapping[str, Any]:
        return alarm_facts(self._alarms.get(alarm_id), self._now)

    def _digest_rows(self, after: int, upto: int) -> DigestMaterial:
        return DigestMaterial(self._since, self._now, alarms=alarm_rows(self._alarms, self._since, self._now))

    def _count(self, entry: LogEntry) -> None:
        if entry.kind != "step" or entry.state != "completed" or entry.at < self._since:
            return
        kind, event_rule = entry.details["step_kind"], entry.event["rule"]
        is_sent = kind in (*DELIVERIES, "notify") or (kind == "digest" and entry.details.get("channel"))
        if is_sent and event_rule:
            self.notifications[entry.rule, event_rule] += 1

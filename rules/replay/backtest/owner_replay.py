"""Replays one owner, compares it with the recording, and adds it to the result.

Guarantee: datapoints are not kept. The transitions and changes of staleness of the owner are kept
until they have been compared, and afterwards only what a report shows of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from rules.replay.alarms import AlarmStore
from rules.replay.backtest.cascade import CascadingReplay
from rules.replay.backtest.operator import ReplayWindow, replay_operator_events
from rules.replay.backtest.recording.model import (
    UNRECORDED,
    AlarmTransition,
    Arrivals,
    CalculatedChange,
    CalculatedChanges,
    InitialAlarm,
    OwnerHeader,
    RecordedEvent,
    RecordedEvents,
    RecordingHeader,
    RecordingItem,
)
from rules.replay.backtest.relevant_events import may_be_relevant, relevant_events
from rules.replay.backtest.replay import EventReplay, SeriesReplay
from rules.replay.backtest.report.mismatches import (
    compare_staleness,
    compare_transitions,
    in_window,
)
from rules.replay.backtest.result import BINS, BacktestResult
from rules.replay.backtest.timelines import History, Timelines

_REPORTED_FIELDS = ("key", "reason", "message")


class OwnerReplay:
    def __init__(
        self,
        owner_header: OwnerHeader,
        header: RecordingHeader,
        rules: Timelines,
        history: History,
        result: BacktestResult,
        is_historical: bool,
    ) -> None:
        owner, partition = owner_header.owner, owner_header.partition
        self._owner_header = owner_header
        self._header = header
        self._rules = rules
        self._history = history
        self._result = result
        self._is_historical = is_historical
        self._until = {"data": header.horizon("data", partition), "record": header.horizon("record", 0)}
        self._alarms = AlarmStore()
        self._series = SeriesReplay(
            owner,
            partition,
            rules,
            self._alarms,
            owner_header.last_datapoints,
            header.gaps.get(partition, ()),
            header.start,
        )
        self._window = ReplayWindow(header.start, min(self._until.values()))
        self._events = (
            EventReplay(owner, rules, self._alarms)
            if is_historical
            else CascadingReplay(owner, rules, self._alarms, self._window)
        )
        self._series.resolve_later(owner_header.resolutions)
        if is_historical:
            self._events.resolve_later(owner_header.resolutions)
        self._is_series_finished = False
        self._recorded: list[tuple[AlarmTransition, RecordedEvent]] = []
        self._others = [event for alarm in owner_header.open_alarms for event in alarm.operator_events]
        """Events that may be relevant to actions and are not transitions."""
        self._calculated: list[CalculatedChange] = []
        self._restored = [alarm for alarm in owner_header.open_alarms if self._restore(alarm)]
        first_rules = rules.at(_first_seq(header)).rules
        self._events.begin(self._restored, first_rules.values(), header.start)

    def take(self, item: RecordingItem) -> None:
        if isinstance(item, Arrivals):
            self._result.datapoints += len(item.rows)
            self._series.arrive(item.rows)
        elif isinstance(item, RecordedEvents):
            self._result.events += len(item.rows)
            for event in item.rows:
                self._see(event)
        elif isinstance(item, CalculatedChanges):
            self._calculated += item.rows

    def _restore(self, initial: InitialAlarm) -> bool:
        """Restore an alarm that was open at the start, if its rule still applies to it."""
        if initial.is_over_series:
            rule = self._series.memory.rules.rules.get(initial.alarm.rule)
        else:
            rule = self._rules.at(_first_seq(self._header)).rules.get(initial.alarm.rule)
        if rule is None or (rule.document.datapoint is not None) != initial.is_over_series:
            return False
        (self._series if initial.is_over_series else self._events).restore(initial, rule)
        if isinstance(self._events, CascadingReplay):
            self._events.replay_operators(initial)
        return True

    def _see(self, event: RecordedEvent) -> None:
        transition = event.transition
        if transition is not None:
            self._recorded.append((transition, event))
        elif may_be_relevant(self._history, event) or may_be_relevant(self._rules, event):
            self._others.append(event)
        is_fire = event.origin == "scheduled" and event.correlation_id == event.id
        if is_fire and self._header.since <= event.ts <= self._header.until:
            self._result.fires[event.schedule, _bin(self._header, event.ts)] += 1
        if event.recorded_at > self._until["record"]:
            return
        self._finish_series()
        if self._is_historical or transition is None:
            self._events.evaluate(event)

    def _finish_series(self) -> None:
        """Finish the data lane before the first event. All datapoints of the owner come before it.

        The transitions of candidate rules replace the recorded ones in the record lane.
        """
        if self._is_series_finished:
            return
        self._is_series_finished = True
        self._series.finish(self._until["data"])
        if isinstance(self._events, CascadingReplay):
            self._events.queue(self._series.transitions)

    def finish(self) -> None:
        header, result = self._header, self._result
        self._finish_series()
        self._events.finish(self._until["record"])
        recorded = in_window((transition for transition, _ in self._recorded), header.since, self._until)
        replayed = in_window(self._transitions, header.since, self._until)
        staleness = [change for change in self._calculated if change.kind in ("stale", "fresh")]
        recorded_staleness = self._staleness_in_window(staleness)
        replayed_staleness = self._staleness_in_window(self._series.staleness)
        result.owners += 1
        result.staleness_count += len(recorded_staleness)
        result.observations += self._series.observations
        result.recorded_health += (change for change in self._calculated if change.kind == "health")
        open_alarms = self._owner_header.open_alarms
        if any(alarm.is_over_series for alarm in open_alarms):
            result.owners_with_initial_alarms.append(self._owner_header.owner)
        if self._is_historical:
            result.mismatches += compare_transitions(recorded, replayed, open_alarms)
            result.mismatches += compare_staleness(recorded_staleness, replayed_staleness)
        self._add_relevant_events()
        result.recorded_transitions += map(_reported, recorded)
        result.replayed_transitions += map(_reported, replayed)
        result.replayed_staleness += replayed_staleness

    @property
    def _transitions(self) -> list[AlarmTransition]:
        return [*self._series.transitions, *self._events.transitions]

    def _staleness_in_window(self, changes: Iterable[CalculatedChange]) -> list[CalculatedChange]:
        return [change for change in changes if self._header.since <= change.at <= self._until["data"]]

    def _add_relevant_events(self) -> None:
        recorded = [event for transition, event in self._recorded if self._is_decided(transition)]
        by_id = {event.id: event for event in recorded}
        replayed = _with_recorded_order(
            _as_recorded(self._events.event_of(transition), by_id)
            for transition in self._transitions
            if self._is_decided(transition)
        )
        if self._is_historical:
            others = [event for event in self._others if self._has_alarm_of(event)]
        else:
            others = replay_operator_events(self._others, self._window, self._restored, recorded, replayed)
        self._result.recorded_events += relevant_events(self._history, [*recorded, *self._others])
        self._result.replayed_events += relevant_events(self._rules, [*replayed, *others])

    def _is_decided(self, transition: AlarmTransition) -> bool:
        return transition.at <= self._until[transition.lane]

    def _has_alarm_of(self, event: RecordedEvent) -> bool:
        if event.alarm_id is None or self._alarms.get(event.alarm_id) is not None:
            return True
        return any(event.alarm_id == initial.alarm.id for initial in self._owner_header.open_alarms)


def _as_recorded(event: RecordedEvent, recorded: Mapping[UUID, RecordedEvent]) -> RecordedEvent:
    """The event with its recorded position, if it was recorded at the same instant."""
    was = recorded.get(event.id)
    if was is None or was.ts != event.ts:
        return event
    return was._replace(severity=event.severity, payload=event.payload)


def _with_recorded_order(replayed: Iterable[RecordedEvent]) -> list[RecordedEvent]:
    """The events with seqs that keep the events of one input together.

    Of these, some were recorded and some were not.
    """
    events = list(replayed)
    seqs: dict[datetime, int] = {}
    for event in events:
        if event.seq > UNRECORDED:
            seqs[event.recorded_at] = min(event.seq, seqs.get(event.recorded_at, event.seq))
    return [event._replace(seq=seqs.get(event.recorded_at, event.seq)) for event in events]


def _reported(transition: AlarmTransition) -> AlarmTransition:
    """The transition with the fields of the payload that a report shows."""
    payload: dict[str, Any] = {
        name: transition.payload[name] for name in _REPORTED_FIELDS if name in transition.payload
    }
    return transition._replace(payload=payload)


def _first_seq(header: RecordingHeader) -> int:
    return max((apply.seq for apply in header.applies if apply.recorded_at < header.start), default=0) + 1


def _bin(header: RecordingHeader, at: datetime) -> int:
    window_s = (header.until - header.since).total_seconds() or 1.0
    return min(int((at - header.since).total_seconds() / window_s * BINS), BINS - 1)

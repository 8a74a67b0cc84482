"""Replays one owner: recorded inputs in, transitions and changes of staleness out.

Guarantee: the order is that of the live system. At one instant staleness comes first, then arrivals in
stream order, then sustains. At a change of the rules, deadlines up to the watermark pass under
the older rules, the states of changed rules are converted, and rules that are new or changed
evaluate the series that are stale (`rules/apply`). Nothing happens after `finish(until)`.

Pure: no I/O.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rules.alarms.rule_change import change_state
from rules.alarms.staleness import NO_GAPS
from rules.engine import Arrival, EventSeen, OpenAlarm, Rule, RuleState, Suppressed, WentStale
from rules.engine.messages import described_alarm
from rules.engine.state import FiringSeries
from rules.health.observations import MemberAlarm, Observation, member_alarm, member_alarm_at
from rules.lanes.arrival_gap import ArrivalGap
from rules.language.cel import event_activation, event_environment
from rules.replay.alarms import AlarmRecord, AlarmStore
from rules.replay.backtest.health import ReplayedObservation
from rules.replay.backtest.recording.model import (
    AlarmTransition,
    CalculatedChange,
    InitialAlarm,
    LaneName,
    LastDatapoint,
    OperatorResolution,
    RecordedEvent,
)
from rules.replay.backtest.timelines import RuleChange, Timelines
from rules.replay.memory import MemoryKey, RuleMemory, SeriesMemory
from rules.replay.seen_alarms import SeenAlarms
from schemas.values.series_key import base_key
from schemas.wire.alarm_events import RuleTransition
from schemas.wire.calculated import CALC_PREFIX
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import MICROSECOND

_BEGINNING = datetime.min.replace(tzinfo=UTC)


class LaneReplay:
    """The transitions of one owner in one lane."""

    memory: RuleMemory

    lane: LaneName

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.transitions: list[AlarmTransition] = []
        self._changes: list[RuleChange] = []
        """Changes of the rules, the last one first."""
        self._resolutions: list[OperatorResolution] = []
        """Alarms that operators resolved, the last one first."""

    def resolve_later(self, events: Iterable[RecordedEvent]) -> None:
        """Resolve the alarms of this lane that operators resolved, at their positions."""
        resolutions = map(OperatorResolution.of, events)
        of_lane = (resolution for resolution in resolutions if resolution.lane == self.lane)
        self._resolutions = sorted(of_lane, key=lambda one: (one.position, one.event.seq), reverse=True)

    def _next_stop(self) -> RuleChange | OperatorResolution | None:
        """What comes next between two inputs: a change of the rules, or an operator."""
        stops: list[RuleChange | OperatorResolution] = [*self._changes[-1:], *self._resolutions[-1:]]
        return min(stops, key=lambda stop: (stop.position, _seq_of(stop)), default=None)

    def _pass_stop(self, stop: RuleChange | OperatorResolution) -> None:
        if isinstance(stop, RuleChange):
            self._changes.pop()
            self._change_rules(stop)
            return
        self._resolutions.pop()
        event = stop.event
        assert event.alarm_id is not None
        self.memory.resolve(event.alarm_id, stop.watermark, event.ts, dict(event.payload))

    def _change_rules(self, change: RuleChange) -> None:
        self._convert_states(change)

    def restore(self, alarm: InitialAlarm, rule: Rule) -> None:
        """Continue an alarm that was open at the start. It is held by the series of its payload."""
        self.memory.restore(rule, _open_state(alarm))

    def on_transition(
        self, record: AlarmRecord, transition: RuleTransition, at: datetime, payload: Mapping[str, Any]
    ) -> None:
        alarm = record.alarm
        self.transitions.append(
            AlarmTransition(alarm.rule, alarm.owner, transition, at, alarm.id, alarm.severity, payload)
        )

    def on_suppressed(self, rule: str, owner: str, suppressed: Suppressed) -> None:
        """Nothing: it is no transition."""

    def on_sustain(self, memory: RuleMemory, key: MemoryKey, due_at: datetime) -> None:
        """Nothing: a sustain ends with the next input, or in `finish`."""

    def _convert_states(self, change: RuleChange) -> None:
        states = self.memory.states
        for key in sorted(key for key in states if key[0] in change.state_changes):
            state_change, state = change.state_changes[key[0]], states[key]
            if state.phase != "ok":
                self.memory.keep(key, *change_state(state, state_change, change.watermark, change.at))
            if state_change.rule is None and change.drops_states:
                del states[key]


class SeriesReplay(LaneReplay):
    """The data lane of an owner."""

    memory: SeriesMemory
    lane: LaneName = "data"

    def __init__(
        self,
        owner: str,
        partition: int,
        timelines: Timelines,
        alarms: AlarmStore,
        last_datapoints: Sequence[LastDatapoint] = (),
        gaps: Sequence[ArrivalGap] = NO_GAPS,
        start: datetime = _BEGINNING,
    ) -> None:
        super().__init__(owner)
        self.staleness: list[CalculatedChange] = []
        self.observations: list[ReplayedObservation] = []
        timeline = timelines.of_series(partition)
        self._rules_seq = timeline.rules_seq
        self._changes = list(reversed(timeline.changes))
        self.memory = SeriesMemory(owner, timeline.first, alarms, self, gaps)
        self._names_series = timelines.names_series
        last_arrivals = [
            Arrival(last.arrived_at, 0, owner, last.key, last.value, last.ts, last.labels)
            for last in sorted(last_datapoints, key=lambda last: last.arrived_at)
        ]
        for arrival in self._with_series_keys(last_arrivals):
            self.memory.series.arrive(arrival)
        self.memory.restore_heartbeats(last_arrivals, timeline.begins, start)
        self._begin_membership({}, min((last.arrived_at for last in last_datapoints), default=_BEGINNING))

    def restore(self, alarm: InitialAlarm, rule: Rule) -> None:
        super().restore(alarm, rule)
        if self.memory.is_observed:
            instance = alarm.alarm.instance
            alarm_of_member = member_alarm(self.memory.states[rule.name, instance])
            self._observe_initially(
                Observation(self.owner, alarm.opened_at, "alarm", rule.name, instance, alarm_of_member)
            )

    def arrive(self, arrivals: Sequence[Arrival]) -> None:
        arrivals = self._with_series_keys(arrivals)
        while (stop := self._next_stop()) is not None:
            count = bisect_right(arrivals, stop.position, key=lambda arrival: (arrival.at, arrival.seq))
            if count == len(arrivals):
                break
            self.memory.arrive(arrivals[:count])
            arrivals = arrivals[count:]
            self._pass_stop(stop)
        self.memory.arrive(arrivals)

    def _with_series_keys(self, arrivals: Sequence[Arrival]) -> Sequence[Arrival]:
        """The arrivals in the series that the types of the candidate documents give them."""
        types = self.memory.rules.types
        if not self._names_series:
            return arrivals
        if not types.has_dimensions and not any("{" in arrival.key for arrival in arrivals):
            return arrivals
        return [
            arrival
            if arrival.key.startswith(CALC_PREFIX)
            else arrival._replace(key=types.series_key(base_key(arrival.key), arrival.labels))
            for arrival in arrivals
        ]

    def finish(self, until: datetime) -> None:
        while (stop := self._next_stop()) is not None and (stop.watermark or until) <= until:
            self._pass_stop(stop)
        self.memory.pass_deadlines(until)
        self.memory.advance_all(until)

    def _change_rules(self, change: RuleChange) -> None:
        """Change the rules. With a watermark of None the lane had read nothing."""
        memory, decided_until = self.memory, change.watermark or _BEGINNING
        memory.pass_deadlines(decided_until)
        held = None
        if change.watermark is not None:
            memory.advance_all(change.watermark - MICROSECOND)
        if memory.is_observed:
            held = {key: member_alarm(state) for key, state in memory.states.items()}
        # The difference to `held` is observed at the end.
        memory.is_observed = False
        self._convert_states(change)
        memory.series.change_types(change.after.types, decided_until)
        memory.rules = change.after
        self._rules_seq = change.rules_seq
        memory.begin_heartbeats(change.watermark or change.at)
        for went_stale in memory.series.stale_inputs(decided_until, change.at) if change.reevaluated else ():
            for rule in memory.rules.for_key(went_stale.key):
                if rule.name in change.reevaluated:
                    memory.step(rule, went_stale)
        self._begin_membership(held, decided_until)

    def _begin_membership(self, held: Mapping[MemoryKey, MemberAlarm | None] | None, at: datetime) -> None:
        """Observe the state of the owner, as far as it is not known.

        `held` are its alarms as observed before; None if the owner was not a member.
        """
        memory = self.memory
        memory.is_observed = self.owner in memory.rules.members.owners
        if not memory.is_observed:
            return
        if not held:
            for observation in memory.series.observations(at):
                self._observe_initially(observation)
        now = {key: member_alarm_at(state, at) for key, state in memory.states.items()}
        for key in sorted({*now, *(held or ())}):
            if now.get(key) != (held or {}).get(key):
                self._observe_initially(Observation(self.owner, at, "alarm", key[0], key[1], now.get(key)))

    def on_stale(self, went_stale: WentStale) -> None:
        self.staleness.append(
            CalculatedChange(went_stale.owner, went_stale.key, "stale", went_stale.at, went_stale.value)
        )

    def on_fresh(self, arrival: Arrival) -> None:
        self.staleness.append(
            CalculatedChange(arrival.owner, arrival.key, "fresh", arrival.at, arrival.value)
        )

    def on_observations(self, observations: Iterable[Observation]) -> None:
        self.observations += (
            ReplayedObservation(self._rules_seq, False, observation) for observation in observations
        )

    def _observe_initially(self, observation: Observation) -> None:
        self.observations.append(ReplayedObservation(self._rules_seq, True, observation))


class EventReplay(LaneReplay):
    """The record lane of an owner."""

    lane: LaneName = "record"

    def __init__(self, owner: str, timelines: Timelines, alarms: AlarmStore) -> None:
        super().__init__(owner)
        self.memory = RuleMemory(owner, alarms, self)
        self._alarms = alarms
        self._timelines = timelines
        self._changes = list(reversed(timelines.of_events()))
        self._seen = SeenAlarms()
        """The alarms of both lanes that are open at the position of this lane."""

    def begin(self, initial_alarms: Iterable[InitialAlarm], rules: Iterable[Rule], at: datetime) -> None:
        """Begin with the alarms that are open at the start. Rules over alarms read them."""
        for initial in initial_alarms:
            alarm = initial.alarm
            self._seen.add(OpenAlarm(alarm.rule, alarm.instance, initial.opened_at))
        if self._seen:
            self._seen.begin(self.memory, rules, at)

    def _change_rules(self, change: RuleChange) -> None:
        super()._change_rules(change)
        self._seen.begin(self.memory, change.begun, change.at)

    def evaluate(self, event: RecordedEvent) -> None:
        """Evaluate the rules over events that apply to this event."""
        while (stop := self._next_stop()) is not None and event.seq > stop.position[1]:
            self._pass_stop(stop)
        if event.transition is not None:
            self._pass_sustain(event)
        facts = event.facts()
        self._seen.follow(facts)
        rules = self._timelines.at(event.seq).for_event(event.type, event.rule)
        if not rules:
            return
        try:
            seen = EventSeen(event.recorded_at, facts, event_activation(event_environment(), facts))
        except InvalidInput:
            return  # The live lane skips such an event, too.
        for rule in rules:
            self.memory.step(rule, seen, event.correlation_id)

    def finish(self, until: datetime) -> None:
        while (stop := self._next_stop()) is not None and stop.position[0] <= until:
            self._pass_stop(stop)
        self.memory.advance_all(until)

    def _pass_sustain(self, event: RecordedEvent) -> None:
        """A recorded transition comes after the sustain that caused it, also at one instant."""
        for key, state in list(self.memory.states.items()):
            if state.alarm is not None and state.alarm.id == event.alarm_id:
                self.memory.advance(key, event.ts)

    def event_of(self, transition: AlarmTransition) -> RecordedEvent:
        """The event of a transition of either lane."""
        record = self._alarms.get(transition.alarm_id)
        assert record is not None
        return transition.as_event(record.correlation_id)


def _seq_of(stop: RuleChange | OperatorResolution) -> int:
    return stop.rules_seq if isinstance(stop, RuleChange) else stop.event.seq


def _open_state(initial: InitialAlarm) -> RuleState:
    payload = initial.alarm.payload
    alarm = described_alarm(initial.alarm)
    firing = FiringSeries(
        since=alarm.since,
        due_at=alarm.since,
        cause=alarm.cause,
        value=payload.get("value"),
        labels=payload.get("labels", {}),
        event_id=payload.get("event_id", ""),
        event_type=payload.get("event_type", ""),
        severity=alarm.severity,
        first_value=payload.get("first_value"),
        payload=payload.get("payload", {}),
    )
    return RuleState(
        phase="open",
        alarm=alarm,
        last_opened_at=initial.opened_at,
        last_since=alarm.since,
        firing_series=dict.fromkeys(alarm.series, firing),
    )

"""The replay of one owner: recorded inputs in, edges and staleness out. Pure.

Guarantee: the order is that of the live system. At one instant sustains come first, then silences, then arrivals in
stream order; where the rules changed, silences that were decided are heard under the older ones, alarms meet their
fate, and rules that judge anew hear of what is stale (`rules/apply`). Nothing goes beyond `finish(until)`.

The engine is the live one; there is no other way in which a rule is judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from rules.alarms.rule_change import change_state
from rules.engine import (
    BLANK,
    Alarm,
    Arrival,
    Effects,
    EventSeen,
    Open,
    Pend,
    Resolve,
    Rule,
    RuleState,
    WentStale,
    adopt,
    advance,
    step,
)
from rules.engine.state import FiringSeries
from rules.health.observations import Fact, Held, held_after, held_by, holding_facts
from rules.language.cel import event_activation, event_environment
from rules.replay.backtest.health import Noted
from rules.replay.backtest.recording.model import Edge, LastSeen, OpenAlarm, RecordedEvent, Staleness
from rules.replay.backtest.staleness import News, SilentSeries
from rules.replay.backtest.timelines import Change, Timelines
from schemas.wire.alarm_events import RuleTransition
from tocsin.core.errors import InvalidInput

_EVER = datetime.min.replace(tzinfo=UTC)


class _Replay:
    """States of one owner in one lane, and what became of them."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.edges: list[Edge] = []
        self.resolved_when_due: set[UUID] = set()
        """Alarms that a sustain ended, and so before anything else that happened at the instant."""
        self._states: dict[str, RuleState] = {}

    def begin_with(self, alarm: OpenAlarm, rule: Rule) -> None:
        """An alarm that was open before the replay began, held by what it names."""
        held = _held(alarm, self.owner)
        self._keep(rule.name, *adopt(rule, held, alarm.opened_at))

    @property
    def next_due(self) -> datetime | None:
        """When the next sustain ends."""
        return min((one.due_at for one in self._states.values() if one.due_at is not None), default=None)

    def realise(self, until: datetime) -> None:
        """The sustains that end at or before an instant."""
        for name, state in list(self._states.items()):
            self._keep(name, *advance(state, until))

    def _meet_fates(self, change: Change) -> None:
        for name in sorted(change.state_changes.keys() & self._states.keys()):
            state_change, state = change.state_changes[name], self._states[name]
            if state.phase != "ok":
                self._keep(name, *change_state(state, state_change, change.watermark, change.at))
            if state_change.rule is None and change.forgets:
                del self._states[name]

    def _keep(self, name: str, state: RuleState, effects: Effects) -> None:
        before = self._states.get(name, BLANK)
        self._states[name] = state
        for effect in effects:
            if isinstance(effect, Open):
                self._note(effect.alarm, "opened", effect)
            elif isinstance(effect, Resolve):
                self._note(effect.alarm, "resolved", effect)
                if before.due_at == effect.at:
                    self.resolved_when_due.add(effect.alarm.id)

    def _note(self, alarm: Alarm, edge: RuleTransition, effect: Open | Resolve) -> None:
        told = effect.payload
        self.edges.append(Edge(alarm.rule, alarm.owner, edge, effect.at, alarm.id, alarm.severity, told))


class SeriesReplay(_Replay):
    def __init__(
        self, owner: str, partition: int, timelines: Timelines, last: Sequence[LastSeen] = ()
    ) -> None:
        super().__init__(owner)
        self.staleness: list[Staleness] = []
        self.noted: list[Noted] = []
        timeline = timelines.of_series(partition)
        self.rules = timeline.first
        self._rules_seq = timeline.rules_seq
        self._changes = list(reversed(timeline.changes))
        self._series = SilentSeries(owner, self.rules.types, last)
        self._is_member = False
        self._begin_membership({}, min((one.arrived_at for one in last), default=_EVER))

    def begin_with(self, alarm: OpenAlarm, rule: Rule) -> None:
        super().begin_with(alarm, rule)
        if self._is_member:
            fact = Fact(self.owner, alarm.opened_at, "alarm", rule.name, held_by(self._states[rule.name]))
            self.noted.append(Noted(self._rules_seq, True, fact))

    def arrive(self, arrivals: Sequence[Arrival]) -> None:
        series, states = self._series, self._states
        for given in arrivals:
            if self._changes and (given.at, given.seq) > self._changes[-1].place:
                self._change_until(given)
            if given.at >= series.next_due:
                self._fall_silent(given.at)
            news = series.arrive(given)
            if news is not None:
                self._hear_of(given, news)
            for rule in self.rules.for_key(given.key):
                before = states.get(rule.name, BLANK)
                after, effects = step(rule, before, given)
                if after is not before:
                    if self._is_member:
                        self._follow(rule.name, given.at, before, after)
                    if effects:
                        self._keep(rule.name, after, effects)
                    else:
                        states[rule.name] = after

    def finish(self, until: datetime) -> None:
        while self._changes and (self._changes[-1].watermark or until) <= until:
            self._change(self._changes.pop())
        self._fall_silent(until)
        self.realise(until)

    def _change_until(self, given: Arrival) -> None:
        while self._changes and (given.at, given.seq) > self._changes[-1].place:
            self._change(self._changes.pop())

    def _change(self, change: Change) -> None:
        """One that had read nothing yet (`watermark` is None) has nothing to settle."""
        decided = change.watermark or _EVER
        self._fall_silent(decided)
        if self._is_member:
            self.realise(decided)
        held = {name: held_by(state) for name, state in self._states.items()} if self._is_member else None
        self._is_member = False
        self._meet_fates(change)
        self._series.retype(change.after.types, decided)
        self.rules = change.after
        self._rules_seq = change.rules_seq
        for given in self._series.stale(decided, change.at) if change.anew else ():
            for rule in self.rules.for_key(given.key):
                if rule.name in change.anew:
                    self._hear(rule, given)
        self._begin_membership(held, decided)

    def _begin_membership(self, held: Mapping[str, Held | None] | None, at: datetime) -> None:
        """How the owner stands, as far as it is not known: `held` are its alarms before; None: nothing of it was."""
        self._is_member = self.owner in self.rules.members.owners
        if not self._is_member:
            return
        if not held:
            self.noted += (Noted(self._rules_seq, True, fact) for fact in self._series.facts(at))
        now = {name: held_after(state, at) for name, state in self._states.items()}
        for name in sorted({*now, *(held or ())}):
            if now.get(name) != (held or {}).get(name):
                fact = Fact(self.owner, at, "alarm", name, now.get(name))
                self.noted.append(Noted(self._rules_seq, True, fact))

    def _hear_of(self, given: Arrival, news: News) -> None:
        if news == "fresh":
            self.staleness.append(Staleness(given.owner, given.key, "fresh", given.at, given.value))
        if self._is_member:
            self.noted.append(Noted(self._rules_seq, False, Fact(self.owner, given.at, "fresh", given.key)))

    def _fall_silent(self, until: datetime) -> None:
        for passed in self._series.due(until):
            given = passed.input
            self.staleness.append(Staleness(given.owner, given.key, "stale", given.at, given.value))
            if self._is_member:
                fact = Fact(self.owner, given.at, "stale", given.key)
                self.noted.append(Noted(self._rules_seq, False, fact))
            for rule in self.rules.for_key(given.key):
                self._hear(rule, given)

    def _hear(self, rule: Rule, given: WentStale) -> None:
        before = self._states.get(rule.name, BLANK)
        after, effects = step(rule, before, given)
        if self._is_member:
            self._follow(rule.name, given.at, before, after)
        self._keep(rule.name, after, effects)

    def realise(self, until: datetime) -> None:
        for name, before in list(self._states.items()):
            after, effects = advance(before, until)
            if self._is_member:
                self._follow(name, until, before, after)
            self._keep(name, after, effects)

    def _follow(self, rule: str, at: datetime, before: RuleState, after: RuleState) -> None:
        facts = holding_facts(rule, self.owner, at, before, after)
        self.noted += (Noted(self._rules_seq, False, fact) for fact in facts)


class EventReplay(_Replay):
    def __init__(self, owner: str, timelines: Timelines) -> None:
        super().__init__(owner)
        self._timelines = timelines
        self._changes = list(reversed(timelines.of_events()))
        self._correlations: dict[UUID, UUID] = {}
        """By alarm, of the event that began it."""

    def see(self, event: RecordedEvent) -> None:
        while self._changes and event.seq > self._changes[-1].place[1]:
            self._meet_fates(self._changes.pop())
        rules = self._timelines.at(event.seq).for_event(event.type)
        if not rules:
            return
        facts = event.facts()
        try:
            given = EventSeen(event.recorded_at, facts, event_activation(event_environment(), facts))
        except InvalidInput:
            return  # The live lane passes over it, too.
        for rule in rules:
            state, effects = step(rule, self._states.get(rule.name, BLANK), given)
            for effect in effects:
                if isinstance(effect, Pend | Open):
                    self._correlations.setdefault(effect.alarm.id, event.correlation_id)
            self._keep(rule.name, state, effects)

    def finish(self, until: datetime) -> None:
        while self._changes and self._changes[-1].place[0] <= until:
            self._meet_fates(self._changes.pop())
        self.realise(until)

    def event_of(self, edge: Edge) -> RecordedEvent:
        """The event that the edge would have been."""
        return edge.as_event(self._correlations.get(edge.alarm_id, edge.alarm_id))


def _held(alarm: OpenAlarm, owner: str) -> RuleState:
    told = alarm.payload
    verdict = FiringSeries(
        since=alarm.since,
        due_at=alarm.since,
        cause="no_data" if told.get("threshold") == "silent" else "fired",
        value=told.get("value"),
        labels=told.get("labels", {}),
        event_id=told.get("event_id", ""),
        event_type=told.get("event_type", ""),
    )
    return RuleState(
        phase="open",
        alarm=Alarm(
            alarm.id, alarm.rule, owner, alarm.severity, alarm.since, alarm.payload, alarm.source_event_id
        ),
        last_opened_at=alarm.opened_at,
        last_since=alarm.since,
        firing_series={told.get("key", ""): verdict},
    )

"""The replay of one owner: recorded inputs in, edges and staleness out. Pure.

Guarantee: the order is that of the live system. At one instant sustains come first, then silences, then arrivals in
stream order; where the rules changed, silences that were decided are heard under the older ones, alarms meet their
fate, and rules that judge anew hear of what is stale (`rules/applying`). Nothing goes beyond `finish(until)`.

The engine is the live one; there is no other way in which a rule is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rules.alarms.fates import switch
from rules.backtest.facts import Edge, LastSeen, OpenAlarm, RecordedEvent, Staleness
from rules.backtest.silent_series import SilentSeries
from rules.backtest.timelines import Change, Timelines
from rules.engine import (
    BLANK,
    Alarm,
    Arrival,
    Effects,
    EventSeen,
    Open,
    Resolve,
    Rule,
    RuleState,
    WentStale,
    adopt,
    advance,
    step,
)
from rules.engine.effects import Edge as EdgeKind
from rules.engine.state import Verdict
from rules.expressions import event_activation, event_environment
from tocsin.core.errors import InvalidInput

_EVER = datetime.min.replace(tzinfo=UTC)


class _Replay:
    """States of one owner in one lane, and what became of them."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.edges: list[Edge] = []
        self._states: dict[str, RuleState] = {}

    def begin_with(self, alarm: OpenAlarm, rule: Rule) -> None:
        """An alarm that was open before the replay began, held by what it names."""
        held = _held(alarm, self.owner)
        self._keep(rule.name, *adopt(rule, held, alarm.opened_at))

    def _finish_states(self, until: datetime) -> None:
        for name, state in list(self._states.items()):
            self._keep(name, *advance(state, until))

    def _meet_fates(self, change: Change) -> None:
        for name in sorted(change.fates.keys() & self._states.keys()):
            fate, state = change.fates[name], self._states[name]
            if state.phase != "ok":
                self._keep(name, *switch(state, fate, change.complete_until, change.at))
            if fate.rule is None and change.forgets:
                del self._states[name]

    def _keep(self, name: str, state: RuleState, effects: Effects) -> None:
        self._states[name] = state
        for effect in effects:
            if isinstance(effect, Open):
                self._note(effect.alarm, "opened", effect)
            elif isinstance(effect, Resolve):
                self._note(effect.alarm, "resolved", effect)

    def _note(self, alarm: Alarm, edge: EdgeKind, effect: Open | Resolve) -> None:
        told = effect.payload
        self.edges.append(Edge(alarm.rule, alarm.owner, edge, effect.at, alarm.id, alarm.severity, told))


class SeriesReplay(_Replay):
    def __init__(
        self, owner: str, partition: int, timelines: Timelines, last: Sequence[LastSeen] = ()
    ) -> None:
        super().__init__(owner)
        self.staleness: list[Staleness] = []
        timeline = timelines.of_series(partition)
        self.rules = timeline.first
        self._changes = list(reversed(timeline.changes))
        self._series = SilentSeries(owner, self.rules.types, last)

    def arrive(self, arrivals: Sequence[Arrival]) -> None:
        series, states = self._series, self._states
        for given in arrivals:
            if self._changes and (given.at, given.seq) > self._changes[-1].place:
                self._change_until(given)
            if given.at >= series.next_due:
                self._fall_silent(given.at)
            if series.arrive(given):
                self.staleness.append(Staleness(given.owner, given.key, "fresh", given.at, given.value))
            for rule in self.rules.for_key(given.key):
                before = states.get(rule.name, BLANK)
                after, effects = step(rule, before, given)
                if effects:
                    self._keep(rule.name, after, effects)
                elif after is not before:
                    states[rule.name] = after

    def finish(self, until: datetime) -> None:
        while self._changes and (self._changes[-1].complete_until or until) <= until:
            self._change(self._changes.pop())
        self._fall_silent(until)
        self._finish_states(until)

    def _change_until(self, given: Arrival) -> None:
        while self._changes and (given.at, given.seq) > self._changes[-1].place:
            self._change(self._changes.pop())

    def _change(self, change: Change) -> None:
        """One that had read nothing yet (`complete_until` is None) has nothing to settle."""
        decided = change.complete_until or _EVER
        self._fall_silent(decided)
        self._meet_fates(change)
        self._series.retype(change.after.types, decided)
        self.rules = change.after
        for given in self._series.stale(decided) if change.anew else ():
            for rule in self.rules.for_key(given.key):
                if rule.name in change.anew:
                    self._hear(rule, given)

    def _fall_silent(self, until: datetime) -> None:
        for silence in self._series.due(until):
            given = silence.given
            self.staleness.append(Staleness(given.owner, given.key, "stale", given.at, given.value))
            for rule in self.rules.for_key(given.key):
                self._hear(rule, given)

    def _hear(self, rule: Rule, given: WentStale) -> None:
        self._keep(rule.name, *step(rule, self._states.get(rule.name, BLANK), given))


class EventReplay(_Replay):
    def __init__(self, owner: str, timelines: Timelines) -> None:
        super().__init__(owner)
        self._timelines = timelines
        self._changes = list(reversed(timelines.of_events()))

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
            self._keep(rule.name, *step(rule, self._states.get(rule.name, BLANK), given))

    def finish(self, until: datetime) -> None:
        while self._changes and self._changes[-1].place[0] <= until:
            self._meet_fates(self._changes.pop())
        self._finish_states(until)


def _held(alarm: OpenAlarm, owner: str) -> RuleState:
    told = alarm.payload
    verdict = Verdict(
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
        verdicts={told.get("key", ""): verdict},
    )

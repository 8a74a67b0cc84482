"""One share of the owners, replayed and compared: what a process of the backtest does.

Guarantee: what is found depends on the recording and the rules alone, not on the shares. Datapoints pass through; kept
are the edges and gaps of an owner while it is compared, and afterwards only what a report shows of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import chain
from typing import Any
from uuid import UUID

from rules.replay.backtest.cascade import HearingReplay
from rules.replay.backtest.health import Noted, arrivals, derive, levels
from rules.replay.backtest.operator import Acts, Window
from rules.replay.backtest.recording.model import (
    UNRECORDED,
    Arrivals,
    Edge,
    Events,
    OpenAlarm,
    OwnerBegins,
    Part,
    RecordedEvent,
    Source,
    Staleness,
    Story,
    Verdicts,
    Version,
)
from rules.replay.backtest.relevant_events import Page, concerning, may_concern
from rules.replay.backtest.replay import EventReplay, SeriesReplay
from rules.replay.backtest.report.mismatches import (
    Difference,
    compare_edges,
    compare_health,
    compare_staleness,
    within,
)
from rules.replay.backtest.timelines import Candidate, Era, History, Timelines

_SHOWN = ("key", "reason", "message")
BINS = 600


@dataclass
class Found:
    """Of some owners; `+` of several shares is that of all."""

    then: list[Edge] = field(default_factory=list)
    now: list[Edge] = field(default_factory=list)
    gaps: list[Staleness] = field(default_factory=list)
    """As replayed; those of the record only matter where they differ."""
    heard_then: list[RecordedEvent] = field(default_factory=list)
    """What concerns actions; pages are made of it."""
    heard_now: list[RecordedEvent] = field(default_factory=list)
    pages_then: Counter[Page] = field(default_factory=Counter)
    pages_now: Counter[Page] = field(default_factory=Counter)
    fires: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Of schedules, by name and by which 600th of the window."""
    differences: list[Difference] = field(default_factory=list)
    owners: int = 0
    datapoints: int = 0
    events: int = 0
    staleness: int = 0
    """Verdicts recorded in the window."""
    health: int = 0
    """Those about systems."""
    noted: list[Noted] = field(default_factory=list)
    """What the health of systems follows from, until it is concluded."""
    health_then: list[Staleness] = field(default_factory=list)
    begun_before: list[str] = field(default_factory=list)
    """Owners with alarms over series that were open when the replay begins."""
    put_off: list[Part] = field(default_factory=list)
    """Of owners that are systems whose health other rules would have made: they wait for it."""

    def __add__(self, other: Found) -> Found:
        mine, others = vars(self), vars(other)
        return Found(**{name: value + others[name] for name, value in mine.items()})

    def sort(self) -> None:
        self.then.sort(key=_order)
        self.now.sort(key=_order)
        self.gaps.sort(key=lambda one: (one.at, one.owner, one.key, one.kind))
        self.differences.sort()


class ShareReplay:
    """`candidate`: the documents to try; None replays with those of the time."""

    def __init__(self, story: Story, candidate: list[Version] | None) -> None:
        self._story = story
        self._is_historical = candidate is None
        self.history = History(story)
        self.rules: Timelines = self.history
        self._put_off: set[str] = set()
        if candidate is not None:
            self.rules = Candidate(candidate, story.start)
            self._put_off = self.rules.of_health()[0].rules.members.systems

    async def run(self, source: Source, share: int, of: int, report: Callable[[float], None]) -> Found:
        found = Found()
        replay: _Owner | None = None
        async for done, part in source.parts(share, of):
            report(done)
            if isinstance(part, OwnerBegins):
                if replay is not None:
                    replay.finish()
                replay = None if part.owner in self._put_off else self._begin(part, found)
            elif replay is not None:
                replay.take(part)
            if replay is None:
                found.put_off.append(part)
        if replay is not None:
            replay.finish()
        return found

    def conclude(self, found: Found) -> Found:
        """What depends on all owners together: the health of systems, and what rules make of it."""
        eras = self.rules.of_health()
        until = self._story.horizon("health", 0)
        if self._is_historical:
            then = [one for one in found.health_then if self._story.since <= one.at <= until]
            derived = derive(eras, found.noted) if any(era.rules.members.systems for era in eras) else []
            now = [one for one in derived if self._story.since <= one.at <= until]
            found.health = len(then)
            found.differences += compare_health(then, now, _begun_before(eras, found.begun_before))
        else:
            self._replay_systems(eras, found, until)
        found.noted, found.health_then, found.begun_before, found.put_off = [], [], [], []
        found.sort()
        return found

    def _replay_systems(self, eras: Sequence[Era], found: Found, until: datetime) -> None:
        parts: dict[str, list[Part]] = {}
        for part in found.put_off:
            if isinstance(part, OwnerBegins):
                of_owner = parts.setdefault(part.owner, [])
            of_owner.append(part)
        for level in levels(eras[0].rules.members):
            changes = [one for one in derive(eras, found.noted) if one.at <= until]
            for name in level:
                begins, *others = parts.get(name, [OwnerBegins(name, 0, (), ())])
                assert isinstance(begins, OwnerBegins)
                arrived = [row for part in others if isinstance(part, Arrivals) for row in part.rows]
                replay = self._begin(begins, found)
                of_system = (one for one in changes if one.system == name)
                replay.take(Arrivals(arrivals(of_system, arrived)))
                for part in others:
                    if not isinstance(part, Arrivals):
                        replay.take(part)
                replay.finish()

    def _begin(self, begins: OwnerBegins, found: Found) -> _Owner:
        return _Owner(begins, self._story, self.rules, self.history, found, self._is_historical)


class _Owner:
    def __init__(
        self,
        begins: OwnerBegins,
        story: Story,
        rules: Timelines,
        history: History,
        found: Found,
        is_historical: bool,
    ) -> None:
        self._begins = begins
        self._story = story
        self._rules = rules
        self._history = history
        self._found = found
        self._is_historical = is_historical
        self._until = {
            "data": story.horizon("data", begins.partition),
            "record": story.horizon("record", 0),
        }
        self.series = SeriesReplay(begins.owner, begins.partition, rules, begins.last)
        self._window = Window(story.start, min(self._until.values()))
        self._events = (
            EventReplay(begins.owner, rules)
            if is_historical
            else HearingReplay(begins.owner, rules, self._window)
        )
        self._is_series_over = False
        self._recorded: list[tuple[Edge, RecordedEvent]] = []
        self._others = [act for alarm in begins.open for act in alarm.acts]
        """Beside edges, what may start or end an action."""
        self.verdicts: list[Staleness] = []
        self._begun: list[OpenAlarm] = []
        for alarm in begins.open:
            self._begin(alarm.rule)

    def take(self, part: Part) -> None:
        if isinstance(part, Arrivals):
            self._found.datapoints += len(part.rows)
            self.series.arrive(part.rows)
        elif isinstance(part, Events):
            self._found.events += len(part.rows)
            for event in part.rows:
                self.see(event)
        elif isinstance(part, Verdicts):
            self.verdicts += part.rows

    def _begin(self, name: str) -> None:
        alarm = next(one for one in self._begins.open if one.rule == name)
        over_series = "key" in alarm.payload
        page = self.series.rules if over_series else self._rules.at(_first_seq(self._story))
        rule = page.rules.get(name)
        if rule is not None and (rule.document.event is None) == over_series:
            self._begun.append(alarm)
            if isinstance(self._events, HearingReplay):
                self._events.begin_acts(alarm)
            (self.series if over_series else self._events).begin_with(alarm, rule)

    def see(self, event: RecordedEvent) -> None:
        edge = event.edge
        if edge is not None:
            self._recorded.append((edge, event))
        elif may_concern(self._history, event) or may_concern(self._rules, event):
            self._others.append(event)
        if event.origin == "scheduled" and self._story.since <= event.ts <= self._story.until:
            self._found.fires[event.schedule, _bin(self._story, event.ts)] += 1
        if event.recorded_at > self._until["record"]:
            return
        self._finish_series()
        if self._is_historical or edge is None:
            self._events.see(event)

    def _finish_series(self) -> None:
        """Before the first event: all datapoints have come. What other rules conclude from them takes the place of what
        was concluded then."""
        if self._is_series_over:
            return
        self._is_series_over = True
        self.series.finish(self._until["data"])
        if isinstance(self._events, HearingReplay):
            self._events.expect(self.series.edges, self.series.resolved_when_due)

    def finish(self) -> None:
        story, found = self._story, self._found
        self._finish_series()
        self._events.finish(self._until["record"])
        recorded = within((edge for edge, _ in self._recorded), story.since, self._until)
        replayed = within([*self.series.edges, *self._events.edges], story.since, self._until)
        decided = self._until["data"]
        staleness = [one for one in self.verdicts if one.kind != "health"]
        then = [one for one in staleness if story.since <= one.at <= decided]
        now = [one for one in self.series.staleness if story.since <= one.at <= decided]
        found.owners += 1
        found.staleness += len(then)
        found.noted += self.series.noted
        found.health_then += (one for one in self.verdicts if one.kind == "health")
        if any("key" in alarm.payload for alarm in self._begins.open):
            found.begun_before.append(self._begins.owner)
        if self._is_historical:
            found.differences += compare_edges(recorded, replayed, self._begins.open)
            found.differences += compare_staleness(then, now)
        self._hear_actions()
        found.then += map(_trimmed, recorded)
        found.now += map(_trimmed, replayed)
        found.gaps += now

    def _has_alarm_of(self, event: RecordedEvent) -> bool:
        if event.alarm_id is None:
            return True
        edges = chain(self.series.edges, self._events.edges)
        held = chain((edge.alarm_id for edge in edges), (alarm.id for alarm in self._begins.open))
        return event.alarm_id in held

    def _hear_actions(self) -> None:
        then = [event for edge, event in self._recorded if edge.at <= self._until[edge.lane]]
        recorded = {event.id: event for event in then}
        edges = [*self.series.edges, *self._events.edges]
        now = _in_place(
            _as_recorded(self._events.event_of(edge), recorded)
            for edge in edges
            if edge.at <= self._until[edge.lane]
        )
        if self._is_historical:
            others = [event for event in self._others if self._has_alarm_of(event)]
        else:
            when_due = self.series.resolved_when_due | self._events.resolved_when_due
            acts = Acts.known(self._window, self._begun, then, now, self._others, when_due)
            others = list(acts.replay(self._others))
        self._found.heard_then += concerning(self._history, [*then, *self._others])
        self._found.heard_now += concerning(self._rules, [*now, *others])


def _begun_before(eras: Sequence[Era], owners: Sequence[str]) -> Callable[[str], bool]:
    begun = frozenset(owners)

    @cache
    def is_of(system: str) -> bool:
        return any(era.rules.members.owners_of(system) & begun for era in eras)

    return is_of


def _as_recorded(event: RecordedEvent, recorded: Mapping[UUID, RecordedEvent]) -> RecordedEvent:
    """Where it was recorded if it was, at the same instant, with what the rules say of it now."""
    was = recorded.get(event.id)
    if was is None or was.ts != event.ts:
        return event
    return was._replace(severity=event.severity, payload=event.payload)


def _in_place(events: Iterable[RecordedEvent]) -> list[RecordedEvent]:
    """What one input concluded stays in its order, although some of it was recorded and some was not."""
    events = list(events)
    seqs: dict[datetime, int] = {}
    for event in events:
        if event.seq > UNRECORDED:
            seqs[event.recorded_at] = min(event.seq, seqs.get(event.recorded_at, event.seq))
    return [event._replace(seq=seqs.get(event.recorded_at, event.seq)) for event in events]


def _trimmed(edge: Edge) -> Edge:
    told: dict[str, Any] = {name: edge.payload[name] for name in _SHOWN if name in edge.payload}
    return edge._replace(payload=told)


def _order(one: Edge) -> tuple[datetime, str, str, str, UUID]:
    return one.at, one.rule, one.owner, one.edge, one.alarm_id


def _first_seq(story: Story) -> int:
    return max((one.seq for one in story.applies if one.recorded_at < story.start), default=0) + 1


def _bin(story: Story, at: datetime) -> int:
    whole = (story.until - story.since).total_seconds() or 1.0
    return min(int((at - story.since).total_seconds() / whole * BINS), BINS - 1)

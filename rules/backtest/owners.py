"""One share of the owners, replayed and compared: what a process of the backtest does.

Guarantee: what is found depends on the recording and the rules alone, not on the shares. Datapoints pass through; kept
are the edges and gaps of an owner while it is compared, and afterwards only what a report shows of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from rules.backtest.differences import Difference, compare_edges, compare_staleness, within
from rules.backtest.facts import (
    Arrivals,
    Edge,
    Events,
    OwnerBegins,
    RecordedEvent,
    Source,
    Staleness,
    Story,
    Verdicts,
    Version,
)
from rules.backtest.replay import EventReplay, SeriesReplay
from rules.backtest.timelines import Candidate, History, Timelines
from rules.engine import edge_event_id

Page = tuple[str, str]
"""The action_rule, or notification, and the event_rule whose alarm it is about."""
_SHOWN = ("key", "reason", "message")
BINS = 600


@dataclass
class Found:
    """Of some owners; `+` of several shares is that of all."""

    then: list[Edge] = field(default_factory=list)
    now: list[Edge] = field(default_factory=list)
    gaps: list[Staleness] = field(default_factory=list)
    """As replayed; those of the record only matter where they differ."""
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

    def __add__(self, other: Found) -> Found:
        mine, others = vars(self), vars(other)
        return Found(**{name: value + others[name] for name, value in mine.items()})

    def in_order(self) -> Found:
        self.then.sort(key=_order)
        self.now.sort(key=_order)
        self.gaps.sort(key=lambda one: (one.at, one.owner, one.key, one.verdict))
        self.differences.sort()
        return self


class ShareReplay:
    """`candidate`: the documents to try; None replays with those of the time."""

    def __init__(self, story: Story, candidate: list[Version] | None) -> None:
        self._story = story
        self._is_historical = candidate is None
        self._history = History(story)
        self._rules: Timelines = self._history if candidate is None else Candidate(candidate)
        self.found = Found()

    async def run(self, source: Source, share: int, of: int, report: Callable[[float], None]) -> Found:
        owner: _Owner | None = None
        async for done, part in source.parts(share, of):
            if isinstance(part, OwnerBegins):
                if owner is not None:
                    owner.finish()
                owner = _Owner(part, self._story, self._rules, self._history, self.found, self._is_historical)
                report(done)
                continue
            assert owner is not None
            if isinstance(part, Arrivals):
                self.found.datapoints += len(part.rows)
                owner.series.arrive(part.rows)
            elif isinstance(part, Events):
                self.found.events += len(part.rows)
                for event in part.rows:
                    owner.see(event)
            elif isinstance(part, Verdicts):
                owner.verdicts += part.rows
        if owner is not None:
            owner.finish()
        return self.found


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
        self._events = EventReplay(begins.owner, rules)
        self._recorded: list[tuple[Edge, RecordedEvent]] = []
        self._ahead: list[RecordedEvent] | None = None
        self.verdicts: list[Staleness] = []
        for alarm in begins.open:
            self._begin(alarm.rule)

    def _begin(self, name: str) -> None:
        alarm = next(one for one in self._begins.open if one.rule == name)
        over_series = "key" in alarm.payload
        page = self.series.rules if over_series else self._rules.at(_first_seq(self._story))
        rule = page.rules.get(name)
        if rule is not None and (rule.document.event is None) == over_series:
            (self.series if over_series else self._events).begin_with(alarm, rule)

    def see(self, event: RecordedEvent) -> None:
        edge = event.edge
        if edge is not None:
            self._recorded.append((edge, event))
        if event.origin == "scheduled" and self._story.since <= event.ts <= self._story.until:
            self._found.fires[event.schedule, _bin(self._story, event.ts)] += 1
        if event.recorded_at > self._until["record"]:
            return
        if self._is_historical:
            self._events.see(event)
        elif edge is None:
            # What the candidate rules conclude takes the place of what was concluded then.
            self._see_edges(event.recorded_at)
            self._events.see(event)

    def _see_edges(self, until: datetime) -> None:
        if self._ahead is None:
            self.series.finish(self._until["data"])
            self._ahead = sorted(map(_event, self.series.edges), key=lambda one: one.ts, reverse=True)
        while self._ahead and self._ahead[-1].ts <= until:
            self._events.see(self._ahead.pop())

    def finish(self) -> None:
        story, found = self._story, self._found
        if self._is_historical:
            self.series.finish(self._until["data"])
        else:
            self._see_edges(self._until["record"])
        self._events.finish(self._until["record"])
        recorded = within((edge for edge, _ in self._recorded), story.since, self._until)
        replayed = within([*self.series.edges, *self._events.edges], story.since, self._until)
        decided = self._until["data"]
        then = [one for one in self.verdicts if story.since <= one.at <= decided]
        now = [one for one in self.series.staleness if story.since <= one.at <= decided]
        found.owners += 1
        found.staleness += len(then)
        if self._is_historical:
            found.differences += compare_edges(recorded, replayed, self._begins.open)
            found.differences += compare_staleness(then, now)
        self._count_pages(replayed)
        found.then += map(_trimmed, recorded)
        found.now += map(_trimmed, replayed)
        found.gaps += now

    def _count_pages(self, replayed: list[Edge]) -> None:
        story, found = self._story, self._found
        seqs = {}
        for edge, event in self._recorded:
            seqs[event.id] = event.seq
            if story.since <= edge.at <= story.until:
                for match in self._history.judge(event.seq).judge(event.facts()):
                    found.pages_then[match.rule, edge.rule] += 1
        for edge in replayed:
            event = _event(edge)
            for match in self._rules.judge(seqs.get(event.id, event.seq)).judge(event.facts()):
                found.pages_now[match.rule, edge.rule] += 1


def _event(edge: Edge) -> RecordedEvent:
    """The event that the edge would have been."""
    return RecordedEvent(
        seq=1,
        id=edge_event_id(edge.alarm_id, edge.edge),
        ts=edge.at,
        recorded_at=edge.at,
        origin="derived",
        type=f"alarm-{edge.edge}",
        schedule="",
        rule=edge.rule,
        action="",
        owner=edge.owner,
        alarm_id=edge.alarm_id,
        severity=edge.severity,
        correlation_id=edge.alarm_id,
        payload=edge.payload,
    )


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

"""What a recording holds, and what a replay concludes: plain data.

`Edge` and `Staleness` are read from the log as well as derived, so that both can be compared.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

from rules.engine import Arrival, Value
from schemas.wire.alarm_events import AlarmRef, RuleTransition, event_type, transition_event
from schemas.wire.event_facts import event_facts
from tocsin.core.records import NewEvent

UNRECORDED = 1
"""The seq of an event that would have been: no event of an alarm is the first of the log."""
Lane = Literal["data", "record"]
Decided = Literal["data", "record", "health"]


class Edge(NamedTuple):
    """An alarm opened or was resolved."""

    rule: str
    owner: str
    edge: RuleTransition
    at: datetime
    alarm_id: UUID
    severity: int
    payload: Mapping[str, Any]

    @property
    def lane(self) -> Lane:
        """Only an alarm over series names one."""
        return "data" if "key" in self.payload else "record"

    def as_event(self, correlation_id: UUID) -> RecordedEvent:
        """The event that it would have been."""
        alarm = AlarmRef(self.alarm_id, self.rule, self.owner, self.severity, correlation_id)
        return RecordedEvent.of(transition_event(alarm, self.edge, self.at, self.payload), UNRECORDED)


class Staleness(NamedTuple):
    """A series went stale, or is fresh again."""

    owner: str
    key: str
    kind: str
    """`stale` or `fresh`; in a recording also `health`, which is about a system, and whose value says all of it."""
    at: datetime
    value: Any


class RecordedEvent(NamedTuple):
    seq: int
    id: UUID
    ts: datetime
    recorded_at: datetime
    origin: str
    type: str
    schedule: str
    rule: str
    action: str
    owner: str
    alarm_id: UUID | None
    severity: int | None
    correlation_id: UUID
    payload: Mapping[str, Any]

    @classmethod
    def of(cls, event: NewEvent, seq: int) -> RecordedEvent:
        """An event that a replay derives, recorded at its own instant."""
        return cls(
            seq=seq,
            id=event.id,
            ts=event.ts,
            recorded_at=event.ts,
            origin=event.origin,
            type=event.type,
            schedule=event.schedule,
            rule=event.rule,
            action=event.action,
            owner=event.owner,
            alarm_id=event.alarm_id,
            severity=event.severity,
            correlation_id=event.correlation_id or event.id,
            payload=event.payload,
        )

    def facts(self) -> dict[str, Any]:
        return event_facts(self._asdict())

    @property
    def edge(self) -> Edge | None:
        """What the engine concluded; None if the event is something else, such as a person's act."""
        if self.origin != "derived" or self.alarm_id is None:
            return None
        if self.type not in (event_type("opened"), event_type("resolved")):
            return None
        kind: RuleTransition = "opened" if self.type == event_type("opened") else "resolved"
        return Edge(self.rule, self.owner, kind, self.ts, self.alarm_id, self.severity or 0, self.payload)


class OpenAlarm(NamedTuple):
    """An alarm that was open when the replay begins: a fact, because what led to it lies before."""

    rule: str
    id: UUID
    severity: int
    since: datetime
    opened_at: datetime
    payload: dict[str, Any]
    source_event_id: UUID | None
    acts: Sequence[RecordedEvent] = ()
    """What people had done to it."""


class LastSeen(NamedTuple):
    """The last datapoint of a series before the replay begins."""

    key: str
    arrived_at: datetime
    value: Value
    ts: datetime
    labels: dict[str, str]


class OwnerBegins(NamedTuple):
    """What follows, until the next one, is of this owner: datapoints, then events, then staleness."""

    owner: str
    partition: int
    open: Sequence[OpenAlarm]
    last: Sequence[LastSeen]


class Arrivals(NamedTuple):
    rows: Sequence[Arrival]


class Events(NamedTuple):
    rows: Sequence[RecordedEvent]


class Verdicts(NamedTuple):
    rows: Sequence[Staleness]


Part = OwnerBegins | Arrivals | Events | Verdicts


class Version(NamedTuple):
    """A document and from when to when it held, as `RuleBook.load` takes it."""

    kind: str
    name: str
    version: int
    document: dict[str, Any]
    from_seq: int
    until_seq: int | None


class Apply(NamedTuple):
    seq: int
    at: datetime
    recorded_at: datetime


class LaneSwitch(NamedTuple):
    """Where a partition stood when the rules changed (`rules/apply/cutover.py`)."""

    lane: str
    partition: int
    rules_seq: int
    seq: int
    watermark: datetime | None


class Horizon(NamedTuple):
    """Up to when everything that is due in a partition, or about systems, has been concluded and recorded."""

    lane: str
    partition: int
    until: datetime | None


class Story(NamedTuple):
    """What is true for all owners of a recording."""

    start: datetime
    """Where the replay begins: early enough for what is compared from `since` on to have been seen beginning."""
    since: datetime
    until: datetime
    is_whole: bool
    """Nothing was recorded before `start`."""
    versions: Sequence[Version]
    applies: Sequence[Apply]
    switches: Sequence[LaneSwitch]
    horizons: Sequence[Horizon]

    def horizon(self, lane: Decided, partition: int) -> datetime:
        for one in self.horizons:
            if (one.lane, one.partition) == (lane, partition):
                return min(self.until, one.until or self.start)
        return self.until


class Source(Protocol):
    """Where a recording is read from. It is given to other processes, so it must be a plain value."""

    async def story(self) -> Story: ...

    def parts(self, share: int, of: int) -> AsyncIterator[tuple[float, Part]]:
        """Those of one share of the owners, owner by owner; with how much of it is done. An owner is in one share."""

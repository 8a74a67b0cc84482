"""Plain data of a recording, and of what a replay derives.

`AlarmTransition` and `CalculatedChange` are read from the record log and derived by the replay, so
that the two can be compared.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

from rules.engine import Alarm, Arrival, Value
from rules.lanes.arrival_gap import ArrivalGap
from schemas.wire.alarm_events import AlarmRef, RuleTransition, event_type, transition_event
from schemas.wire.event_facts import event_facts
from tocsin.core.records import NewEvent

_RULE_TRANSITIONS: tuple[RuleTransition, ...] = ("opened", "changed", "resolved")
_BEGINNING = datetime.min.replace(tzinfo=UTC)
_KINDS = {event_type(kind): kind for kind in _RULE_TRANSITIONS}
UNRECORDED = 1
"""The seq of an event that the replay derived: no event of an alarm is the first of the log."""
LaneName = Literal["data", "record"]
HorizonName = Literal["data", "record", "health", "calc"]


class AlarmTransition(NamedTuple):
    """An alarm opened, changed or resolved, by its rule."""

    rule: str
    owner: str
    kind: RuleTransition
    at: datetime
    alarm_id: UUID
    severity: int
    payload: Mapping[str, Any]

    @property
    def lane(self) -> LaneName:
        """The lane that decided it. Only the payload of an alarm over series has a key."""
        return "data" if "key" in self.payload else "record"

    def as_event(self, correlation_id: UUID) -> RecordedEvent:
        """The event that the live system would have recorded."""
        alarm = AlarmRef(self.alarm_id, self.rule, self.owner, self.severity, correlation_id)
        return RecordedEvent.of(transition_event(alarm, self.kind, self.at, self.payload), UNRECORDED)


class CalculatedChange(NamedTuple):
    """A calculated datapoint: a series became stale or fresh, the health of a system changed, or a
    calc_rule gave a value."""

    owner: str
    key: str
    kind: str
    """`stale`, `fresh`, `health` or `calc`. For `health`, the owner is a system and `value` the payload."""
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
    def transition(self) -> AlarmTransition | None:
        """The transition that the engine derived; None for any other event."""
        if self.origin != "derived" or self.alarm_id is None:
            return None
        kind = _KINDS.get(self.type)
        if kind is None:
            return None
        return AlarmTransition(
            self.rule, self.owner, kind, self.ts, self.alarm_id, self.severity or 0, self.payload
        )


class OperatorResolution(NamedTuple):
    """An alarm that an operator resolved, after a position of the lane of its rule."""

    lane: LaneName
    position: tuple[datetime, float]
    watermark: datetime | None
    event: RecordedEvent

    @classmethod
    def of(cls, event: RecordedEvent) -> OperatorResolution:
        position = event.payload.get("position", {})
        watermark = position.get("watermark")
        read_at = None if watermark is None else datetime.fromisoformat(watermark)
        return cls(
            position.get("lane", "data"),
            (read_at or _BEGINNING, float(position.get("seq", 0))),
            read_at,
            event,
        )


class InitialAlarm(NamedTuple):
    """An alarm that was open at the start of the replay. Its inputs lie before the start."""

    alarm: Alarm
    opened_at: datetime
    operator_events: Sequence[RecordedEvent] = ()
    """Acknowledgements and snoozes from before the start."""

    @property
    def is_over_series(self) -> bool:
        return "key" in self.alarm.payload


class LastDatapoint(NamedTuple):
    """The last datapoint of a series before the start of the replay."""

    key: str
    arrived_at: datetime
    value: Value
    ts: datetime
    labels: dict[str, str]


class OwnerHeader(NamedTuple):
    """Begins an owner. Its arrivals, events and calculated changes follow, in this order."""

    owner: str
    partition: int
    open_alarms: Sequence[InitialAlarm]
    last_datapoints: Sequence[LastDatapoint]
    resolutions: Sequence[RecordedEvent] = ()
    """The events of alarms that operators resolved. Each names its position in the lane of its rule."""


class Arrivals(NamedTuple):
    rows: Sequence[Arrival]


class RecordedEvents(NamedTuple):
    rows: Sequence[RecordedEvent]


class CalculatedChanges(NamedTuple):
    rows: Sequence[CalculatedChange]


RecordingItem = OwnerHeader | Arrivals | RecordedEvents | CalculatedChanges


class DocumentVersion(NamedTuple):
    """A document with the seqs between which it was in force, as `RuleBook.load` takes it."""

    kind: str
    name: str
    version: int
    document: dict[str, Any]
    from_seq: int
    until_seq: int | None


class RecordedApply(NamedTuple):
    seq: int
    at: datetime
    recorded_at: datetime


class LaneCutover(NamedTuple):
    """The position of a partition when the rules changed (`rules/apply/cutover.py`)."""

    lane: str
    partition: int
    rules_seq: int
    seq: int
    watermark: datetime | None


class Horizon(NamedTuple):
    """The instant up to which everything due in a partition, or for systems, has been recorded."""

    lane: str
    partition: int
    until: datetime | None


class RecordingHeader(NamedTuple):
    """The part of a recording that all owners share: the window, the documents and the horizons."""

    start: datetime
    """Start of the replay, before `since`: see `rules.replay.backtest.warm_up`."""
    since: datetime
    until: datetime
    is_whole: bool
    """Nothing was recorded before `start`."""
    versions: Sequence[DocumentVersion]
    applies: Sequence[RecordedApply]
    cutovers: Sequence[LaneCutover]
    horizons: Sequence[Horizon]
    gaps: Mapping[int, Sequence[ArrivalGap]]
    """The arrival gaps of each partition of the data lane, in order, also from before `start`."""

    def horizon(self, lane: HorizonName, partition: int) -> datetime:
        for horizon in self.horizons:
            if (horizon.lane, horizon.partition) == (lane, partition):
                return min(self.until, horizon.until or self.start)
        return self.until


class Recording(Protocol):
    """A recording that can be read. It is sent to other processes, so it must be picklable."""

    async def header(self) -> RecordingHeader: ...

    def items(self, share: int, of: int) -> AsyncIterator[tuple[float, RecordingItem]]:
        """The items of one share of the owners, owner by owner, each with the fraction read so far.

        All items of an owner are in one share.
        """

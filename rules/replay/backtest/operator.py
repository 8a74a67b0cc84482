"""What people did to alarms, in the lives that other rules give them: the acts, and the ends of snoozes. Pure.

Guarantee: an act upon an alarm that is not open at that moment is left out: it would have been refused. A snooze ends
at its instant if the alarm is still open and nobody has snoozed it again, or ended the snooze, before. At one instant a
sustain that is over comes first, then the end of a snooze, then what arrives: the order of
`rules.replay.rule_tests.scheduler`. Recorded ends are not heard: each follows from its snooze. Where an alarm resolves
as it did, its snoozes end as they did, however late anybody was. Any other event about an
alarm that there is not is left out as well.

Alarms are known by their ids. An act says how grave its alarm is under these rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from rules.replay.backtest.recording.model import Edge, OpenAlarm, RecordedEvent
from rules.replay.backtest.relevant_events import in_order
from schemas.wire.alarm_events import (
    OPERATOR_EVENT_TYPES,
    AlarmRef,
    event_type,
    snooze_ended_payload,
    transition_event,
)
from tocsin.core.instant import parse_instant

_SNOOZE_ENDED = event_type("snooze-ended")
_NONE: Mapping[UUID, RecordedEvent] = {}
_EVER = datetime.max.replace(tzinfo=UTC)


def snoozed_until(event: RecordedEvent) -> datetime | None:
    """None of anything but a snooze."""
    if event.type != "alarm-snoozed":
        return None
    try:
        until = parse_instant(event.payload["until"])
    except (KeyError, TypeError, ValueError):
        return None
    return None if until.tzinfo is None else until.astimezone(UTC)


def is_act(event: RecordedEvent) -> bool:
    """Of a person; what an action emits has its name."""
    return event.origin == "caused" and not event.action and event.type in OPERATOR_EVENT_TYPES


def is_end_of_snooze(event: RecordedEvent) -> bool:
    return event.origin == "derived" and event.type == _SNOOZE_ENDED


@dataclass(slots=True)
class _Life:
    opened_at: datetime
    severity: int
    resolved_at: datetime | None = None
    is_resolved_when_due: bool = False

    def is_open(self, at: datetime) -> bool:
        return self.opened_at <= at and (self.resolved_at is None or at < self.resolved_at)

    def outlives(self, until: datetime) -> bool:
        if self.resolved_at is None or until < self.resolved_at:
            return True
        return until == self.resolved_at and not self.is_resolved_when_due


class Window(NamedTuple):
    start: datetime
    decided: datetime
    """Up to when it is known which alarms are open."""


class Acts:
    """Upon the alarms of one owner. `recorded` are the ends that were, by id, and `as_recorded` the alarms that resolve
    as they did."""

    def __init__(
        self,
        window: Window,
        recorded: Mapping[UUID, RecordedEvent] = _NONE,
        as_recorded: Collection[UUID] = (),
    ) -> None:
        self._window = window
        self._recorded = recorded
        self._as_recorded = as_recorded
        self._lives: dict[UUID, _Life] = {}
        self._snoozed: dict[UUID, tuple[datetime, RecordedEvent]] = {}

    @classmethod
    def known(
        cls,
        window: Window,
        begun: Iterable[OpenAlarm],
        then: Iterable[RecordedEvent],
        now: Sequence[RecordedEvent],
        others: Iterable[RecordedEvent],
        when_due: Collection[UUID],
    ) -> Acts:
        """When all edges are: `then` those that were, `now` those that are, each from when people could know of it."""
        was, is_ = _resolutions(then), _resolutions(now)
        begun = list(begun)
        ids = {alarm.id for alarm in begun} | {event.alarm_id for event in now if event.alarm_id is not None}
        ends = {event.id: event for event in others if is_end_of_snooze(event)}
        acts = cls(window, ends, {id for id in ids if was.get(id) == is_.get(id)})
        for alarm in begun:
            acts.begin(alarm)
        for event in now:
            if event.edge is not None:
                acts.live(event.edge, event.recorded_at, event.alarm_id in when_due)
        return acts

    def begin(self, alarm: OpenAlarm) -> None:
        """A snooze from before the window may still last."""
        self._lives[alarm.id] = _Life(alarm.opened_at, alarm.severity)
        for act in alarm.acts:
            self.admit(act)

    def live(self, edge: Edge, at: datetime, is_due: bool) -> None:
        """`is_due`: a sustain was over."""
        if edge.edge == "opened":
            self._lives[edge.alarm_id] = _Life(at, edge.severity)
        elif edge.alarm_id in self._lives:
            life = self._lives[edge.alarm_id]
            life.resolved_at, life.is_resolved_when_due = at, is_due

    def admit(self, event: RecordedEvent) -> RecordedEvent | None:
        """The event as it would have been; None if it would not."""
        if event.alarm_id is None:
            return event
        life = self._lives.get(event.alarm_id)
        if life is None or is_end_of_snooze(event):
            return None
        if not is_act(event):
            return event
        if not life.is_open(event.recorded_at):
            return None
        if event.type != "alarm-acknowledged":
            self._snoozed.pop(event.alarm_id, None)
        until = snoozed_until(event)
        if until is not None:
            self._snoozed[event.alarm_id] = until, event
        return event._replace(severity=life.severity)

    @property
    def next_end(self) -> datetime | None:
        return min((until for until, _ in self._snoozed.values()), default=None)

    def ends(self, until: datetime) -> Iterator[RecordedEvent]:
        """Of snoozes that end at or before an instant, in order."""
        due = sorted((at, id) for id, (at, _) in self._snoozed.items() if at <= until)
        for at, id in due:
            _, act = self._snoozed.pop(id)
            life = self._lives[id]
            if at < self._window.start:
                continue
            end = _end(act, id, at, life.severity)
            was = self._recorded.get(end.id)
            if was is not None:
                end = end._replace(recorded_at=was.recorded_at)
            is_alive = at <= self._window.decided and life.outlives(end.recorded_at)
            if was is not None if id in self._as_recorded else is_alive:
                yield end

    def replay(self, events: Iterable[RecordedEvent]) -> Iterator[RecordedEvent]:
        """What of the events happens, and the ends of snoozes."""
        for event in sorted(events, key=in_order):
            yield from self.ends(event.recorded_at)
            admitted = self.admit(event)
            if admitted is not None:
                yield admitted
        yield from self.ends(_EVER)


def _resolutions(edges: Iterable[RecordedEvent]) -> dict[UUID | None, datetime]:
    return {event.alarm_id: event.ts for event in edges if event.type == "alarm-resolved"}


def _end(act: RecordedEvent, alarm_id: UUID, at: datetime, severity: int) -> RecordedEvent:
    alarm = AlarmRef(alarm_id, act.rule, act.owner, severity, act.correlation_id)
    payload = snooze_ended_payload(str(act.payload.get("who", "")))
    # Seq 0: before the transitions of the same instant.
    return RecordedEvent.of(transition_event(alarm, "snooze-ended", at, payload), seq=0)

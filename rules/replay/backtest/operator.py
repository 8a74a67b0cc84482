"""Replays the acknowledgements and snoozes of operators against the alarms of candidate rules.

Guarantee:

- An operator's event about an alarm that is not open at that moment is dropped. Live it would have
  been rejected.
- Any event about an alarm that the candidate rules do not open is dropped.
- A recorded end of a snooze is never copied. The replay derives the ends from the snoozes
  (`rules.replay.alarms`).
- If an alarm resolves at the recorded instant, or neither then nor in the replay, its snoozes end
  if, and only if, their ends were recorded. A clock that was late then has no effect on the result.

Alarms are identified by their ids. An operator's event gets the severity that the alarm has under
the candidate rules.

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from rules.engine import Alarm
from rules.replay.alarms import AlarmRecord, AlarmStore
from rules.replay.backtest.recording.model import InitialAlarm, RecordedEvent
from rules.replay.backtest.relevant_events import event_order
from schemas.wire.alarm_events import OPERATOR_EVENT_TYPES, event_type

_NO_EVENTS: Mapping[UUID, RecordedEvent] = {}
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


class ReplayWindow(NamedTuple):
    start: datetime
    decided_until: datetime
    """The instant up to which the replay knows which alarms are open."""


class OperatorReplay:
    """Replays operators' events about the alarms of one owner.

    `recorded_ends` are the recorded ends of snoozes by event id. `unchanged_alarms` are the ids of
    the alarms whose resolution in the replay equals the recorded one.
    """

    def __init__(
        self,
        alarms: AlarmStore,
        window: ReplayWindow,
        recorded_ends: Mapping[UUID, RecordedEvent] = _NO_EVENTS,
        unchanged_alarms: Collection[UUID] = (),
    ) -> None:
        self._alarms = alarms
        self._window = window
        self._recorded_ends = recorded_ends
        self._unchanged_alarms = unchanged_alarms

    @property
    def next_snooze_end(self) -> datetime | None:
        return self._alarms.next_snooze_end

    def admit(self, event: RecordedEvent) -> RecordedEvent | None:
        """The event as it happens under the candidate rules; None if it does not happen."""
        if event.alarm_id is None:
            return event
        record = self._alarms.get(event.alarm_id)
        if record is None or _is_snooze_end(event):
            return None
        if is_operator_resolution(event):
            if record.resolved_at is None:
                self._alarms.resolve(record.alarm.id, event.ts)
            return event if record.resolved_at == event.ts else None
        if not is_operator_event(event):
            return event
        if not record.is_open(event.recorded_at):
            return None
        apply_operator_event(self._alarms, record, event)
        return event._replace(severity=record.alarm.severity)

    def end_snoozes(self, until: datetime) -> Iterator[RecordedEvent]:
        """End the snoozes that are due at or before an instant, and yield their events in order.

        A snooze that ended before the window, or whose alarm had resolved, has no event.
        """
        for at, record in self._alarms.due_snoozes(until):
            # Seq 0: before the transitions of the same instant.
            end = RecordedEvent.of(self._alarms.end_snooze(record), seq=0)
            if at < self._window.start:
                continue
            recorded = self._recorded_ends.get(end.id)
            if recorded is not None:
                end = end._replace(recorded_at=recorded.recorded_at)
            if record.alarm.id in self._unchanged_alarms:
                happens = recorded is not None
            else:
                happens = at <= self._window.decided_until and record.outlasts(end.recorded_at)
            if happens:
                yield end

    def replay(self, events: Iterable[RecordedEvent]) -> Iterator[RecordedEvent]:
        """The events that happen, and the ends of snoozes, in order."""
        for event in sorted(events, key=event_order):
            yield from self.end_snoozes(event.recorded_at)
            admitted = self.admit(event)
            if admitted is not None:
                yield admitted
        yield from self.end_snoozes(_END_OF_TIME)


def replay_operator_events(
    events: Collection[RecordedEvent],
    window: ReplayWindow,
    initial_alarms: Collection[InitialAlarm],
    recorded: Iterable[RecordedEvent],
    replayed: Sequence[RecordedEvent],
) -> list[RecordedEvent]:
    """The `events` that happen under the candidate rules, and the ends of snoozes, in order.

    It runs after the rules, when all transitions are known: `recorded` and `replayed` are their
    events. Operators can act on an alarm from the instant at which the event of its opening was
    recorded.
    """
    alarms = AlarmStore()
    ids = {initial.alarm.id for initial in initial_alarms}
    ids |= {event.alarm_id for event in replayed if event.alarm_id is not None}
    recorded_at, replayed_at = _resolved_at(recorded), _resolved_at(replayed)
    unchanged_alarms = {
        alarm_id for alarm_id in ids if recorded_at.get(alarm_id) == replayed_at.get(alarm_id)
    }
    recorded_ends = {event.id: event for event in events if _is_snooze_end(event)}
    replay = OperatorReplay(alarms, window, recorded_ends, unchanged_alarms)
    for initial in initial_alarms:
        alarms.open(initial.alarm, initial.opened_at)
        for event in initial.operator_events:
            replay.admit(event)
    for event in replayed:
        if event.type == event_type("opened"):
            alarms.open(alarm_of(event), event.recorded_at, event.correlation_id)
        elif alarms.get(event.alarm_id) is not None:
            assert event.alarm_id is not None
            if event.type == event_type("resolved"):
                alarms.resolve(event.alarm_id, event.recorded_at)
    return list(replay.replay(events))


def is_operator_event(event: RecordedEvent) -> bool:
    """Whether an operator caused the event. An event of an action has the action's name."""
    return event.origin == "caused" and not event.action and event.type in OPERATOR_EVENT_TYPES


def is_operator_resolution(event: RecordedEvent) -> bool:
    return event.origin == "caused" and not event.action and event.type == event_type("resolved")


def apply_operator_event(alarms: AlarmStore, record: AlarmRecord, event: RecordedEvent) -> None:
    """Acknowledge, snooze or unsnooze an alarm, as an operator did."""
    who = str(event.payload.get("who", ""))
    if event.type == event_type("acknowledged"):
        alarms.acknowledge(record, who, event.recorded_at)
    else:
        record.correlation_id = event.correlation_id
        alarms.snooze(record, _snoozed_until(event), who)


def alarm_of(event: RecordedEvent) -> Alarm:
    """The alarm of an event, as far as the event describes it."""
    assert event.alarm_id is not None
    transition = event.transition
    payload = {} if transition is None else dict(transition.payload)
    since = payload.get("since")
    return Alarm(
        event.alarm_id,
        event.rule,
        event.owner,
        event.severity or 0,
        event.ts if since is None else datetime.fromisoformat(since),
        payload,
        instance=str(payload.get("instance", "")),
    )


def _snoozed_until(event: RecordedEvent) -> datetime | None:
    """The end of a snooze; None if the event does not snooze, or names no valid instant."""
    if event.type != event_type("snoozed"):
        return None
    try:
        until = datetime.fromisoformat(event.payload["until"])
    except (KeyError, TypeError, ValueError):
        return None
    return None if until.tzinfo is None else until.astimezone(UTC)


def _is_snooze_end(event: RecordedEvent) -> bool:
    return event.origin == "derived" and event.type == event_type("snooze-ended")


def _resolved_at(events: Iterable[RecordedEvent]) -> dict[UUID | None, datetime]:
    return {event.alarm_id: event.ts for event in events if event.type == event_type("resolved")}

"""Keeps alarms in memory: opened and resolved by rules, acknowledged and snoozed by operators.

Guarantee: an acknowledgement or a snooze has the same effect as live (`rules.alarms.operator`). The
first acknowledgement is kept. A snooze ends at its instant if the alarm is open at that instant and
was not snoozed again or unsnoozed before it. At one instant it
ends first, then come arrivals, then sustains: the order of `rules.replay.scheduler`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from rules.engine import Alarm
from schemas.fields import ALARM_FIELDS
from schemas.wire.alarm_events import AlarmRef, snooze_ended_payload, transition_event
from tocsin.core.records import NewEvent


@dataclass(slots=True)
class AlarmRecord:
    """An alarm that has opened."""

    alarm: Alarm
    correlation_id: UUID
    opened_at: datetime
    resolved_at: datetime | None = None
    acknowledged_by: str = ""
    acknowledged_at: datetime | None = None
    snoozed_until: datetime | None = None
    snoozed_by: str = ""

    @property
    def ref(self) -> AlarmRef:
        return self.alarm.ref(self.correlation_id)

    @property
    def state(self) -> str:
        return "open" if self.resolved_at is None else "resolved"

    def is_open(self, at: datetime) -> bool:
        return self.opened_at <= at and (self.resolved_at is None or at < self.resolved_at)

    def outlasts(self, snooze_end: datetime) -> bool:
        """Whether the alarm is still open when a snooze ends.

        At one instant the snooze ends first: the clock does not wait for the watermark.
        """
        return self.resolved_at is None or snooze_end <= self.resolved_at


class AlarmStore:
    """The alarms that have opened, of one owner or of all owners."""

    def __init__(self) -> None:
        self._records: dict[UUID, AlarmRecord] = {}
        self._snoozed: dict[UUID, AlarmRecord] = {}

    def __iter__(self) -> Iterator[AlarmRecord]:
        return iter(self._records.values())

    def get(self, alarm_id: UUID | None) -> AlarmRecord | None:
        return None if alarm_id is None else self._records.get(alarm_id)

    def find_open(self, rule: str, owner: str) -> list[AlarmRecord]:
        """The open alarms of a rule and an owner, one per instance, in the order of opening."""
        return [
            record
            for record in self._records.values()
            if (record.alarm.rule, record.alarm.owner, record.state) == (rule, owner, "open")
        ]

    def open(self, alarm: Alarm, at: datetime, correlation_id: UUID | None = None) -> AlarmRecord:
        record = self._records[alarm.id] = AlarmRecord(alarm, correlation_id or alarm.id, at)
        return record

    def change(self, alarm: Alarm) -> AlarmRecord:
        record = self._records[alarm.id]
        record.alarm = alarm
        return record

    def resolve(self, alarm_id: UUID, at: datetime) -> AlarmRecord:
        record = self._records[alarm_id]
        record.resolved_at = at
        return record

    def acknowledge(self, record: AlarmRecord, who: str, at: datetime | None = None) -> bool:
        """Acknowledge an alarm; false if it already was."""
        if record.acknowledged_by:
            return False
        record.acknowledged_by, record.acknowledged_at = who, at
        return True

    def snooze(self, record: AlarmRecord, until: datetime | None, who: str) -> None:
        """Snooze an alarm until an instant. None ends the current snooze."""
        record.snoozed_until, record.snoozed_by = until, who
        if until is None:
            self._snoozed.pop(record.alarm.id, None)
        else:
            self._snoozed[record.alarm.id] = record

    @property
    def next_snooze_end(self) -> datetime | None:
        return min((at for at, _ in self._snooze_ends()), default=None)

    def due_snoozes(self, until: datetime) -> list[tuple[datetime, AlarmRecord]]:
        """The snoozes that end at or before an instant, in order."""
        due = sorted((at, alarm_id) for at, alarm_id in self._snooze_ends() if at <= until)
        return [(at, self._snoozed[alarm_id]) for at, alarm_id in due]

    def end_snooze(self, record: AlarmRecord) -> NewEvent:
        """End the current snooze and return its event.

        The caller drops the event unless the alarm `outlasts` the snooze.
        """
        at = record.snoozed_until
        assert at is not None
        record.snoozed_until = None
        del self._snoozed[record.alarm.id]
        return transition_event(
            record.ref, "snooze-ended", at, snooze_ended_payload(record.snoozed_by, record.alarm.payload)
        )

    def _snooze_ends(self) -> Iterator[tuple[datetime, UUID]]:
        for alarm_id, record in self._snoozed.items():
            if record.snoozed_until is not None:
                yield record.snoozed_until, alarm_id


def alarm_facts(record: AlarmRecord | None, now: datetime) -> dict[str, Any]:
    """The facts about an alarm that templates and conditions read (`rules.actions.store`)."""
    if record is None:
        return {**dict.fromkeys(ALARM_FIELDS, ""), "severity": 0, "payload": {}, "acknowledged": False}
    alarm = record.alarm
    return {
        "id": str(alarm.id),
        "rule": alarm.rule,
        "owner": alarm.owner,
        "instance": alarm.instance,
        "state": record.state,
        "severity": alarm.severity,
        "since": alarm.since,
        "payload": alarm.payload,
        "message": str(alarm.payload.get("message", "")),
        "acknowledged": bool(record.acknowledged_by),
        "acknowledged_by": record.acknowledged_by,
        "snoozed": record.snoozed_until is not None and record.snoozed_until > now,
        "snoozed_until": record.snoozed_until,
        "snoozed_by": record.snoozed_by,
        "resolved_at": record.resolved_at,
    }

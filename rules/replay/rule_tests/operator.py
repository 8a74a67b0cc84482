"""Operators in a rule test: acknowledge, snooze, unsnooze and resolve open alarms.

An owner may have several open alarms of a rule, one per instance. The operator acts on all of them.

Guarantee: the events are those of the live commands (`rules.alarms.operator`), and snoozes end as
`rules.replay.alarms` says.

On failure: `InvalidInput` if no alarm of the rule is open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid5

from rules.replay.alarms import AlarmRecord, AlarmStore
from rules.replay.scheduler import SNOOZE, Scheduler
from schemas.wire.alarm_events import acknowledged_event, check_snooze, snoozed_event
from tocsin.core.errors import InvalidInput
from tocsin.core.records import NewEvent

_VIA = "test"


class SimulatedOperator:
    def __init__(
        self,
        alarms: AlarmStore,
        scheduler: Scheduler,
        now: Callable[[], datetime],
        append: Callable[[NewEvent], None],
        resolve: Callable[[AlarmRecord, datetime, dict[str, Any]], None],
    ) -> None:
        self._alarms = alarms
        self._scheduler = scheduler
        self._now = now
        self._append = append
        self._resolve = resolve
        self._count = 0

    def acknowledge(self, rule: str, owner: str, who: str) -> None:
        for record in self._open_alarms(rule, owner):
            if self._alarms.acknowledge(record, who, self._now()):
                self._append_event(acknowledged_event(record.ref, self._now(), who=who, via=_VIA))

    def snooze(self, rule: str, owner: str, who: str, lasts: timedelta) -> None:
        until = self._now() + lasts
        check_snooze(self._now(), until)
        for record in self._open_alarms(rule, owner):
            self._alarms.snooze(record, until, who)
            self._append_event(snoozed_event(record.ref, self._now(), who=who, via=_VIA, until=until))
            self._scheduler.add(until, SNOOZE, partial(self._end_snooze, record, until))

    def unsnooze(self, rule: str, owner: str, who: str) -> None:
        for record in self._open_alarms(rule, owner):
            self._alarms.snooze(record, None, who)
            self._append_event(snoozed_event(record.ref, self._now(), who=who, via=_VIA, until=None))

    def resolve(self, rule: str, owner: str, who: str) -> None:
        for record in self._open_alarms(rule, owner):
            self._resolve(record, self._now(), {"who": who, "via": _VIA, "note": ""})

    def _end_snooze(self, record: AlarmRecord, until: datetime) -> None:
        if record.snoozed_until != until:
            return
        event = self._alarms.end_snooze(record)
        if record.outlasts(until):
            self._append(event)

    def _open_alarms(self, rule: str, owner: str) -> list[AlarmRecord]:
        records = self._alarms.find_open(rule, owner)
        if not records:
            raise InvalidInput(f"no alarm of {rule!r} is open for {owner!r} at {self._now().isoformat()}")
        return records

    def _append_event(self, event: NewEvent) -> None:
        """Append an event with a reproducible id. Live the ids of operators' events are random."""
        self._count += 1
        assert event.alarm_id is not None
        self._append(replace(event, id=uuid5(event.alarm_id, f"{event.type}/{self._count}")))

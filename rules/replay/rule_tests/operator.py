"""What people do to the alarms of a simulation: acknowledge, snooze, and end a snooze before its time.

Guarantee: the events are those of the live acts (`rules.alarms.operator`), and so is the end of a snooze: at its
nominal time, if the alarm is still open and nobody snoozed it again or ended the snooze. An alarm that resolves at
that very instant because its sustain is over is resolved first.

On failure: `InvalidInput` if no alarm of the rule is open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from uuid import uuid5

from rules.replay.rule_tests.alarms import Alarms, Held
from rules.replay.rule_tests.scheduler import SNOOZE, Agenda
from schemas.wire.alarm_events import (
    acknowledged_event,
    check_snooze,
    snooze_ended_payload,
    snoozed_event,
    transition_event,
)
from tocsin.core.errors import InvalidInput
from tocsin.core.records import NewEvent

_VIA = "test"


class Acts:
    def __init__(
        self, alarms: Alarms, agenda: Agenda, now: Callable[[], datetime], append: Callable[[NewEvent], None]
    ) -> None:
        self._alarms = alarms
        self._agenda = agenda
        self._now = now
        self._append = append
        self._count = 0

    def acknowledge(self, rule: str, owner: str, who: str) -> None:
        held = self._open(rule, owner)
        if not held.acknowledged_by:
            held.acknowledged_by = who
            self._record(acknowledged_event(held.ref, self._now(), who=who, via=_VIA))

    def snooze(self, rule: str, owner: str, who: str, lasts: timedelta) -> None:
        held, until = self._open(rule, owner), self._now() + lasts
        check_snooze(self._now(), until)
        held.snoozed_until = until
        self._record(snoozed_event(held.ref, self._now(), who=who, via=_VIA, until=until))
        self._agenda.add(until, SNOOZE, partial(self._end_snooze, held, until, who))

    def unsnooze(self, rule: str, owner: str, who: str) -> None:
        held = self._open(rule, owner)
        held.snoozed_until = None
        self._record(snoozed_event(held.ref, self._now(), who=who, via=_VIA, until=None))

    def _end_snooze(self, held: Held, until: datetime, who: str) -> None:
        if held.state == "open" and held.snoozed_until == until:
            held.snoozed_until = None
            self._append(transition_event(held.ref, "snooze-ended", until, snooze_ended_payload(who)))

    def _open(self, rule: str, owner: str) -> Held:
        held = self._alarms.open_of(rule, owner)
        if held is None:
            raise InvalidInput(f"no alarm of {rule!r} is open for {owner!r} at {self._now().isoformat()}")
        return held

    def _record(self, event: NewEvent) -> None:
        """Append an operator's event. Its id is random live; here the same test gives the same id."""
        assert event.alarm_id is not None
        self._count += 1
        self._append(replace(event, id=uuid5(event.alarm_id, f"{event.type}/{self._count}")))

"""Transitions of alarms reach the runs of these alarms, in the record lane.

Guarantee: an alarm that resolves or is acknowledged cancels a run of an action when all alarms of that
run have ended. A notification run is woken instead: it sends the current state, and ends by itself. The
end of a snooze or of an inhibition wakes the steps that it held (`suppression_ends` handles silences).
All of it commits with the position of the lane.

Why by alarm: a run knows the alarms of all its events (`tocsin.action_event`), so a group follows each
of its members.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from rules.actions.cancel import CancelRunsOfAlarms, EndedAlarm
from rules.dispatch.notifications import OPENED
from rules.lanes.batch import Writes
from rules.runbook.states import ending_reason, ending_transition
from schemas.values.rule_ref import RuleRef
from schemas.wire.alarm_events import event_type, is_transition
from schemas.wire.event import Event
from tocsin.core.db import Connection, fetch_all
from tocsin.core.records import NewRecords, NewStep

_SNOOZE_ENDS = (event_type("snooze-ended"), event_type("unsnoozed"))
_RESOLVED = event_type("resolved")
_REMIND = "silence-ended"


def remind_of(type: str) -> str:
    """The occasion of the reminder if an event of this type ends a suppression of its alarm."""
    return "snooze-ended" if type in _SNOOZE_ENDS else ""


class Waking(NamedTuple):
    """An event that wakes a run."""

    run_id: UUID
    rule: str
    event: Event
    remind: str = ""
    """`snooze-ended` or `silence-ended`: what is still open is notified, even if it was before."""


class WakeNotifications(Writes):
    """Wakes notification runs, and held steps of other runs."""

    def __init__(self, wakings: Sequence[Waking]) -> None:
        self._wakings = wakings
        self._steps: list[NewStep] = []

    def actions_to_lock(self) -> Iterable[UUID]:
        return {waking.run_id for waking in self._wakings}

    async def write_entities(self, connection: Connection) -> None:
        if not self._wakings:
            return
        columns = {
            "ids": [waking.run_id for waking in self._wakings],
            "rules": [waking.rule for waking in self._wakings],
            "event_ids": [waking.event.id for waking in self._wakings],
            "seqs": [waking.event.seq for waking in self._wakings],
            "alarms": [waking.event.alarmid for waking in self._wakings],
            "reminds": [waking.remind for waking in self._wakings],
        }
        self._steps = [
            NewStep(
                action_id=id,
                name=name,
                owner=owner,
                step=step,
                attempt=attempt,
                state="due",
                correlation_id=correlation_id,
                source_event_id=event_id,
            )
            for id, name, owner, correlation_id, event_id, step, attempt in await fetch_all(
                connection, "rules.dispatch/wake_notifications", columns
            )
        ]

    def records_to_append(self) -> NewRecords:
        return NewRecords(steps=self._steps)


class AlarmTransitions:
    """Takes part in the record lane after the dispatcher."""

    async def plan(self, connection: Connection, events: Sequence[Event]) -> FollowTransitions:
        transitions = [
            event
            for event in events
            if event.alarmid is not None and event.type != OPENED and is_transition(event.facts())
        ]
        ends = _ends(transitions)
        if not transitions:
            return FollowTransitions([], [], [])
        alarms = {event.alarmid for event in transitions}
        keys = [f"alarm:{event.alarmid}" for event in transitions if event.type == _RESOLVED]
        runs = await _find_runs(connection, alarms, keys)
        ended = {end.alarm_id for end in ends}
        wakings: list[Waking] = []
        for run in runs:
            wakings += _wakings(run, [event for event in transitions if event.alarmid == run.alarm_id])
        run_ids = [
            run.id for run in runs if not (run.is_notification or run.is_held) and run.alarm_id in ended
        ]
        if not run_ids and not _are_started(ends, events):
            ends = []
        return FollowTransitions(ends, run_ids, wakings)


class _Run(NamedTuple):
    """An active run of an alarm, or one that an alarm inhibits."""

    alarm_id: UUID
    id: UUID
    rule: str
    is_held: bool
    """An alarm inhibits the alarms of the run."""

    @property
    def is_notification(self) -> bool:
        return RuleRef.parse(self.rule).kind == "notify"


async def _find_runs(
    connection: Connection, alarms: Iterable[UUID | None], keys: Sequence[str]
) -> list[_Run]:
    columns = {"alarms": list(alarms), "keys": list(keys)}
    return [_Run(*row) for row in await fetch_all(connection, "rules.dispatch/find_runs_of_alarms", columns)]


def _wakings(run: _Run, events: Sequence[Event]) -> list[Waking]:
    if run.is_held:
        return [Waking(run.id, run.rule, event, _REMIND) for event in events if event.type == _RESOLVED]
    return [
        Waking(run.id, run.rule, event, remind_of(event.type))
        for event in events
        if run.is_notification or remind_of(event.type)
    ]


def _ends(events: Sequence[Event]) -> list[EndedAlarm]:
    return [
        EndedAlarm(event.alarmid, event.seq, transition, reason)
        for event in events
        if event.alarmid is not None
        and (reason := ending_reason(event.facts())) is not None
        and (transition := ending_transition(event.facts())) is not None
    ]


def _are_started(ends: Sequence[EndedAlarm], events: Sequence[Event]) -> bool:
    """Whether the batch itself may start runs that these alarms end."""
    first: dict[UUID, int] = {}
    for event in events:
        if event.alarmid is not None:
            first.setdefault(event.alarmid, event.seq)
    return any(first[end.alarm_id] < end.seq for end in ends)


class FollowTransitions(Writes):
    """Cancels runs first: a step of a cancelled run is not woken."""

    def __init__(
        self, ends: Sequence[EndedAlarm], run_ids: Sequence[UUID], wakings: Sequence[Waking]
    ) -> None:
        self._cancelling = CancelRunsOfAlarms(ends)
        self._run_ids = run_ids
        self._waking = WakeNotifications(wakings)

    def actions_to_lock(self) -> Iterable[UUID]:
        return {*self._run_ids, *self._waking.actions_to_lock()}

    async def write_entities(self, connection: Connection) -> None:
        await self._cancelling.write_entities(connection)
        await self._waking.write_entities(connection)

    def records_to_append(self) -> NewRecords:
        return NewRecords.joined([self._cancelling.records_to_append(), self._waking.records_to_append()])

"""Feeds the transitions of candidate rules back into rules over events, as the live record lane
does.

Guarantee: the rules evaluate each transition once, at its own instant and in time order. Sustains,
ends of snoozes and transitions that are due up to the instant of an event come before that event.
The transitions that an event causes come after it. `OperatorReplay` decides which events of
operators and which ends of snoozes happen under the candidate rules.

On failure: rules that trigger each other without end at one instant raise `InvalidInput`. Live they
would keep the record lane busy.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from heapq import heappop, heappush

from rules.replay.alarms import AlarmStore
from rules.replay.backtest.operator import OperatorReplay, ReplayWindow, is_operator_resolution
from rules.replay.backtest.recording.model import AlarmTransition, InitialAlarm, RecordedEvent
from rules.replay.backtest.replay import EventReplay
from rules.replay.backtest.timelines import Timelines
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text

_MAX_INPUTS_PER_INSTANT = 1_000


class CascadingReplay(EventReplay):
    """The record lane of an owner, with the transitions of both lanes as further events."""

    def __init__(self, owner: str, timelines: Timelines, alarms: AlarmStore, window: ReplayWindow) -> None:
        super().__init__(owner, timelines, alarms)
        self._queue: list[tuple[datetime, int, AlarmTransition]] = []
        self._next_number = 0
        self._queued_count = 0
        self._last_instant: datetime | None = None
        self._inputs_at_instant = 0
        self._operator = OperatorReplay(alarms, window)

    def queue(self, transitions: Iterable[AlarmTransition]) -> None:
        """Queue transitions, to be evaluated at their instants."""
        for transition in transitions:
            heappush(self._queue, (transition.at, self._next_number, transition))
            self._next_number += 1

    def replay_operators(self, alarm: InitialAlarm) -> None:
        """Repeat what operators did to an alarm of the data or record lane before the start."""
        for event in alarm.operator_events:
            self._operator.admit(event)

    def evaluate(self, event: RecordedEvent) -> None:
        self._run_until(event.recorded_at)
        if event.alarm_id is not None and is_operator_resolution(event):
            self.memory.resolve(event.alarm_id, event.recorded_at, event.ts, dict(event.payload))
        admitted = self._operator.admit(event)
        if admitted is not None:
            self._evaluate_now(admitted)

    def finish(self, until: datetime) -> None:
        self._run_until(until, is_end=True)
        super().finish(until)

    def _run_until(self, until: datetime, *, is_end: bool = False) -> None:
        """Process everything that is due before an event at an instant.

        At one instant snoozes end first, then come events, then sustains.
        """
        while True:
            sustain_at, snooze_at = self.memory.next_due, self._operator.next_snooze_end
            transition_at = self._queue[0][0] if self._queue else None
            due = (at for at in (sustain_at, snooze_at, transition_at) if at is not None)
            at = min(due, default=None)
            if at is None or at > until:
                return
            self._reject_loops(at)
            if at == snooze_at:
                for end in list(self._operator.end_snoozes(at)):
                    self._evaluate_now(end)
            elif at == transition_at:
                self._evaluate_now(self.event_of(heappop(self._queue)[2]))
            elif is_end or at < until:
                self.memory.advance_all(at)
                self._queue_new_transitions()
            else:
                return

    def _evaluate_now(self, event: RecordedEvent) -> None:
        super().evaluate(event)
        self._queue_new_transitions()

    def _queue_new_transitions(self) -> None:
        """Queue the transitions of this lane that are not queued yet."""
        self.queue(self.transitions[self._queued_count :])
        self._queued_count = len(self.transitions)

    def _reject_loops(self, at: datetime) -> None:
        if at != self._last_instant:
            self._last_instant, self._inputs_at_instant = at, 0
        self._inputs_at_instant += 1
        if self._inputs_at_instant > _MAX_INPUTS_PER_INSTANT:
            recent = self.transitions[-_MAX_INPUTS_PER_INSTANT:]
            names = ", ".join(sorted({transition.rule for transition in recent}))
            raise InvalidInput(
                f"event_rules {names} trigger each other in a loop for {self.owner!r} at {instant_text(at)}",
                remedy="add 'for' to one of them",
            )

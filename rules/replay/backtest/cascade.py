"""Feeds the transitions of candidate rules back into rules over events, as the live record lane does.

Guarantee: a transition is seen once, at its own instant and in the order of time. The transitions that
follow from an event are seen after it. A sustain that ends before an event is ended before it.
Operators' events are seen if their alarm is open at their instant, and so are the ends of snoozes.

On failure: rules that trigger each other without end at one instant raise `InvalidInput`. Live they
would keep the record lane busy.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from heapq import heappop, heappush

from rules.replay.alarms import AlarmStore
from rules.replay.backtest.operator import OperatorReplay, ReplayWindow
from rules.replay.backtest.recording.model import AlarmTransition, InitialAlarm, RecordedEvent
from rules.replay.backtest.replay import EventReplay
from rules.replay.backtest.timelines import Timelines
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text

_MOST_PER_INSTANT = 1_000


class CascadingReplay(EventReplay):
    def __init__(self, owner: str, timelines: Timelines, alarms: AlarmStore, window: ReplayWindow) -> None:
        super().__init__(owner, timelines, alarms)
        self._queue: list[tuple[datetime, int, AlarmTransition]] = []
        self._number = 0
        self._queued_own = 0
        self._at_instant: tuple[datetime | None, int] = (None, 0)
        self._operator = OperatorReplay(alarms, window)

    def queue(self, transitions: Iterable[AlarmTransition]) -> None:
        """Queue transitions, to be seen at their instants."""
        for transition in transitions:
            heappush(self._queue, (transition.at, self._number, transition))
            self._number += 1

    def replay_operators(self, alarm: InitialAlarm) -> None:
        """Repeat what operators did to an alarm of either lane before the start."""
        for event in alarm.operator_events:
            self._operator.admit(event)

    def see(self, event: RecordedEvent) -> None:
        self._run_until(event.recorded_at)
        admitted = self._operator.admit(event)
        if admitted is not None:
            self._see(admitted)

    def finish(self, until: datetime) -> None:
        self._run_until(until)
        super().finish(until)

    def _run_until(self, until: datetime) -> None:
        while True:
            sustain_at, snooze_at = self.memory.next_due, self._operator.next_snooze_end
            transition_at = self._queue[0][0] if self._queue else None
            due = (at for at in (sustain_at, snooze_at, transition_at) if at is not None)
            at = min(due, default=None)
            if at is None or at > until:
                return
            self._reject_loops(at)
            if at == sustain_at:
                self.memory.advance_all(at)
                self._queue_own()
            elif at == snooze_at:
                for end in list(self._operator.end_snoozes(at)):
                    self._see(end)
            else:
                self._see(self.event_of(heappop(self._queue)[2]))

    def _see(self, event: RecordedEvent) -> None:
        super().see(event)
        self._queue_own()

    def _queue_own(self) -> None:
        self.queue(self.transitions[self._queued_own :])
        self._queued_own = len(self.transitions)

    def _reject_loops(self, at: datetime) -> None:
        last, count = self._at_instant
        self._at_instant = (at, count + 1 if at == last else 1)
        if count >= _MOST_PER_INSTANT:
            recent = self.transitions[-_MOST_PER_INSTANT:]
            names = ", ".join(sorted({transition.rule for transition in recent}))
            raise InvalidInput(
                f"event_rules {names} trigger each other in a loop for {self.owner!r} at {instant_text(at)}",
                remedy="add 'for' to one of them",
            )

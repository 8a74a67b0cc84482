"""Rules over events that hear what is concluded, as they do live: the edges of alarms over series, and each other's.

Guarantee: an edge is heard once, at its own instant and in the order of time; what an event concludes is heard behind
it. A sustain that is due before something is heard is realised before. People's acts are heard if the alarm is open
at their instant, and so is the end of a snooze.

On failure: rules that conclude each other at one instant without end are refused; live they would keep the house busy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from heapq import heappop, heappush
from uuid import UUID

from rules.replay.backtest.operator import Acts, Window
from rules.replay.backtest.recording.model import Edge, OpenAlarm, RecordedEvent
from rules.replay.backtest.replay import EventReplay
from rules.replay.backtest.timelines import Timelines
from tocsin.core.errors import InvalidInput
from tocsin.core.instant import instant_text

_MOST_AT_ONCE = 1_000


class HearingReplay(EventReplay):
    def __init__(self, owner: str, timelines: Timelines, window: Window) -> None:
        super().__init__(owner, timelines)
        self._ahead: list[tuple[datetime, int, Edge]] = []
        self._number = 0
        self._expected = 0
        self._at_once: tuple[datetime | None, int] = (None, 0)
        self._acts = Acts(window)

    def expect(self, edges: Iterable[Edge], when_due: Collection[UUID]) -> None:
        """They will be heard, each when its time has come; `when_due` are the alarms that a sustain resolves."""
        for edge in edges:
            self._acts.live(edge, edge.at, edge.alarm_id in when_due)
            heappush(self._ahead, (edge.at, self._number, edge))
            self._number += 1

    def begin_acts(self, alarm: OpenAlarm) -> None:
        """Of any lane: people may act upon it."""
        self._acts.begin(alarm)

    def see(self, event: RecordedEvent) -> None:
        self._live_until(event.recorded_at)
        admitted = self._acts.admit(event)
        if admitted is not None:
            self._judge(admitted)

    def finish(self, until: datetime) -> None:
        self._live_until(until)
        super().finish(until)

    def _live_until(self, until: datetime) -> None:
        while True:
            due, end_at = self.next_due, self._acts.next_end
            edge_at = self._ahead[0][0] if self._ahead else None
            at = min((one for one in (due, end_at, edge_at) if one is not None), default=None)
            if at is None or at > until:
                return
            self._refuse_circles(at)
            if at == due:
                self.realise(at)
                self._expect_own()
            elif at == end_at:
                for end in list(self._acts.ends(at)):
                    self._judge(end)
            else:
                self._judge(self.event_of(heappop(self._ahead)[2]))

    def _judge(self, event: RecordedEvent) -> None:
        super().see(event)
        self._expect_own()

    def _expect_own(self) -> None:
        self.expect(self.edges[self._expected :], self.resolved_when_due)
        self._expected = len(self.edges)

    def _refuse_circles(self, at: datetime) -> None:
        last, count = self._at_once
        self._at_once = (at, count + 1 if at == last else 1)
        if count >= _MOST_AT_ONCE:
            names = ", ".join(sorted({edge.rule for edge in self.edges[-_MOST_AT_ONCE:]}))
            raise InvalidInput(
                f"the event_rules {names} conclude each other without end for {self.owner!r} at "
                f"{instant_text(at)}",
                remedy="give one of them 'for'",
            )

"""What actions would have sent: the events that concern them, through the dispatch that rule tests use.

Guarantee: limits, groups, overlaps, waits and the end of an escalation are those of the live code
(`rules.replay.rule_tests.runs`); the world answers that all is well, and nothing is sent. A page is a message that a
step sends: to a channel, a webhook, Slack, by email or through Apprise.

Limits and overlaps reach across owners, so this is done once all owners have been replayed, in the order of time. What
an action emits or records is not heard again: what was emitted then is in the recording.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from rules.engine import Alarm
from rules.replay.backtest.operator import is_act, snoozed_until
from rules.replay.backtest.recording.model import RecordedEvent
from rules.replay.backtest.relevant_events import Page, in_order, matches
from rules.replay.backtest.timelines import Timelines
from rules.replay.rule_tests.alarms import Held, alarm_facts, open_alarms
from rules.replay.rule_tests.log import Happening
from rules.replay.rule_tests.perform import DELIVERIES
from rules.replay.rule_tests.runs import Runs, Surroundings
from rules.replay.rule_tests.scheduler import EVENT, Agenda
from tocsin.core.instant import MICROSECOND, parse_instant


def count_pages(
    timelines: Timelines, events: Sequence[RecordedEvent], since: datetime, until: datetime
) -> Counter[Page]:
    """Those about alarms in the window; `events` are those that concern actions, of all owners."""
    paging = _Paging(timelines, since)
    for event in sorted(events, key=in_order):
        paging.expect(event)
    paging.run_until(until)
    return paging.pages


class _Paging:
    def __init__(self, timelines: Timelines, since: datetime) -> None:
        self.pages: Counter[Page] = Counter()
        self._timelines = timelines
        self._since = self._now = since
        self._seq = 0
        self._held: dict[UUID, Held] = {}
        self._agenda = Agenda()
        self._runs = Runs(
            Surroundings(
                agenda=self._agenda,
                now=lambda: self._now,
                append=lambda event, lineage: None,
                note=self._note,
                alarm=lambda id: alarm_facts(None if id is None else self._held.get(id), self._now),
                looks=self._looks,
                newest=lambda: self._seq,
                record=lambda recorded: None,
            )
        )

    def expect(self, event: RecordedEvent) -> None:
        """What is due at the same instant was due before."""
        self.run_until(event.recorded_at - MICROSECOND)
        self._agenda.add(event.recorded_at, EVENT, partial(self._hear, event))

    def _hear(self, event: RecordedEvent) -> None:
        self._seq += 1
        self._keep_alarm(event)
        facts = {**event.facts(), "seq": self._seq, "alarm_id": event.alarm_id}
        for match in matches(self._timelines, event):
            self._runs.start(match, facts, event.alarm_id, ())
        self._runs.see(facts)

    def run_until(self, until: datetime) -> None:
        while (due := self._agenda.next(until)) is not None:
            self._now, what = due
            what()

    def _keep_alarm(self, event: RecordedEvent) -> None:
        if event.alarm_id is None:
            return
        if event.type == "alarm-opened" or event.alarm_id not in self._held:
            self._held[event.alarm_id] = _first_seen(event, event.alarm_id)
        held = self._held[event.alarm_id]
        if event.type == "alarm-resolved":
            held.state = "resolved"
        elif not is_act(event):
            return
        elif event.type == "alarm-acknowledged":
            held.acknowledged_by = str(event.payload.get("who", ""))
        else:
            held.snoozed_until = snoozed_until(event)

    def _looks(self, after: int, upto: int) -> Mapping[str, Any]:
        return {"open_alarms": open_alarms(self._held.values(), self._now), "events": [], "stale_series": []}

    def _note(self, happening: Happening) -> None:
        if happening.kind != "step" or happening.state != "completed" or happening.at < self._since:
            return
        kind, about = happening.facts["step_kind"], happening.event["rule"]
        is_sent = kind in DELIVERIES or (kind == "digest" and happening.facts.get("channel"))
        if is_sent and about:
            self.pages[happening.rule, about] += 1


def _first_seen(event: RecordedEvent, alarm_id: UUID) -> Held:
    edge = event.edge
    payload = {} if edge is None else dict(edge.payload)
    since = payload.get("since")
    alarm = Alarm(
        alarm_id,
        event.rule,
        event.owner,
        event.severity or 0,
        event.ts if since is None else parse_instant(since),
        payload,
    )
    return Held(alarm, "open", event.correlation_id)

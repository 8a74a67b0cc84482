"""Recordings of a simulated instance, and their replay with candidate rules."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from rules.documents.load import LoadedDocuments
from rules.engine import Arrival
from rules.replay.backtest.parallel import backtest
from rules.replay.backtest.recording.model import (
    Arrivals,
    DocumentVersion,
    Horizon,
    OwnerHeader,
    RecordedEvent,
    RecordedEvents,
    RecordingHeader,
    RecordingItem,
)
from rules.replay.backtest.result import BacktestResult
from rules.replay.perform import DELIVERIES
from rules.replay.rule_tests import World

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
ALARMS = """
datapoint_type: {name: load, key: dsp.*, interval: 4100ms}
---
event_rule: {name: hot, datapoint: dsp.*, fire: value > 65.0, clear: value < 60.0, for: 3030ms, notify: [ops]}
---
event_rule: {name: quiet, datapoint: dsp.*, absent: true}
---
event_rule: {name: tripped, event: trip, fire: payload.on == true, for: 2110ms}
---
event_rule: {name: tripping, event: trip, per: [payload.on], fire: payload.on == true, count: 2, over: 9090ms}
---
event_rule: {name: graded, datapoint: dsp.*, above: {warning: 55, critical: 70}, notify: [ops], per: owner}
---
event_rule: {name: mean, datapoint: dsp.*, above: 64, window: {over: 12120ms, reduce: avg, min_count: 2}}
---
event_rule: {name: second, event: alarm-*, fire: 'rule == "hot" && type == "alarm-opened"'}
---
event_rule: {name: third, event: alarm-*, fire: 'rule == "tripped" && type == "alarm-opened"', for: 5250ms}
---
event_rule:
  name: fourth
  event: alarm-*
  fire: rule in ["second", "third"] && type == "alarm-opened"
  notify: [ops]
---
event_rule: {name: both, alarms: {all_of: [hot, {rule: graded, at_least: 1}]}, for: 1310ms, notify: [ops]}
---
event_rule: {name: some, alarms: {at_least: 2, of: [mean, tripped, quiet], none_of: [both]}, keep_firing_for: 2170ms}
---
event_rule: {name: either, alarms: {any_of: [both, some, "stale:gone"]}}
---
datapoint_type: {name: gone, key: gone.away, interval: 5s, on_stale: alarm}
---
channel: {name: ops, webhook: {url: "https://hooks.example.com/1"}}
"""
ACTIONS = """
---
action: {name: tell, channel: {name: ops, text: "{{ type }} {{ owner }} {{ alarm.message }}"}}
---
action: {name: note, log: {message: noted}}
---
action:
  name: escalate
  steps:
    - channel: {name: ops, text: first}
    - wait: {for: 7070ms}
    - channel: {name: ops, text: second}
---
action:
  name: ask
  steps:
    - channel: {name: ops, text: are you there}
    - wait: {until_event: 'type == "trip"', timeout: 20210ms, on_timeout: continue}
    - channel: {name: ops, text: at last}
---
action_rule: {name: noting, on: alarm, transitions: [opened, resolved], action: note}
---
action_rule:
  name: limited
  on: alarm
  transitions: [opened, resolved]
  action: tell
  rate_limit: {count: 2, per: 15150ms}
---
action_rule: {name: gathered, on: alarm, action: tell, group_by: [rule], group_wait: 4020ms}
---
action_rule: {name: escalating, on: alarm, when: 'rule == "hot"', action: escalate, overlap: skip}
---
action_rule: {name: replacing, on: alarm, when: 'rule != "hot"', action: escalate, overlap: replace}
---
action_rule: {name: queueing, on: alarm, when: 'rule == "quiet"', action: escalate, overlap: queue}
---
action_rule: {name: asking, on: event, when: 'type == "trip"', action: ask, rate_limit: {count: 1, per: 30310ms}}
---
action_rule: {name: answered, on: alarm, transitions: [acknowledged], action: tell}
---
action:
  name: ask-again
  steps:
    - branch: {when: "!alarm.snoozed", then: [channel: {name: ops, text: at once}]}
    - wait: {for: 6060ms}
    - branch: {when: alarm.snoozed && !alarm.acknowledged, else: [channel: {name: ops, text: later}]}
---
action_rule: {name: hushed, on: alarm, transitions: [snoozed], when: severity > info, action: tell}
---
action_rule: {name: woken, on: alarm, transitions: [snooze-ended, acknowledged], action: ask-again}
---
event_rule: {name: loud, event: alarm-snooze-ended, fire: 'rule != "loud"', notify: [ops]}
---
event_rule: {name: patient, event: alarm-*snoozed, fire: type == "alarm-snoozed", for: 3140ms}
"""


@dataclass
class SimulatedRecording:
    """A simulated instance, as a source of what would have been recorded of it."""

    world: World
    versions: list[DocumentVersion]
    arrivals: dict[str, list[Arrival]] = field(default_factory=dict)
    until: datetime = START
    horizons: list[Horizon] = field(default_factory=list)
    edit: Callable[[RecordedEvent], RecordedEvent | None] = lambda event: event

    async def header(self) -> RecordingHeader:
        return RecordingHeader(START, START, self.until, True, self.versions, [], [], self.horizons, {})

    async def items(self, share: int, of: int) -> AsyncIterator[tuple[float, RecordingItem]]:
        events: dict[str, list[RecordedEvent]] = {}
        for entry in self.world.log:
            event = self.edit(recorded_event(entry.details)) if entry.kind == "event" else None
            if event is not None:
                events.setdefault(entry.owner, []).append(event)
        for owner in sorted({*self.arrivals, *events}):
            yield 0.0, OwnerHeader(owner, 0, (), ())
            yield 0.0, Arrivals(self.arrivals.get(owner, []))
            yield 0.0, RecordedEvents(events.get(owner, []))

    def alarms(self) -> set[tuple[str, str, str, datetime]]:
        return {
            (entry.name, entry.owner, entry.state, entry.at)
            for entry in self.world.log
            if entry.kind == "alarm"
        }

    def notifications(self) -> Counter[tuple[str, str]]:
        return Counter(
            (entry.rule, entry.event["rule"])
            for entry in self.world.log
            if entry.kind == "step"
            and entry.state == "completed"
            and entry.details["step_kind"] in (*DELIVERIES, "notify")
            and entry.event["rule"]
        )


def recorded_event(facts: Any) -> RecordedEvent:
    fields = {name: facts[name] for name in RecordedEvent._fields}
    ids = {"id": UUID(facts["id"]), "correlation_id": UUID(facts["correlation_id"])}
    return RecordedEvent(**{**fields, **ids})


STEPS = st.lists(
    st.tuples(
        st.integers(1, 9),
        st.sampled_from(["plant-1", "plant-2"]),
        st.sampled_from(
            [
                50.0,
                62.0,
                66.0,
                80.0,
                66.0,
                80.0,
                "trip",
                "untrip",
                "acknowledge",
                "snooze",
                "doze",
                "unsnooze",
            ]
        ),
    ),
    min_size=1,
    max_size=25,
)


def versions(loaded: LoadedDocuments) -> list[DocumentVersion]:
    return [DocumentVersion(one.kind, one.name, 0, one.data, -1, None) for one in loaded.documents]


def simulate(loaded: LoadedDocuments, steps: Sequence[tuple[int, str, float | str]]) -> SimulatedRecording:
    recording = SimulatedRecording(World((one.model for one in loaded.documents), START), versions(loaded))
    world, now = recording.world, START
    for gap, owner, what in steps:
        now += timedelta(seconds=gap)
        at = now + (timedelta(milliseconds=257) if owner == "plant-2" else timedelta(0))
        if isinstance(what, float):
            world.run_until(at)
            world.arrive(owner, "dsp.a", what)
            arrival = Arrival(at, 1, owner, "dsp.a", what, at, {})
            recording.arrivals.setdefault(owner, []).append(arrival)
            continue
        world.run_until(at + timedelta(milliseconds=500))
        if what in ("trip", "untrip"):
            world.emit("trip", owner, {"on": what == "trip"})
            continue
        for number, rule in enumerate(OPERATED_RULES):
            if world.alarms.find_open(rule, owner):
                operate(world, what, rule, owner, timedelta(milliseconds=number))
    recording.until = now + timedelta(seconds=100)
    world.run_until(recording.until)
    return recording


OPERATED_RULES = ("hot", "quiet", "tripped", "third")
LASTS = {"snooze": timedelta(milliseconds=17_370), "doze": timedelta(milliseconds=4_730)}


def operate(world: World, what: str, rule: str, owner: str, apart: timedelta) -> None:
    if what == "acknowledge":
        world.acknowledge(rule, owner)
    elif what == "unsnooze":
        world.unsnooze(rule, owner)
    else:
        world.snooze(rule, LASTS[what] + apart, owner)


def replay(loaded: LoadedDocuments | None, simulated: SimulatedRecording) -> BacktestResult:
    """Replay with candidate rules; with the rules of the time if None."""

    async def replayed() -> BacktestResult:
        candidate = None if loaded is None else versions(loaded)
        return await backtest(simulated, await simulated.header(), candidate)

    return asyncio.run(replayed())


def sent(result: BacktestResult, action_rule: str, rule: str = "hot") -> int:
    """The notifications of the replay that an action_rule sends about alarms of a rule."""
    return result.replayed_notifications[action_rule, rule]

"""Other rules over a recording conclude and send what they would have in a world of their own.

No two things happen at one instant here: whether an alarm that opens and ends at once is paged is the luck of a batch.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.documents.load import Loaded, load_text
from rules.engine import Arrival
from rules.replay.backtest.owner_replay import Found
from rules.replay.backtest.parallel import backtest
from rules.replay.backtest.recording.model import (
    Arrivals,
    Events,
    Horizon,
    OwnerBegins,
    Part,
    RecordedEvent,
    Story,
    Version,
)
from rules.replay.rule_tests import World
from rules.replay.rule_tests.perform import DELIVERIES
from tocsin.core.errors import InvalidInput

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
    - wait: {until_event: 'type == "trip"', timeout: 20s, on_timeout: continue}
    - channel: {name: ops, text: at last}
---
action_rule: {name: noting, on: alarm, transitions: [opened, resolved], action: note}
---
action_rule: {name: limited, on: alarm, transitions: [opened, resolved], action: tell, rate_limit: {count: 2, per: 15s}}
---
action_rule: {name: gathered, on: alarm, action: tell, group_by: [rule], group_wait: 4020ms}
---
action_rule: {name: escalating, on: alarm, when: 'rule == "hot"', action: escalate, overlap: skip}
---
action_rule: {name: replacing, on: alarm, when: 'rule != "hot"', action: escalate, overlap: replace}
---
action_rule: {name: queueing, on: alarm, when: 'rule == "quiet"', action: escalate, overlap: queue}
---
action_rule: {name: asking, on: event, when: 'type == "trip"', action: ask, rate_limit: {count: 1, per: 30s}}
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
class Lived:
    """A world, and what would have been recorded of it."""

    world: World
    versions: list[Version]
    arrivals: dict[str, list[Arrival]] = field(default_factory=dict)
    until: datetime = START
    horizons: list[Horizon] = field(default_factory=list)
    edit: Callable[[RecordedEvent], RecordedEvent | None] = lambda event: event

    async def story(self) -> Story:
        return Story(START, START, self.until, True, self.versions, [], [], self.horizons)

    async def parts(self, share: int, of: int) -> AsyncIterator[tuple[float, Part]]:
        events: dict[str, list[RecordedEvent]] = {}
        for one in self.world.happenings:
            event = self.edit(recorded_event(one.facts)) if one.kind == "event" else None
            if event is not None:
                events.setdefault(one.owner, []).append(event)
        for owner in sorted({*self.arrivals, *events}):
            yield 0.0, OwnerBegins(owner, 0, (), ())
            yield 0.0, Arrivals(self.arrivals.get(owner, []))
            yield 0.0, Events(events.get(owner, []))

    def alarms(self) -> set[tuple[str, str, str, datetime]]:
        return {
            (one.name, one.owner, one.state, one.at) for one in self.world.happenings if one.kind == "alarm"
        }

    def pages(self) -> Counter[tuple[str, str]]:
        return Counter(
            (one.rule, one.event["rule"])
            for one in self.world.happenings
            if one.kind == "step" and one.facts["step_kind"] in DELIVERIES and one.event["rule"]
        )


def recorded_event(facts: Any) -> RecordedEvent:
    given = {name: facts[name] for name in RecordedEvent._fields}
    ids = {"id": UUID(facts["id"]), "correlation_id": UUID(facts["correlation_id"])}
    return RecordedEvent(**{**given, **ids})


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


@cache
def all_rules() -> Loaded:
    return load_text(ALARMS + ACTIONS, anchor=START)


def versions(loaded: Loaded) -> list[Version]:
    return [Version(one.kind, one.name, 0, one.data, -1, None) for one in loaded.documents]


def live(loaded: Loaded, steps: Sequence[tuple[int, str, float | str]]) -> Lived:
    found = Lived(World((one.model for one in loaded.documents), START), versions(loaded))
    world, now = found.world, START
    for gap, owner, what in steps:
        now += timedelta(seconds=gap)
        at = now + (timedelta(milliseconds=257) if owner == "plant-2" else timedelta(0))
        if isinstance(what, float):
            world.run_until(at)
            world.arrive(owner, "dsp.a", what)
            arrival = Arrival(at, 1, owner, "dsp.a", what, at, {})
            found.arrivals.setdefault(owner, []).append(arrival)
            continue
        world.run_until(at + timedelta(milliseconds=500))
        if what in ("trip", "untrip"):
            world.emit("trip", owner, {"on": what == "trip"})
            continue
        for number, rule in enumerate(ACTED_UPON):
            if world._alarms.open_of(rule, owner) is not None:
                act(world, what, rule, owner, timedelta(milliseconds=number))
    found.until = now + timedelta(seconds=100)
    world.run_until(found.until)
    return found


ACTED_UPON = ("hot", "quiet", "tripped", "third")
LASTS = {"snooze": timedelta(milliseconds=17_370), "doze": timedelta(milliseconds=4_730)}


def act(world: World, what: str, rule: str, owner: str, apart: timedelta) -> None:
    if what == "acknowledge":
        world.acknowledge(rule, owner)
    elif what == "unsnooze":
        world.unsnooze(rule, owner)
    else:
        world.snooze(rule, LASTS[what] + apart, owner)


def replay(loaded: Loaded | None, lived: Lived) -> Found:
    """None: with the rules of the time."""

    async def replayed() -> Found:
        candidate = None if loaded is None else versions(loaded)
        return await backtest(lived, await lived.story(), candidate)

    return asyncio.run(replayed())


@settings(max_examples=40)
@given(STEPS)
def test_a_replay_with_other_rules_is_what_a_world_with_them_does(
    steps: list[tuple[int, str, float | str]],
) -> None:
    loaded = all_rules()
    lived = live(loaded, steps)
    for found in (replay(loaded, lived), replay(None, lived)):
        assert {(one.rule, one.owner, one.edge, one.at) for one in found.now} == lived.alarms()
        assert {(one.rule, one.owner, one.edge, one.at) for one in found.then} == lived.alarms()
        assert found.pages_now == lived.pages()
        assert found.pages_then == lived.pages()
        assert {one.what for one in found.differences} <= {"dsp.a"}, "only staleness was not recorded"


HOT = [(gap, "plant-1", 80.0) for gap in (1, 2, 2)]
COOL = [(9, "plant-1", 50.0)]


@pytest.mark.parametrize(
    ("rule", "sent"),
    [
        ("", 3),
        ("rate_limit: {count: 2, per: 1h}", 2),
        ("group_by: [rule], group_wait: 30s", 1),
        ("overlap: skip", 3),
        ("enabled: false", 0),
    ],
)
def test_pages_are_what_the_policies_of_an_action_rule_let_through(rule: str, sent: int) -> None:
    """Three alarms; the first two end after ten seconds, and with them what still gathers for them."""
    text = ALARMS.replace("notify: [ops]", "severity: high") + (
        "---\naction: {name: tell, channel: {name: ops, text: x}}\n"
        f"---\naction_rule: {{name: each, on: alarm, when: 'rule == \"hot\"', action: tell, {rule}}}\n"
    )
    loaded = load_text(text, anchor=START)
    lived = live(loaded, [*HOT, *COOL, *HOT, *COOL, *[(9, "plant-2", 50.0)] * 6, *HOT])
    found = replay(loaded, lived)
    assert sum(one.rule == "hot" and one.edge == "opened" for one in found.now) == 3
    assert found.pages_now["each", "hot"] == sent


def test_an_escalation_that_the_end_of_the_alarm_cancels_sends_its_first_message_only() -> None:
    loaded = all_rules()
    ended = replay(loaded, live(loaded, [*HOT, (2, "plant-1", 50.0)]))
    assert ended.pages_now["escalating", "hot"] == 1
    went_on = replay(loaded, live(loaded, [*HOT, (9, "plant-1", 80.0)]))
    assert went_on.pages_now["escalating", "hot"] == 2


def test_a_step_that_waits_for_an_event_goes_on_when_it_comes() -> None:
    rules = ALARMS.replace("notify: [ops]", "severity: high") + (
        "---\naction:\n  name: ask\n  steps:\n    - wait: {until_event: 'type == \"trip\"'}\n"
        "    - channel: {name: ops, text: at last}\n"
        "---\naction_rule: {name: each, on: alarm, when: 'rule == \"hot\"', action: ask}\n"
    )
    loaded = load_text(rules, anchor=START)
    assert replay(loaded, live(loaded, [*HOT, (2, "plant-2", "trip")])).pages_now["each", "hot"] == 1
    assert replay(loaded, live(loaded, HOT)).pages_now["each", "hot"] == 0


def test_what_is_due_comes_before_an_event_of_the_same_instant() -> None:
    """The group of the first alarm has begun its run when the second opens, to the microsecond."""
    rules = ALARMS.replace("notify: [ops]", "severity: high").replace("for: 3030ms, ", "") + (
        "---\naction: {name: tell, channel: {name: ops, text: x}}\n"
        "---\naction_rule:\n  name: each\n  on: alarm\n  when: rule == 'hot'\n  action: tell\n"
        "  group_by: [rule]\n  group_wait: 5257ms\n"
    )
    loaded = load_text(rules, anchor=START)
    found = replay(loaded, live(loaded, [(1, "plant-1", 80.0), (5, "plant-2", 80.0)]))
    assert found.pages_now["each", "hot"] == 2


def test_what_people_did_about_an_alarm_that_is_not_there_is_left_out() -> None:
    loaded = all_rules()
    lived = live(loaded, [*HOT, (1, "plant-1", "acknowledge")])
    assert replay(loaded, lived).pages_now["answered", "hot"] == 1
    seen = "---\nevent_rule: {name: seen, event: alarm-acknowledged, fire: 'true', notify: [ops]}\n"
    for above, alarms in (("65.0", {"hot", "seen"}), ("99.0", set[str]())):
        other = load_text(ALARMS.replace("65.0", above) + ACTIONS + seen, anchor=START)
        found = replay(other, lived)
        assert {one.rule for one in found.now} & {"hot", "seen"} == alarms
        assert found.pages_now["answered", "hot"] == (1 if alarms else 0)


CIRCLE = """
event_rule:
  name: chicken
  event: "*"
  fire: type == "kick" || (type == "alarm-resolved" && rule == "egg")
---
event_rule: {name: egg, event: alarm-*, fire: 'type == "alarm-opened" && rule == "chicken"'}
"""


def test_rules_that_conclude_each_other_without_end_are_refused() -> None:
    loaded = load_text(CIRCLE, anchor=START)
    lived = Lived(World((), START), [], until=START + timedelta(seconds=9))
    lived.world.emit("kick", "plant-1")
    lived.world.run_until(lived.until)
    with pytest.raises(InvalidInput, match=r"chicken, egg conclude each other without end for 'plant-1'"):
        replay(loaded, lived)

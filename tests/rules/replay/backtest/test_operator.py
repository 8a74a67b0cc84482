"""Snoozes and acknowledgements under other rules: each alarm is acted upon while it is open, and every snooze that it
outlives ends, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.documents.load import Loaded, load_text
from rules.replay.rule_tests import World
from tests.rules.replay.backtest.simulated_recording import (
    ACTIONS,
    ALARMS,
    START,
    STEPS,
    Lived,
    live,
    recorded_event,
    replay,
    versions,
)
from tests.rules.replay.backtest.snoozed_alarms import BRANCH, HOT, hot, woken
from tocsin.core.records import NewEvent

OTHERS = {
    "the same": ALARMS,
    "ends sooner": ALARMS.replace("value < 60.0", "value < 64.0"),
    "ends later": ALARMS.replace("for: 3030ms, notify", "for: 3030ms, keep_firing_for: 9090ms, notify"),
    "opens later": ALARMS.replace("for: 3030ms", "for: 8080ms").replace("for: 2110ms", "for: 5110ms"),
    "opens at once": ALARMS.replace("for: 3030ms, ", ""),
    "is graver": ALARMS.replace("notify: [ops]}", "notify: [ops], severity: critical}"),
    "hears of less": ALARMS.replace("value > 65.0", "value > 70.0"),
    "is more patient": ALARMS.replace("4100ms", "6100ms"),
}


@cache
def rules(name: str) -> Loaded:
    return load_text(OTHERS[name] + ACTIONS, anchor=START)


def lived_again(loaded: Loaded, lived: Lived) -> Lived:
    """A world with other rules, in which the same arrives, and people do what they did if they can."""
    found = Lived(World((one.model for one in loaded.documents), START), versions(loaded), until=lived.until)
    arrivals = [one for of_owner in lived.arrivals.values() for one in of_owner]
    acts = [one for one in lived.world.log if one.kind == "event" and one.state != "derived"]
    given: list[tuple[datetime, Callable[[], None]]] = [
        (one.at, lambda one=one: found.world.arrive(one.owner, one.key, one.value))  # type: ignore[misc]
        for one in arrivals
    ]
    given += [(one.at, lambda one=one: do_again(found.world, one.details)) for one in acts]  # type: ignore[misc]
    for at, what in sorted(given, key=lambda one: one[0]):
        found.world.run_until(at)
        what()
    found.world.run_until(found.until)
    return found


def do_again(world: World, facts: Mapping[str, Any]) -> None:
    event = recorded_event(facts)
    if event.alarm_id is None:
        # By the same id: that of an alarm over events follows from it.
        again = NewEvent(world.now, event.origin, event.type, event.payload, owner=event.owner, id=event.id)
        world.append(again)
        return
    held = world.alarms.get(event.alarm_id)
    if held is None or held.state != "open":
        return
    if event.type == "alarm-acknowledged":
        world.acknowledge(event.rule, event.owner)
    elif event.type == "alarm-unsnoozed":
        world.unsnooze(event.rule, event.owner)
    else:
        world.snooze(event.rule, datetime.fromisoformat(event.payload["until"]) - world.now, event.owner)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from(sorted(OTHERS)), st.sampled_from(sorted(OTHERS)))
def test_other_rules_over_a_recording_are_a_world_in_which_people_do_the_same(
    steps: list[tuple[int, str, float | str]], then: str, now: str
) -> None:
    lived = live(rules(then), steps)
    found, expected = replay(rules(now), lived), lived_again(rules(now), lived)
    assert {
        (one.rule, one.owner, one.kind, one.at) for one in found.replayed_transitions
    } == expected.alarms()
    assert found.replayed_notifications == expected.pages()
    assert found.recorded_notifications == lived.pages()


SNOOZED: list[tuple[int, str, float | str]] = [
    (1, "plant-1", 80.0),
    (2, "plant-1", "doze"),
    (2, "plant-1", 62.0),
]
"""Open from the first second, snoozed from 3.5 s to 8.23 s."""
LONG: list[tuple[int, str, float | str]] = [*SNOOZED, (9, "plant-1", 50.0)]
SHORT: list[tuple[int, str, float | str]] = [*SNOOZED, (1, "plant-1", 50.0)]


@pytest.mark.parametrize(
    ("then", "steps", "now", "ends"),
    [
        ("clear: value < 60.0", LONG, "clear: value < 60.0", 1),
        ("clear: value < 60.0", LONG, "clear: value < 64.0", 0),
        ("clear: value < 60.0", SHORT, "clear: value < 60.0", 0),
        ("clear: value < 60.0", SHORT, "clear: value < 40.0", 1),
        ("clear: value < 60.0", SHORT, "clear: value < 60.0, keep_firing_for: 1m", 1),
        ("clear: value < 60.0, keep_firing_for: 1m", SHORT, "clear: value < 60.0", 0),
    ],
)
def test_a_snooze_ends_once_if_the_alarm_outlives_it(
    then: str, steps: list[tuple[int, str, float | str]], now: str, ends: int
) -> None:
    lived = live(hot(then), steps)
    found = replay(hot(now), lived)
    assert woken(found) == (ends, ends)
    assert found.replayed_notifications["hushed", "hot"] == 1
    assert found.recorded_notifications == lived.pages()


def test_a_recording_with_its_ends_is_replayed_with_them_alone() -> None:
    """Historical: what is recorded is heard, and nothing is derived beside it."""
    for steps, ends in ((LONG, 1), (SHORT, 0)):
        assert woken(replay(None, live(hot(), steps))) == (ends, ends)


@pytest.mark.parametrize(
    ("now", "sent"), [("for: 1s", 1), ("for: 6s", 0), ("clear: value < 81.0, keep_firing_for: 1s", 0)]
)
def test_an_alarm_that_is_not_open_yet_or_any_more_is_not_snoozed(now: str, sent: int) -> None:
    steps: list[tuple[int, str, float | str]] = [
        (1, "plant-1", 82.0),
        (1, "plant-1", 80.0),
        (3, "plant-1", "doze"),
        (9, "plant-1", 80.0),
    ]
    found = replay(hot(now), live(hot(), steps))
    assert found.replayed_notifications["hushed", "hot"] == sent
    assert woken(found) == (sent, sent)


def test_an_act_says_how_grave_the_alarm_is_now() -> None:
    lived = live(hot(), LONG)
    for severity, sent in (("high", 1), ("warning", 0)):
        found = replay(hot(f"clear: value < 60.0, severity: {severity}", "high"), lived)
        assert (
            found.replayed_notifications["hushed", "hot"],
            found.replayed_notifications["woken", "hot"],
        ) == (sent, sent)


def test_rules_over_events_hear_how_grave_the_alarm_is_now() -> None:
    seen = "---\nevent_rule: {name: seen, event: alarm-snoozed, fire: severity >= high}\n"
    for severity, count in (("high", 1), ("warning", 0)):
        other = load_text(HOT % (f"severity: {severity}", "info", "info") + seen, anchor=START)
        found = replay(other, live(hot(), LONG))
        assert sum((one.rule, one.kind) == ("seen", "opened") for one in found.replayed_transitions) == count


def test_rules_over_events_do_not_hear_of_alarms_that_were() -> None:
    seen = "---\nevent_rule: {name: seen, event: alarm-opened, fire: rule == 'hot'}\n"
    for least, count in (("65.0", 1), ("95.0", 0)):
        text = (HOT % ("clear: value < 60.0", "info", "info")).replace("65.0", least) + seen
        found = replay(load_text(text, anchor=START), live(hot(), LONG))
        assert sum((one.rule, one.kind) == ("seen", "opened") for one in found.replayed_transitions) == count


def test_rules_over_events_hear_of_an_edge_when_it_is_and_not_when_it_was() -> None:
    seen = "---\nevent_rule: {name: seen, event: alarm-resolved, fire: rule == 'hot'}\n"
    for clear, count in (("60.0", 1), ("40.0", 0)):
        other = load_text(HOT % (f"clear: value < {clear}", "info", "info") + seen, anchor=START)
        found = replay(other, live(hot(), LONG))
        assert sum((one.rule, one.kind) == ("seen", "opened") for one in found.replayed_transitions) == count


def test_each_snooze_has_an_end_of_its_own() -> None:
    twice: list[tuple[int, str, float | str]] = [
        *SNOOZED[:2],
        (9, "plant-1", "doze"),
        (9, "plant-1", 80.0),
        (9, "plant-1", 50.0),
    ]
    lived = live(hot(), twice)
    for clear, ends in (("60.0", 2), ("40.0", 2)):
        assert replay(hot(f"clear: value < {clear}"), lived).replayed_notifications["woken", "hot"] == ends


def test_what_one_arrival_concludes_stays_in_its_order_whether_it_was_recorded_or_not() -> None:
    """`hot` resolves as it did; `quiet` began at another instant, and is another alarm."""
    text = HOT % ("clear: value < 60.0", "info", "info") + (
        "---\ndatapoint_type: {name: load, key: dsp.*, interval: %s}\n"
        "---\nevent_rule: {name: quiet, datapoint: dsp.*, absent: true}\n"
        "---\naction_rule:\n  {name: first, on: alarm, transitions: [resolved], action: tell, "
        "rate_limit: {count: 1, per: 1h}}\n"
    )
    then, now = (load_text(text % interval, anchor=START) for interval in ("2s", "1s"))
    lived = live(then, [(1, "plant-1", 80.0), (9, "plant-1", 50.0)])
    for loaded in (then, now):
        pages = replay(loaded, lived).replayed_notifications
        assert (pages["first", "hot"], pages["first", "quiet"]) == (1, 0)


def test_an_edge_says_how_grave_the_alarm_is_now() -> None:
    rule = "---\naction_rule: {name: grave, on: alarm, when: severity >= high, action: tell}\n"
    for severity, sent in (("high", 1), ("warning", 0)):
        text = HOT % (f"severity: {severity}", "info", "info") + rule
        found = replay(load_text(text, anchor=START), live(hot(), LONG))
        assert found.replayed_notifications["grave", "hot"] == sent


def test_an_alarm_that_ends_sooner_ends_its_escalation_then() -> None:
    text = (
        "---\naction: {name: ask, steps: [wait: {for: 6s}, channel: {name: ops, text: x}]}\n"
        "---\naction_rule: {name: asking, on: alarm, action: ask}\n"
    )
    for clear, sent in (("60.0", 1), ("64.0", 0)):
        other = load_text(HOT % (f"clear: value < {clear}", "info", "info") + text, anchor=START)
        assert replay(other, live(hot(), LONG)).replayed_notifications["asking", "hot"] == sent


@pytest.mark.parametrize(
    ("acts", "sent"),
    [
        ([], 1),
        ([(1, "plant-1", "doze")], 0),
        ([(1, "plant-1", "doze"), (1, "plant-1", "unsnooze")], 1),
        ([(1, "plant-1", "snooze"), (1, "plant-1", "doze")], 0),
    ],
)
def test_steps_know_whether_the_alarm_is_snoozed(acts: list[tuple[int, str, str]], sent: int) -> None:
    loaded = load_text(HOT % ("severity: high", "info", "info") + BRANCH, anchor=START)
    lived = live(loaded, [(1, "plant-1", 80.0), *acts, (9, "plant-1", 80.0)])
    for found in (replay(loaded, lived), replay(None, lived)):
        assert (
            found.replayed_notifications["asking", "hot"]
            == found.recorded_notifications["asking", "hot"]
            == sent
        )


def test_steps_know_of_a_snooze_and_an_acknowledgement_from_before_their_action_began() -> None:
    """Neither they nor the opening start anything; and the end of the alarm forgets neither."""
    text = (
        "---\naction: {name: ask, steps: [branch: {when: alarm.snoozed && alarm.acknowledged && alarm.message != '',"
        " then: [channel: {name: ops, text: x}]}]}\n"
        "---\naction_rule: {name: asking, on: alarm, transitions: [resolved], action: ask}\n"
        "---\nchannel: {name: ops, webhook: {url: 'https://hooks.example.com/1'}}\n"
    )
    hot_only = "event_rule: {name: hot, datapoint: dsp.*, above: 65, message: it is hot}\n"
    loaded = load_text(hot_only + text, anchor=START)
    lived = live(
        loaded,
        [(1, "plant-1", 80.0), (1, "plant-1", "snooze"), (1, "plant-1", "acknowledge"), (1, "plant-1", 50.0)],
    )
    assert lived.pages()["asking", "hot"] == 1
    for found in (replay(loaded, lived), replay(None, lived)):
        assert (
            found.replayed_notifications["asking", "hot"]
            == found.recorded_notifications["asking", "hot"]
            == 1
        )

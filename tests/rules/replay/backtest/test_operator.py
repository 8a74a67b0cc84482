"""Snoozes and acknowledgements under candidate rules.

Operators act on an alarm while it is open, and every snooze that the alarm outlasts ends once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.documents.load import LoadedDocuments, load_text
from rules.replay.rule_tests import World
from tests.rules.replay.backtest.simulated_recording import (
    ACTIONS,
    ALARMS,
    START,
    STEPS,
    SimulatedRecording,
    recorded_event,
    replay,
    sent,
    simulate,
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
    "is more severe": ALARMS.replace("notify: [ops]}", "notify: [ops], severity: critical}"),
    "fires less often": ALARMS.replace("value > 65.0", "value > 70.0"),
    "is stale later": ALARMS.replace("4100ms", "6100ms"),
}


@cache
def rules(name: str) -> LoadedDocuments:
    return load_text(OTHERS[name] + ACTIONS, anchor=START)


def simulate_again(loaded: LoadedDocuments, simulated: SimulatedRecording) -> SimulatedRecording:
    """A simulation with other rules, the same arrivals, and the same operators where they can act."""
    again = SimulatedRecording(
        World((one.model for one in loaded.documents), START), versions(loaded), until=simulated.until
    )
    inputs: list[tuple[datetime, Callable[[], None]]] = [
        (row.at, partial(again.world.arrive, row.owner, row.key, row.value))
        for rows in simulated.arrivals.values()
        for row in rows
    ]
    inputs += [
        (entry.at, partial(repeat, again.world, entry.details))
        for entry in simulated.world.log
        if entry.kind == "event" and entry.state != "derived"
    ]
    for at, call in sorted(inputs, key=lambda item: item[0]):
        again.world.run_until(at)
        call()
    again.world.run_until(again.until)
    return again


def repeat(world: World, facts: Mapping[str, Any]) -> None:
    event = recorded_event(facts)
    if event.alarm_id is None:
        # With the same id: the id of an alarm over events follows from it.
        world.append(
            NewEvent(world.now, event.origin, event.type, event.payload, owner=event.owner, id=event.id)
        )
        return
    record = world.alarms.get(event.alarm_id)
    if record is None or record.state != "open":
        return
    if event.type == "alarm-acknowledged":
        world.acknowledge(event.rule, event.owner)
    elif event.type == "alarm-unsnoozed":
        world.unsnooze(event.rule, event.owner)
    else:
        world.snooze(event.rule, datetime.fromisoformat(event.payload["until"]) - world.now, event.owner)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from(sorted(OTHERS)), st.sampled_from(sorted(OTHERS)))
def test_a_replay_with_candidate_rules_equals_a_simulation_with_the_same_operators(
    steps: list[tuple[int, str, float | str]], then: str, now: str
) -> None:
    simulated = simulate(rules(then), steps)
    result, expected = replay(rules(now), simulated), simulate_again(rules(now), simulated)
    assert {
        (one.rule, one.owner, one.kind, one.at) for one in result.replayed_transitions
    } == expected.alarms()
    assert result.replayed_notifications == expected.notifications()
    assert result.recorded_notifications == simulated.notifications()


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
def test_a_snooze_ends_once_if_the_alarm_outlasts_it(
    then: str, steps: list[tuple[int, str, float | str]], now: str, ends: int
) -> None:
    simulated = simulate(hot(then), steps)
    result = replay(hot(now), simulated)
    assert woken(result) == (ends, ends)
    assert sent(result, "hushed") == 1
    assert result.recorded_notifications == simulated.notifications()


def test_a_historical_replay_has_the_recorded_ends_of_snoozes_and_no_others() -> None:
    for steps, ends in ((LONG, 1), (SHORT, 0)):
        assert woken(replay(None, simulate(hot(), steps))) == (ends, ends)


@pytest.mark.parametrize(
    ("now", "count"), [("for: 1s", 1), ("for: 6s", 0), ("clear: value < 81.0, keep_firing_for: 1s", 0)]
)
def test_an_alarm_that_is_not_open_yet_or_any_more_is_not_snoozed(now: str, count: int) -> None:
    steps: list[tuple[int, str, float | str]] = [
        (1, "plant-1", 82.0),
        (1, "plant-1", 80.0),
        (3, "plant-1", "doze"),
        (9, "plant-1", 80.0),
    ]
    result = replay(hot(now), simulate(hot(), steps))
    assert sent(result, "hushed") == count
    assert woken(result) == (count, count)


def test_an_operator_event_has_the_severity_of_the_candidate_rule() -> None:
    simulated = simulate(hot(), LONG)
    for severity, count in (("high", 1), ("warning", 0)):
        result = replay(hot(f"clear: value < 60.0, severity: {severity}", "high"), simulated)
        assert (sent(result, "hushed"), sent(result, "woken")) == (count, count)


def test_rules_over_events_see_the_severity_of_the_candidate_rule() -> None:
    seen = "---\nevent_rule: {name: seen, event: alarm-snoozed, fire: severity >= high}\n"
    for severity, count in (("high", 1), ("warning", 0)):
        other = load_text(HOT % (f"severity: {severity}", "info", "info") + seen, anchor=START)
        result = replay(other, simulate(hot(), LONG))
        assert sum((one.rule, one.kind) == ("seen", "opened") for one in result.replayed_transitions) == count


def test_rules_over_events_do_not_see_recorded_alarms_that_do_not_open() -> None:
    seen = "---\nevent_rule: {name: seen, event: alarm-opened, fire: rule == 'hot'}\n"
    for least, count in (("65.0", 1), ("95.0", 0)):
        text = (HOT % ("clear: value < 60.0", "info", "info")).replace("65.0", least) + seen
        result = replay(load_text(text, anchor=START), simulate(hot(), LONG))
        assert sum((one.rule, one.kind) == ("seen", "opened") for one in result.replayed_transitions) == count


def test_rules_over_events_see_the_transitions_of_the_replay_and_not_the_recorded_ones() -> None:
    seen = "---\nevent_rule: {name: seen, event: alarm-resolved, fire: rule == 'hot'}\n"
    for clear, count in (("60.0", 1), ("40.0", 0)):
        other = load_text(HOT % (f"clear: value < {clear}", "info", "info") + seen, anchor=START)
        result = replay(other, simulate(hot(), LONG))
        assert sum((one.rule, one.kind) == ("seen", "opened") for one in result.replayed_transitions) == count


def test_each_snooze_has_an_end_of_its_own() -> None:
    twice: list[tuple[int, str, float | str]] = [
        *SNOOZED[:2],
        (9, "plant-1", "doze"),
        (9, "plant-1", 80.0),
        (9, "plant-1", 50.0),
    ]
    simulated = simulate(hot(), twice)
    for clear, ends in (("60.0", 2), ("40.0", 2)):
        assert sent(replay(hot(f"clear: value < {clear}"), simulated), "woken") == ends


def test_transitions_of_one_arrival_keep_their_order_if_only_some_were_recorded() -> None:
    """`hot` resolves as it was recorded. `quiet` begins at another instant, so it is another alarm."""
    text = HOT % ("clear: value < 60.0", "info", "info") + (
        "---\ndatapoint_type: {name: load, key: dsp.*, interval: %s}\n"
        "---\nevent_rule: {name: quiet, datapoint: dsp.*, absent: true}\n"
        "---\naction_rule:\n  {name: first, on: alarm, transitions: [resolved], action: tell, "
        "rate_limit: {count: 1, per: 1h}}\n"
    )
    then, now = (load_text(text % interval, anchor=START) for interval in ("2s", "1s"))
    simulated = simulate(then, [(1, "plant-1", 80.0), (9, "plant-1", 50.0)])
    for loaded in (then, now):
        result = replay(loaded, simulated)
        assert (sent(result, "first", "hot"), sent(result, "first", "quiet")) == (1, 0)


def test_a_transition_has_the_severity_of_the_candidate_rule() -> None:
    rule = "---\naction_rule: {name: severe, on: alarm, when: severity >= high, action: tell}\n"
    for severity, count in (("high", 1), ("warning", 0)):
        text = HOT % (f"severity: {severity}", "info", "info") + rule
        result = replay(load_text(text, anchor=START), simulate(hot(), LONG))
        assert sent(result, "severe") == count


def test_an_alarm_that_resolves_sooner_ends_its_escalation_sooner() -> None:
    text = (
        "---\naction: {name: ask, steps: [wait: {for: 6s}, channel: {name: ops, text: x}]}\n"
        "---\naction_rule: {name: asking, on: alarm, action: ask}\n"
    )
    for clear, count in (("60.0", 1), ("64.0", 0)):
        other = load_text(HOT % (f"clear: value < {clear}", "info", "info") + text, anchor=START)
        assert sent(replay(other, simulate(hot(), LONG)), "asking") == count


@pytest.mark.parametrize(
    ("operations", "count"),
    [
        ([], 1),
        ([(1, "plant-1", "doze")], 1),
        ([(1, "plant-1", "doze"), (1, "plant-1", "unsnooze")], 1),
        ([(1, "plant-1", "snooze"), (1, "plant-1", "doze")], 1),
    ],
)
def test_a_snooze_holds_steps_until_it_ends(operations: list[tuple[int, str, str]], count: int) -> None:
    """A step that asks whether the alarm is snoozed is performed when it no longer is."""
    loaded = load_text(HOT % ("severity: high", "info", "info") + BRANCH, anchor=START)
    simulated = simulate(loaded, [(1, "plant-1", 80.0), *operations, (9, "plant-1", 80.0)])
    for result in (replay(loaded, simulated), replay(None, simulated)):
        assert sent(result, "asking") == result.recorded_notifications["asking", "hot"] == count


def test_steps_know_of_a_snooze_and_an_acknowledgement_from_before_their_action_began() -> None:
    """Neither these events nor the opening start a run, and both are kept when the alarm resolves."""
    text = (
        "---\naction: {name: ask, steps: [branch: {when: alarm.snoozed && alarm.acknowledged && alarm.message != '',"
        " then: [channel: {name: ops, text: x}]}]}\n"
        "---\naction_rule: {name: asking, on: alarm, transitions: [resolved], action: ask}\n"
        "---\nchannel: {name: ops, webhook: {url: 'https://hooks.example.com/1'}}\n"
    )
    hot_only = "event_rule: {name: hot, datapoint: dsp.*, above: 65, message: it is hot}\n"
    loaded = load_text(hot_only + text, anchor=START)
    simulated = simulate(
        loaded,
        [(1, "plant-1", 80.0), (1, "plant-1", "snooze"), (1, "plant-1", "acknowledge"), (1, "plant-1", 50.0)],
    )
    assert simulated.notifications()["asking", "hot"] == 1
    for result in (replay(loaded, simulated), replay(None, simulated)):
        assert sent(result, "asking") == result.recorded_notifications["asking", "hot"] == 1

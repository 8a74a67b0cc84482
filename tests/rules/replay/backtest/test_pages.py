"""Backtests count the pages of groups, repetitions and alarms that operators act on, as they are sent."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rules.documents.load import load_text
from rules.engine import Arrival
from rules.replay.rule_tests import World
from tests.rules.replay.backtest.simulated_recording import START, SimulatedRecording, replay, versions

OPS = 'channel: {name: ops, webhook: {url: "https://hooks.example.com/1"}}\n---\n'
HOT = OPS + "event_rule: {name: hot, datapoint: dsp.a, fire: value > 65.0%s}\n"
GROUP = (
    "---\naction_rule: {name: page, on: alarm, notify: [ops], group_by: [rule], group_wait: 1m,"
    " group_interval: 5m%s}\n"
)
THREE = tuple((minute, f"p{minute}", 70.0) for minute in (1, 2, 3))
ENDS = tuple((minute + 40, f"p{minute}", 50.0) for minute in (1, 2, 3))


def record(
    text: str, values: tuple[tuple[int, str, float], ...], *acts: tuple[int, str, dict[str, Any]]
) -> SimulatedRecording:
    """Values as (minute, owner, value), acts of operators as (minute, method, arguments)."""
    loaded = load_text(text, anchor=START)
    recording = SimulatedRecording(World((one.model for one in loaded.documents), START), versions(loaded))
    world = recording.world
    for minute, method, arguments in acts:
        world.at(START + timedelta(minutes=minute), method, **arguments)
    for minute, owner, value in values:
        at = START + timedelta(minutes=minute)
        world.at(at, "arrive", owner=owner, key="dsp.a", value=value)
        recording.arrivals.setdefault(owner, []).append(Arrival(at, 1, owner, "dsp.a", value, at, {}))
    recording.until = START + timedelta(hours=3)
    world.run_until(recording.until)
    return recording


@pytest.mark.parametrize(
    ("text", "values", "pages"),
    [
        pytest.param(HOT % ", notify: [ops]", (*THREE, *ENDS), 6, id="one message for each transition"),
        pytest.param(HOT % "" + GROUP % "", (*THREE, *ENDS), 4, id="a group gathers what joins and ends"),
        pytest.param(HOT % ", notify: [ops], repeat: 30m", THREE[:1], 6, id="a repetition until the end"),
        pytest.param(HOT % "" + GROUP % ", repeat: 1h", THREE, 4, id="a group repeats as one"),
    ],
)
def test_pages_are_counted_as_they_are_sent(
    text: str, values: tuple[tuple[int, str, float], ...], pages: int
) -> None:
    recording = record(text, values)
    sent = recording.notifications()
    assert sum(sent.values()) == pages
    historical = replay(None, recording)
    assert historical.recorded_notifications == historical.replayed_notifications == sent
    candidate = replay(load_text(text, anchor=START), recording)
    assert candidate.replayed_notifications == sent


@pytest.mark.parametrize(
    ("act", "pages"),
    [
        pytest.param((40, "acknowledge", {}), 2, id="no repetition after an acknowledgement"),
        pytest.param((40, "resolve", {}), 3, id="a resolution by an operator is one more page"),
        pytest.param((40, "snooze", {"lasts": timedelta(minutes=65)}), 5, id="a snooze holds repetitions"),
    ],
)
def test_acts_of_operators_change_the_number_of_pages(
    act: tuple[int, str, dict[str, Any]], pages: int
) -> None:
    text = HOT % ", notify: [ops], repeat: 30m"
    minute, method, arguments = act
    recording = record(text, THREE[:1], (minute, method, {"rule": "hot", "owner": "p1", **arguments}))
    sent = recording.notifications()
    assert sum(sent.values()) == pages
    historical = replay(None, recording)
    assert historical.recorded_notifications == historical.replayed_notifications == sent

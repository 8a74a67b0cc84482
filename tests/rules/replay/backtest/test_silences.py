"""Silences, maintenance windows and inhibits in backtests: they count the pages that were sent."""

from __future__ import annotations

from datetime import timedelta

from rules.documents.load import load_text
from rules.engine import Arrival
from rules.replay.rule_tests import World
from tests.rules.replay.backtest.simulated_recording import START, SimulatedRecording, replay, versions

HOT = "event_rule: {name: hot, datapoint: dsp.a, fire: value > 65.0, notify: [ops]}\n---\n"
OPS = 'channel: {name: ops, webhook: {url: "https://hooks.example.com/1"}}\n'
WINDOW = "---\nmaintenance: {name: m, where: 'true', at: '2026-03-02T08:10:00Z', duration: 1h}\n"
INHIBIT = (
    "---\nevent_rule: {name: switch, datapoint: sw, above: 0}\n"
    "---\ninhibit: {name: i, source: 'rule == \"switch\"', target: 'rule == \"hot\"'}\n"
)


def record(
    text: str, *values: tuple[int, str, str, float], silence: tuple[int, int] | None = None
) -> SimulatedRecording:
    """Values as (minute, owner, key, value), with a silence of everything from a minute to another."""
    loaded = load_text(text, anchor=START)
    recording = SimulatedRecording(World((one.model for one in loaded.documents), START), versions(loaded))
    world = recording.world
    if silence is not None:
        begin, end = (timedelta(minutes=minute) for minute in silence)
        world.at(START + begin, "silence", where="true", lasts=end - begin)
    for minute, owner, key, value in values:
        at = START + timedelta(minutes=minute)
        world.at(at, "arrive", owner=owner, key=key, value=value)
        recording.arrivals.setdefault(owner, []).append(Arrival(at, 1, owner, key, value, at, {}))
    recording.until = START + timedelta(hours=3)
    world.run_until(recording.until)
    return recording


BLIP = ((20, "p1", "dsp.a", 70.0), (30, "p1", "dsp.a", 50.0))
LASTING = ((20, "p2", "dsp.a", 70.0),)
ROUTE = ("notify:hot:ops", "hot")


def test_a_recorded_silence_counts_in_a_replay_and_with_candidate_rules() -> None:
    recording = record(HOT + OPS, *BLIP, *LASTING, silence=(10, 60))
    assert recording.notifications() == {ROUTE: 1}
    historical = replay(None, recording)
    assert historical.recorded_notifications == historical.replayed_notifications == {ROUTE: 1}
    candidate = replay(load_text(HOT + OPS, anchor=START), recording)
    assert candidate.replayed_notifications == {ROUTE: 1}


def test_without_the_silence_all_transitions_are_pages() -> None:
    recording = record(HOT + OPS, *BLIP, *LASTING)
    assert replay(None, recording).replayed_notifications == {ROUTE: 3}


def test_a_candidate_maintenance_removes_the_pages_of_its_windows() -> None:
    recording = record(HOT + OPS, *BLIP, *LASTING)
    result = replay(load_text(HOT + OPS + WINDOW, anchor=START), recording)
    assert (result.recorded_notifications, result.replayed_notifications) == ({ROUTE: 3}, {ROUTE: 1})


def test_a_recorded_window_holds_unless_the_candidates_leave_it_out() -> None:
    recording = record(HOT + OPS + WINDOW, *BLIP, *LASTING)
    assert replay(None, recording).replayed_notifications == {ROUTE: 1}
    without = replay(load_text(HOT + OPS, anchor=START), recording)
    assert (without.recorded_notifications, without.replayed_notifications) == ({ROUTE: 1}, {ROUTE: 3})


def test_a_candidate_inhibit_removes_the_pages_that_another_alarm_explains() -> None:
    switch = ((15, "sw", "sw", 1.0), (40, "sw", "sw", 0.0))
    plain = HOT + OPS + "---\nevent_rule: {name: switch, datapoint: sw, above: 0}\n"
    recording = record(plain, *BLIP, *LASTING, *switch)
    result = replay(load_text(HOT + OPS + INHIBIT, anchor=START), recording)
    assert (result.recorded_notifications, result.replayed_notifications) == ({ROUTE: 3}, {ROUTE: 1})

"""The end of a snooze under candidate rules: at its instant, however late the clock or a worker was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rules.documents.load import LoadedDocuments, load_text
from rules.engine import Arrival
from rules.replay.backtest.recording.model import Horizon, RecordedEvent
from rules.replay.rule_tests import LogEntry, World
from tests.rules.replay.backtest.simulated_recording import START, SimulatedRecording, replay, sent, versions
from tests.rules.replay.backtest.snoozed_alarms import BRANCH, HOT, hot, woken


def snoozed_recording(
    loaded: LoadedDocuments, lasts: float, arrivals: Sequence[tuple[float, float]]
) -> SimulatedRecording:
    """A recording in which the alarm is snoozed after two seconds."""
    simulated = SimulatedRecording(World((one.model for one in loaded.documents), START), versions(loaded))
    simulated.until = after(100)
    for at, value in arrivals:
        simulated.world.at(after(at), "arrive", owner="plant-1", key="dsp.a", value=value)
    simulated.world.at(
        after(2), "snooze", rule="hot", owner="plant-1", who="ann", lasts=timedelta(seconds=lasts)
    )
    simulated.world.run_until(simulated.until)
    simulated.arrivals["plant-1"] = [
        Arrival(after(at), 1, "plant-1", "dsp.a", value, after(at), {}) for at, value in arrivals
    ]
    return simulated


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


@pytest.mark.parametrize("then", ["clear: value < 60.0", "clear: value < 40.0"])
def test_at_one_instant_a_snooze_ends_before_what_arrives_and_before_a_sustain(then: str) -> None:
    """Also if the recorded alarm ended otherwise."""
    arrives = snoozed_recording(hot(then), 8, [(1, 80.0), (10, 50.0), (30, 30.0)])
    assert woken(replay(hot(), arrives)) == (0, 1), (
        "rules see it, and the run that it starts ends with the alarm at once"
    )
    assert sent(replay(hot("clear: value < 60.0, notify: [ops]"), arrives), "notify:hot:ops") == 2, (
        "it opened, and what is sent at the end of the snooze is the current state: resolved"
    )
    slow = "clear: value < 60.0, keep_firing_for: 4s, notify: [ops]"
    over = snoozed_recording(hot(then), 8, [(1, 80.0), (6, 50.0), (30, 30.0)])
    result = replay(hot(slow), over)
    assert woken(result) == (0, 1)
    assert sent(result, "notify:hot:ops") == 2, "it opened and resolved"
    late = snoozed_recording(
        hot(then), 8, [(1, 80.0), (6, 50.0), (6.5, 80.0), (7, 50.0), (10, 50.0), (30, 30.0)]
    )
    assert woken(replay(hot(slow), late)) == (1, 1), "it was clear for three seconds"


@pytest.mark.parametrize(("off", "count"), [(5.5, 2), (6.0, 2), (6.5, 3)])
def test_at_one_instant_the_snooze_of_an_alarm_over_events_ends_before_it_resolves(
    off: float, count: int
) -> None:
    text = (
        "event_rule: {name: tripped, event: trip, fire: payload.on == true, keep_firing_for: %s, notify: [ops]}\n"
        "---\nchannel: {name: ops, webhook: {url: 'https://hooks.example.com/1'}}\n"
    )
    then, now = (load_text(text % lasts, anchor=START) for lasts in ("1m", "4s"))
    simulated = SimulatedRecording(
        World((one.model for one in then.documents), START), versions(then), until=after(100)
    )
    for second, on in ((1.0, True), (off, False)):
        simulated.world.at(after(second), "emit", type="trip", owner="plant-1", payload={"on": on})
    simulated.world.at(after(2), "snooze", rule="tripped", owner="plant-1", lasts=timedelta(seconds=8))
    simulated.world.run_until(simulated.until)
    assert sent(replay(now, simulated), "notify:tripped:ops", "tripped") == count


def edited(
    simulated: SimulatedRecording, edit: Callable[[RecordedEvent], RecordedEvent | None]
) -> SimulatedRecording:
    simulated.edit = edit
    return simulated


def late(type: str, seconds: float) -> Callable[[RecordedEvent], RecordedEvent | None]:
    """An edit that makes the event recorded later."""

    def edit(event: RecordedEvent) -> RecordedEvent | None:
        is_selected = event.type == type and event.rule == "hot"
        return (
            event._replace(recorded_at=event.recorded_at + timedelta(seconds=seconds))
            if is_selected
            else event
        )

    return edit


def without_ends(event: RecordedEvent) -> RecordedEvent | None:
    return None if event.type == "alarm-snooze-ended" else event


ENDED = [(1.0, 80.0), (9.9, 50.0)]


def test_an_alarm_that_resolves_as_recorded_has_the_recorded_ends_of_its_snoozes() -> None:
    """The clock may have been late, and found the alarm resolved or snoozed again."""
    simulated = edited(snoozed_recording(hot(), 7, ENDED), without_ends)
    assert sent(replay(hot(), simulated), "woken") == 0
    assert sent(replay(hot("clear: value < 40.0"), simulated), "woken") == 1


def test_an_end_that_was_recorded_late_is_seen_late() -> None:
    text = HOT % ("severity: high", "info", "info") + (
        "---\naction: {name: ask, steps: [wait: {until_event: 'type == \"trip\"'}, channel: {name: ops, text: x}]}\n"
        "---\naction_rule: {name: asking, on: alarm, transitions: [snooze-ended], action: ask}\n"
    )
    other = load_text(text, anchor=START)
    for seconds, count in ((1.0, 1), (3.0, 0)):
        simulated = snoozed_recording(hot(), 7, [(1.0, 80.0)])
        simulated.world.log.append(tripped(after(11)))
        result = replay(other, edited(simulated, late("alarm-snooze-ended", seconds)))
        assert sent(result, "asking") == count


def test_a_clock_that_was_down_finds_the_alarm_as_it_is_when_it_is_up_again() -> None:
    """The snooze was over in second 9, and the clock recorded it in second 29."""
    simulated = snoozed_recording(hot("clear: value < 40.0"), 7, [(1.0, 80.0), (20.0, 50.0), (40.0, 30.0)])
    simulated = edited(simulated, late("alarm-snooze-ended", 20))
    assert sent(replay(hot("clear: value < 40.0"), simulated), "woken") == 1
    assert sent(replay(hot("clear: value < 60.0"), simulated), "woken") == 0
    assert sent(replay(hot("clear: value < 20.0"), simulated), "woken") == 1


def tripped(at: datetime) -> LogEntry:
    world = World((), at)
    world.emit("trip", "plant-1")
    (entry,) = world.log
    return replace(entry, details={**entry.details, "seq": 1_000})


def test_operators_act_on_an_alarm_until_its_resolution_is_recorded() -> None:
    """It resolved at 1.5 s and was snoozed at 2 s, before a worker had read that. The clock ended the snooze."""
    arrivals = [(1.0, 80.0), (1.5, 50.0)]
    simulated = snoozed_recording(hot("clear: value < 40.0"), 7, arrivals)
    resolved = next(
        one.details
        for one in unsnoozed_world(arrivals).log
        if one.kind == "event" and one.name == "alarm-resolved" and one.details["rule"] == "hot"
    )
    facts = {**resolved, "seq": 1_000, "recorded_at": after(20)}
    simulated.world.log.append(LogEntry(after(1.5), "event", "alarm-resolved", "plant-1", "derived", facts))
    result = replay(hot(), simulated)
    assert (sent(result, "hushed"), sent(result, "woken")) == (1, 1)
    sooner = replay(hot("clear: value < 60.0, keep_firing_for: 100ms"), simulated)
    assert (sent(sooner, "hushed"), sent(sooner, "woken")) == (0, 0)


def unsnoozed_world(arrivals: list[tuple[float, float]]) -> World:
    world = World((one.model for one in hot().documents), START)
    for at, value in arrivals:
        world.at(after(at), "arrive", owner="plant-1", key="dsp.a", value=value)
    world.run_until(after(100))
    return world


def test_no_snooze_ends_after_the_horizon() -> None:
    """It is not known whether the alarm is open then. If it resolves as recorded, the recorded end is used."""
    simulated = snoozed_recording(hot("clear: value < 60.0"), 7, [(1.0, 80.0), (5.0, 50.0)])
    other = hot("clear: value < 40.0")
    for lane, until, ends in (("data", 8.9, 0), ("record", 8.9, 0), ("data", 9.0, 1)):
        simulated.horizons = [Horizon(lane, 0, after(until))]
        assert sent(replay(other, simulated), "woken") == ends
    same = snoozed_recording(hot(), 7, [(1.0, 80.0)])
    same.horizons = [Horizon("data", 0, after(8.9))]
    assert sent(replay(hot(), same), "woken") == 1


@pytest.mark.parametrize(
    "payload", [{}, {"until": None}, {"until": 7}, {"until": "soon"}, {"until": "2026-03-02T08:00:09"}]
)
def test_a_snooze_without_a_valid_instant_has_no_end(payload: dict[str, object]) -> None:
    def without_instant(event: RecordedEvent) -> RecordedEvent | None:
        return event._replace(payload=payload) if event.type == "alarm-snoozed" else event

    simulated = edited(snoozed_recording(hot(), 7, ENDED), without_instant)
    result = replay(hot("clear: value < 40.0"), simulated)
    assert (sent(result, "hushed"), sent(result, "woken")) == (1, 0)


def test_an_event_that_an_action_emits_is_not_an_operator_event() -> None:
    def emitted(event: RecordedEvent) -> RecordedEvent | None:
        return event._replace(action="tell") if event.type == "alarm-snoozed" else event

    simulated = edited(snoozed_recording(hot(), 7, ENDED), emitted)
    sooner = replay(hot("clear: value < 81.0, keep_firing_for: 100ms"), simulated)
    assert sent(sooner, "hushed") == 0, "it is no transition either"
    assert sent(replay(hot("clear: value < 40.0"), simulated), "woken") == 0
    assert sent(replay(hot("where: labels.zone == 'x'"), simulated), "hushed") == 0
    asking = load_text(HOT % ("clear: value < 40.0", "info", "info") + BRANCH, anchor=START)
    assert sent(replay(asking, simulated), "asking") == 1, "the alarm is not snoozed"

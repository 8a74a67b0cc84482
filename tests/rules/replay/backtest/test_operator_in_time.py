"""When a snooze ends under other rules: to the instant, and however late the clock or a worker was then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from rules.documents.load import Loaded, load_text
from rules.engine import Arrival
from rules.replay.backtest.recording.model import Horizon, RecordedEvent
from rules.replay.rule_tests import LogEntry, World
from tests.rules.replay.backtest.simulated_recording import START, Lived, replay, versions
from tests.rules.replay.backtest.snoozed_alarms import BRANCH, HOT, hot, woken


def at_one_instant(loaded: Loaded, lasts: float, arrivals: Sequence[tuple[float, float]]) -> Lived:
    """Snoozed in the second second."""
    lived = Lived(World((one.model for one in loaded.documents), START), versions(loaded))
    lived.until = after(100)
    for at, value in arrivals:
        lived.world.at(after(at), "arrive", owner="plant-1", key="dsp.a", value=value)
    lived.world.at(after(2), "snooze", rule="hot", owner="plant-1", who="ann", lasts=timedelta(seconds=lasts))
    lived.world.run_until(lived.until)
    lived.arrivals["plant-1"] = [
        Arrival(after(at), 1, "plant-1", "dsp.a", value, after(at), {}) for at, value in arrivals
    ]
    return lived


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


@pytest.mark.parametrize("then", ["clear: value < 60.0", "clear: value < 40.0"])
def test_at_one_instant_a_sustain_is_over_before_a_snooze_and_a_snooze_before_what_arrives(then: str) -> None:
    """Also where the alarm ended otherwise then."""
    arrives = at_one_instant(hot(then), 8, [(1, 80.0), (10, 50.0), (30, 30.0)])
    assert woken(replay(hot(), arrives)) == (0, 1), (
        "told to rules, and what it starts ends with the alarm at once"
    )
    assert (
        replay(hot("clear: value < 60.0, notify: [ops]"), arrives).replayed_notifications[
            "notify:hot:ops", "hot"
        ]
        == 3
    )
    slow = "clear: value < 60.0, keep_firing_for: 4s, notify: [ops]"
    over = at_one_instant(hot(then), 8, [(1, 80.0), (6, 50.0), (30, 30.0)])
    found = replay(hot(slow), over)
    assert woken(found) == (0, 0)
    assert found.replayed_notifications["notify:hot:ops", "hot"] == 2, "it opened and resolved"
    late = at_one_instant(
        hot(then), 8, [(1, 80.0), (6, 50.0), (6.5, 80.0), (7, 50.0), (10, 50.0), (30, 30.0)]
    )
    assert woken(replay(hot(slow), late)) == (1, 1), "it was clear for three seconds"


@pytest.mark.parametrize(("off", "sent"), [(6.0, 2), (6.5, 3)])
def test_at_one_instant_an_alarm_over_events_is_resolved_before_its_snooze_ends(
    off: float, sent: int
) -> None:
    text = (
        "event_rule: {name: tripped, event: trip, fire: payload.on == true, keep_firing_for: %s, notify: [ops]}\n"
        "---\nchannel: {name: ops, webhook: {url: 'https://hooks.example.com/1'}}\n"
    )
    then, now = (load_text(text % lasts, anchor=START) for lasts in ("1m", "4s"))
    lived = Lived(World((one.model for one in then.documents), START), versions(then), until=after(100))
    for second, on in ((1.0, True), (off, False)):
        lived.world.at(after(second), "emit", type="trip", owner="plant-1", payload={"on": on})
    lived.world.at(after(2), "snooze", rule="tripped", owner="plant-1", lasts=timedelta(seconds=8))
    lived.world.run_until(lived.until)
    assert replay(now, lived).replayed_notifications["notify:tripped:ops", "tripped"] == sent


def edited(lived: Lived, edit: Callable[[RecordedEvent], RecordedEvent | None]) -> Lived:
    lived.edit = edit
    return lived


def late(type: str, seconds: float) -> Callable[[RecordedEvent], RecordedEvent | None]:
    """As if it had been concluded later."""

    def edit(event: RecordedEvent) -> RecordedEvent | None:
        is_it = event.type == type and event.rule == "hot"
        return event._replace(recorded_at=event.recorded_at + timedelta(seconds=seconds)) if is_it else event

    return edit


def without_ends(event: RecordedEvent) -> RecordedEvent | None:
    return None if event.type == "alarm-snooze-ended" else event


ENDED = [(1.0, 80.0), (9.9, 50.0)]


def test_where_an_alarm_lived_as_it_did_its_snooze_ended_as_it_did() -> None:
    """The clock may have been a little late, and found the alarm resolved or snoozed again."""
    lived = edited(at_one_instant(hot(), 7, ENDED), without_ends)
    assert replay(hot(), lived).replayed_notifications["woken", "hot"] == 0
    assert replay(hot("clear: value < 40.0"), lived).replayed_notifications["woken", "hot"] == 1


def test_an_end_that_was_recorded_late_is_heard_then() -> None:
    text = HOT % ("severity: high", "info", "info") + (
        "---\naction: {name: ask, steps: [wait: {until_event: 'type == \"trip\"'}, channel: {name: ops, text: x}]}\n"
        "---\naction_rule: {name: asking, on: alarm, transitions: [snooze-ended], action: ask}\n"
    )
    other = load_text(text, anchor=START)
    for seconds, sent in ((1.0, 1), (3.0, 0)):
        lived = at_one_instant(hot(), 7, [(1.0, 80.0)])
        lived.world.log.append(tripped(after(11)))
        found = replay(other, edited(lived, late("alarm-snooze-ended", seconds)))
        assert found.replayed_notifications["asking", "hot"] == sent


def test_a_clock_that_was_away_finds_the_alarm_as_it_is_when_it_is_back() -> None:
    """The snooze was over in second 9, and the clock said so in second 29."""
    lived = at_one_instant(hot("clear: value < 40.0"), 7, [(1.0, 80.0), (20.0, 50.0), (40.0, 30.0)])
    lived = edited(lived, late("alarm-snooze-ended", 20))
    assert replay(hot("clear: value < 40.0"), lived).replayed_notifications["woken", "hot"] == 1
    assert replay(hot("clear: value < 60.0"), lived).replayed_notifications["woken", "hot"] == 0
    assert replay(hot("clear: value < 20.0"), lived).replayed_notifications["woken", "hot"] == 1


def tripped(at: datetime) -> LogEntry:
    world = World((), at)
    world.emit("trip", "plant-1")
    (entry,) = world.log
    return replace(entry, details={**entry.details, "seq": 1_000})


def test_people_act_upon_an_alarm_as_long_as_nobody_knows_that_it_is_over() -> None:
    """It resolved at 1.5 s and was snoozed at 2 s, when no worker had read that; and the clock ended the snooze."""
    arrivals = [(1.0, 80.0), (1.5, 50.0)]
    lived = at_one_instant(hot("clear: value < 40.0"), 7, arrivals)
    resolved = next(
        one.details
        for one in at_one_instant_unsnoozed(arrivals).log
        if one.kind == "event" and one.name == "alarm-resolved" and one.details["rule"] == "hot"
    )
    facts = {**resolved, "seq": 1_000, "recorded_at": after(20)}
    lived.world.log.append(LogEntry(after(1.5), "event", "alarm-resolved", "plant-1", "derived", facts))
    found = replay(hot(), lived)
    assert (found.replayed_notifications["hushed", "hot"], found.replayed_notifications["woken", "hot"]) == (
        1,
        1,
    )
    sooner = replay(hot("clear: value < 60.0, keep_firing_for: 100ms"), lived)
    assert (
        sooner.replayed_notifications["hushed", "hot"],
        sooner.replayed_notifications["woken", "hot"],
    ) == (0, 0)


def at_one_instant_unsnoozed(arrivals: list[tuple[float, float]]) -> World:
    world = World((one.model for one in hot().documents), START)
    for at, value in arrivals:
        world.at(after(at), "arrive", owner="plant-1", key="dsp.a", value=value)
    world.run_until(after(100))
    return world


def test_nothing_ends_beyond_what_is_decided() -> None:
    """Whether the alarm is open then is not known; where nothing changed, what was recorded is."""
    lived = at_one_instant(hot("clear: value < 60.0"), 7, [(1.0, 80.0), (5.0, 50.0)])
    other = hot("clear: value < 40.0")
    for lane, until, ends in (("data", 8.9, 0), ("record", 8.9, 0), ("data", 9.0, 1)):
        lived.horizons = [Horizon(lane, 0, after(until))]
        assert replay(other, lived).replayed_notifications["woken", "hot"] == ends
    same = at_one_instant(hot(), 7, [(1.0, 80.0)])
    same.horizons = [Horizon("data", 0, after(8.9))]
    assert replay(hot(), same).replayed_notifications["woken", "hot"] == 1


@pytest.mark.parametrize(
    "payload", [{}, {"until": None}, {"until": 7}, {"until": "soon"}, {"until": "2026-03-02T08:00:09"}]
)
def test_a_snooze_that_says_no_instant_has_no_end(payload: dict[str, object]) -> None:
    def spoilt(event: RecordedEvent) -> RecordedEvent | None:
        return event._replace(payload=payload) if event.type == "alarm-snoozed" else event

    lived = edited(at_one_instant(hot(), 7, ENDED), spoilt)
    found = replay(hot("clear: value < 40.0"), lived)
    assert (found.replayed_notifications["hushed", "hot"], found.replayed_notifications["woken", "hot"]) == (
        1,
        0,
    )


def test_what_an_action_emits_is_no_act_whatever_it_is_called() -> None:
    def emitted(event: RecordedEvent) -> RecordedEvent | None:
        return event._replace(action="tell") if event.type == "alarm-snoozed" else event

    lived = edited(at_one_instant(hot(), 7, ENDED), emitted)
    sooner = replay(hot("clear: value < 81.0, keep_firing_for: 100ms"), lived)
    assert sooner.replayed_notifications["hushed", "hot"] == 1, "about an alarm that there is"
    assert replay(hot("clear: value < 40.0"), lived).replayed_notifications["woken", "hot"] == 0
    assert replay(hot("where: labels.zone == 'x'"), lived).replayed_notifications["hushed", "hot"] == 0
    asking = load_text(HOT % ("clear: value < 40.0", "info", "info") + BRANCH, anchor=START)
    assert replay(asking, lived).replayed_notifications["asking", "hot"] == 1, "the alarm is not snoozed"

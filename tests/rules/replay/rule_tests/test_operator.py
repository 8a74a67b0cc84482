"""What people do to alarms in virtual time is what it is live: the same events, and a snooze that ends as it does."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from clock.term import begin_term
from rules.alarms.operator import acknowledge, snooze
from rules.alarms.queries import find_alarm
from rules.documents.load import load_text
from rules.replay.rule_tests import World
from schemas.fields import LONGEST_SNOOZE
from tests.clock.alarms import alarm_row, hold_alarm, read_until
from tests.clock.clock_setup import at, drain
from tests.records import events
from tests.rules.replay.rule_tests.worlds import START, logged, minutes, world
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput

HOT = "event_rule: {name: hot, datapoint: a.b, above: 5, notify: [ops]%s}\n"
OPS = "---\nchannel: {name: ops, webhook: {url: 'https://hooks.example.com/1'}, send_resolved: false}\n"
SLOW = HOT % ", keep_firing_for: 10m" + OPS
SNOOZES = ("alarm-snoozed", "alarm-unsnoozed", "alarm-snooze-ended")


def hot(text: str = HOT % "" + OPS, *, cool_at: float | None = None) -> World:
    """The alarm opens in the first minute."""
    found = world(text)
    found.at(minutes(1), "arrive", owner="x", key="a.b", value=9)
    if cool_at is not None:
        found.at(minutes(cool_at), "arrive", owner="x", key="a.b", value=1)
    return found


def snoozed(found: World, minute: float, lasts: float) -> None:
    found.at(minutes(minute), "snooze", rule="hot", owner="x", who="ann", lasts=timedelta(minutes=lasts))


def acts(found: World) -> list[tuple[float, str]]:
    return [(at, name.removeprefix("alarm-")) for at, name, _ in logged(found, "event") if name in SNOOZES]


def pages(found: World) -> list[float]:
    return [at for at, name, _ in logged(found, "step") if name == "notify-ops"]


def test_a_snooze_ends_by_itself_and_the_channels_are_told_again() -> None:
    found = hot()
    snoozed(found, 2, 5)
    found.run_until(minutes(60))
    assert acts(found) == [(2, "snoozed"), (7, "snooze-ended")]
    assert pages(found) == [1, 7]


def test_a_snooze_of_an_alarm_that_has_resolved_ends_in_silence() -> None:
    found = hot(cool_at=6)
    snoozed(found, 2, 5)
    found.run_until(minutes(60))
    assert acts(found) == [(2, "snoozed")]
    assert pages(found) == [1]


def test_a_snooze_does_not_outlive_its_alarm_into_the_next() -> None:
    found = hot(cool_at=4)
    snoozed(found, 2, 5)
    found.at(minutes(5), "arrive", owner="x", key="a.b", value=9)
    found.run_until(minutes(60))
    assert acts(found) == [(2, "snoozed")]
    assert pages(found) == [1, 5]


@pytest.mark.parametrize(("minute", "lasts", "ends"), [(3, 1, 4), (3, 30, 33), (3, 4, 7)])
def test_a_second_snooze_replaces_the_first(minute: float, lasts: float, ends: float) -> None:
    found = hot()
    snoozed(found, 2, 5)
    snoozed(found, minute, lasts)
    found.run_until(minutes(60))
    assert acts(found) == [(2, "snoozed"), (3, "snoozed"), (ends, "snooze-ended")]
    assert pages(found) == [1, ends]


def test_a_snooze_that_is_ended_by_somebody_has_no_other_end() -> None:
    found = hot()
    snoozed(found, 2, 5)
    found.at(minutes(3), "unsnooze", rule="hot", owner="x")
    found.run_until(minutes(60))
    assert acts(found) == [(2, "snoozed"), (3, "unsnoozed")]
    assert pages(found) == [1]


def test_each_snooze_has_an_end_of_its_own() -> None:
    found = hot()
    for minute in (2, 10):
        snoozed(found, minute, 5)
    found.run_until(minutes(60))
    assert acts(found) == [(2, "snoozed"), (7, "snooze-ended"), (10, "snoozed"), (15, "snooze-ended")]
    ids = {one.details["id"] for one in found.log if one.kind == "event"}
    assert len(ids) == len(logged(found, "event"))


def test_at_one_instant_a_sustain_is_over_before_a_snooze_and_a_snooze_before_what_arrives() -> None:
    """In the order of the clock: an alarm that was clear for long enough is resolved, without a second notification."""
    for minute in (2, 6):
        over = hot(SLOW, cool_at=5)
        snoozed(over, minute, 15 - minute)
        over.run_until(minutes(60))
        assert logged(over, "alarm")[-1] == (15, "hot", "resolved")
        assert acts(over) == [(minute, "snoozed")]
    arrives = hot(cool_at=15)
    snoozed(arrives, 2, 13)
    arrives.run_until(minutes(60))
    assert logged(arrives, "alarm")[-1] == (15, "hot", "resolved")
    assert acts(arrives) == [(2, "snoozed"), (15, "snooze-ended")]


def test_a_silence_comes_after_a_snooze_that_ends_with_it() -> None:
    quiet = "datapoint_type: {name: t, key: a.*, interval: 2m}\n---\n"
    found = hot(quiet + HOT % ", no_data: resolve" + OPS)
    snoozed(found, 2, 4)
    found.run_until(minutes(60))
    assert logged(found, "alarm")[-1] == (6, "hot", "resolved")
    assert acts(found) == [(2, "snoozed"), (6, "snooze-ended")]


ESCALATE = """---
action:
  name: escalate
  steps:
    - wait: {for: 3m}
    - branch: {when: alarm.snoozed, else: [{log: {message: 'awake {{ alarm.snoozed }}'}}]}
    - wait: {for: 3m}
    - log: {message: 'snoozed {{ alarm.snoozed }}'}
---
action_rule: {name: each, on: alarm, action: escalate}
"""


@pytest.mark.parametrize(
    ("minute", "lasts", "says"),
    [
        (2, 10, ["snoozed true"]),
        (2, 4, ["snoozed false"]),
        (2, 1, ["awake false", "snoozed false"]),
        (5, 10, ["awake false", "snoozed true"]),
        (2, 2, ["awake false", "snoozed false"]),
    ],
)
def test_conditions_and_texts_know_whether_the_alarm_is_snoozed(
    minute: float, lasts: float, says: list[str]
) -> None:
    found = hot(HOT % "" + OPS + ESCALATE)
    snoozed(found, minute, lasts)
    found.run_until(minutes(60))
    said = [one.details["text"] for one in found.log if one.kind == "step" and "text" in one.details]
    assert [text for text in said if text.startswith(("awake", "snoozed"))] == says


def test_a_snooze_that_somebody_ended_is_no_snooze() -> None:
    found = hot(HOT % "" + OPS + ESCALATE)
    snoozed(found, 2, 10)
    found.at(minutes(3), "unsnooze", rule="hot", owner="x")
    found.run_until(minutes(60))
    assert any(one.details.get("text") == "awake false" for one in found.log)


def test_an_alarm_that_resolves_is_snoozed_until_the_end_all_the_same() -> None:
    """As its row says, live."""
    found = hot(
        HOT % ""
        + OPS
        + "---\naction: {name: tell, steps: [log: {message: 'is {{ alarm.snoozed }}'}, wait: {for: 4m},"
        " log: {message: 'is {{ alarm.snoozed }}'}]}\n"
        "---\naction_rule: {name: each, on: alarm, transitions: [resolved], action: tell}\n",
        cool_at=3,
    )
    snoozed(found, 2, 5)
    found.run_until(minutes(60))
    said = [one for one in found.log if one.name == "tell" and "text" in one.details]
    assert [(one.at, one.details["text"]) for one in said] == [
        (minutes(3), "is true"),
        (minutes(7), "is false"),
    ]


@pytest.mark.parametrize(
    ("transition", "minute", "says"),
    [("snoozed", 2, '"who": "ann"'), ("snooze-ended", 7, '{"snoozed_by": "ann"}')],
)
def test_the_edges_of_a_snooze_start_actions(transition: str, minute: float, says: str) -> None:
    tell = "---\naction: {name: tell, log: {message: '{{ payload }}'}}\n"
    found = hot(
        HOT % ""
        + OPS
        + tell
        + f"---\naction_rule: {{name: each, on: alarm, transitions: [{transition}], action: tell}}\n"
    )
    snoozed(found, 2, 5)
    found.run_until(minutes(60))
    (said,) = [one for one in found.log if (one.kind, one.name) == ("step", "tell")]
    assert said.at == minutes(minute)
    assert says in said.details["text"]


@pytest.mark.parametrize("act", ["acknowledge", "snooze", "unsnooze"])
def test_only_an_open_alarm_can_be_acted_upon(act: str) -> None:
    lasts: dict[str, Any] = {"lasts": timedelta(minutes=5)} if act == "snooze" else {}
    for minute in (0.5, 7):
        found = hot(cool_at=6)
        found.at(minutes(minute), act, rule="hot", owner="x", **lasts)
        with pytest.raises(InvalidInput, match="no alarm of 'hot' is open for 'x' at 2026-03-27T12:0"):
            found.run_until(minutes(60))


@pytest.mark.parametrize("lasts", [timedelta(0), LONGEST_SNOOZE + timedelta(seconds=1)])
def test_a_snooze_is_as_long_as_a_live_one_may_be(lasts: timedelta) -> None:
    found = hot()
    found.at(minutes(2), "snooze", rule="hot", owner="x", lasts=lasts)
    with pytest.raises(InvalidInput, match="is not within the next 366 days"):
        found.run_until(minutes(60))


def test_moving_time_at_once_or_in_steps_is_the_same() -> None:
    at_once, in_steps = hot(), hot()
    for found in (at_once, in_steps):
        snoozed(found, 2, 5)
        found.at(minutes(4), "acknowledge", rule="hot", owner="x")
    at_once.run_until(minutes(30))
    for second in range(0, 1801, 7):
        in_steps.run_until(START + timedelta(seconds=second))
    in_steps.run_until(minutes(30))
    assert in_steps.log == at_once.log


ACTS: list[tuple[float, str, float | None]] = [
    (100, "acknowledge", None),
    (110, "snooze", 200),
    (150, "snooze", 170),
    (180, "snooze", 300),
    (190, "snooze", None),
    (400, "snooze", 500),
]
TOLD = ("type", "origin", "ts", "rule", "owner", "severity", "alarm_id", "payload")


async def test_the_events_are_those_of_the_live_acts_and_of_the_clock(connection: Connection) -> None:
    rule = "event_rule: {name: dsp-hot, datapoint: a.b, above: 5, severity: critical}\n"
    found = World((one.model for one in load_text(rule, anchor=at(0)).documents), at(0))
    found.arrive("plant-7", "a.b", 9)
    (opened,) = found.alarms
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(0).isoformat(),))
    await read_until(connection, at(1000))
    await hold_alarm(connection, "open", alarm=opened.alarm.id)
    await connection.execute(
        "update tocsin.alarm set correlation_id = id, severity = %s", (opened.alarm.severity,)
    )
    term = await begin_term(connection, "test")
    for second, verb, until in ACTS:
        found.run_until(at(second))
        await drain(term, at(second))
        await act_live(connection, opened.alarm.id, verb, at(second), until)
        if verb == "acknowledge":
            found.acknowledge("dsp-hot", "plant-7", "bob")
        elif until is not None:
            found.snooze("dsp-hot", at(until) - at(second), "plant-7", "bob")
        else:
            found.unsnooze("dsp-hot", "plant-7", "bob")
        assert (await alarm_row(connection))["snoozed_until"] == opened.snoozed_until
    found.run_until(at(600))
    await drain(term, at(600))
    live = await events(connection)
    simulated = [one.details for one in found.log if one.kind == "event"][1:]
    assert [tuple(one[name] for name in TOLD) for one in simulated] == [
        tuple(one[name] for name in TOLD) for one in live
    ]
    assert [one["id"] for one in simulated if one["origin"] == "derived"] == [
        str(one["id"]) for one in live if one["origin"] == "derived"
    ]
    assert [one["type"] for one in live].count("alarm-snooze-ended") == 2


async def act_live(
    connection: Connection, alarm_id: Any, verb: str, now: datetime, until: float | None
) -> None:
    actor = Actor("bob", "test", now)
    alarm = await find_alarm(connection, str(alarm_id))
    if verb == "acknowledge":
        await acknowledge(connection, alarm, actor)
    else:
        await snooze(connection, alarm, actor, None if until is None else at(until))

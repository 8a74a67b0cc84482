"""Operators in a rule test have the effects that they have live: the same events, the same ends of snoozes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from clock.term import begin_term
from rules.alarms.operator import acknowledge, snooze
from rules.alarms.queries import find_alarm
from rules.replay.rule_tests import World
from schemas.fields import MAX_SNOOZE
from tests.clock.alarms import alarm_row, hold_alarm, read_until
from tests.clock.clock_setup import at, drain
from tests.records import events
from tests.rules.replay.rule_tests.worlds import START, logged, minutes, simulate
from tocsin.core.audit import Actor
from tocsin.core.db import Connection
from tocsin.core.errors import InvalidInput

HOT = "event_rule: {name: hot, datapoint: a.b, above: 5, notify: [ops]%s}\n"
OPS = "---\nchannel: {name: ops, webhook: {url: 'https://hooks.example.com/1'}, send_resolved: false}\n"
SLOW = HOT % ", keep_firing_for: 10m" + OPS
SNOOZES = ("alarm-snoozed", "alarm-unsnoozed", "alarm-snooze-ended")


def hot(text: str = HOT % "" + OPS, *, cool_at: float | None = None) -> World:
    """A simulation in which the alarm opens in the first minute."""
    world = simulate(text)
    world.at(minutes(1), "arrive", owner="x", key="a.b", value=9)
    if cool_at is not None:
        world.at(minutes(cool_at), "arrive", owner="x", key="a.b", value=1)
    return world


def snooze_at(world: World, minute: float, lasts: float) -> None:
    world.at(minutes(minute), "snooze", rule="hot", owner="x", who="ann", lasts=timedelta(minutes=lasts))


def snooze_events(world: World) -> list[tuple[float, str]]:
    return [(at, name.removeprefix("alarm-")) for at, name, _ in logged(world, "event") if name in SNOOZES]


def notified_at(world: World) -> list[float]:
    return [at for at, name, state in logged(world, "step") if (name, state) == ("notify-ops", "completed")]


def test_a_snooze_ends_by_itself_and_the_channels_are_notified_again() -> None:
    world = hot()
    snooze_at(world, 2, 5)
    world.run_until(minutes(60))
    assert snooze_events(world) == [(2, "snoozed"), (7, "snooze-ended")]
    assert notified_at(world) == [1, 7]


def test_a_snooze_of_an_alarm_that_has_resolved_ends_without_a_notification() -> None:
    world = hot(cool_at=6)
    snooze_at(world, 2, 5)
    world.run_until(minutes(60))
    assert snooze_events(world) == [(2, "snoozed")]
    assert notified_at(world) == [1]


def test_a_snooze_does_not_apply_to_the_next_alarm() -> None:
    world = hot(cool_at=4)
    snooze_at(world, 2, 5)
    world.at(minutes(5), "arrive", owner="x", key="a.b", value=9)
    world.run_until(minutes(60))
    assert snooze_events(world) == [(2, "snoozed")]
    assert notified_at(world) == [1, 5]


@pytest.mark.parametrize(("minute", "lasts", "ends"), [(3, 1, 4), (3, 30, 33), (3, 4, 7)])
def test_a_second_snooze_replaces_the_first(minute: float, lasts: float, ends: float) -> None:
    world = hot()
    snooze_at(world, 2, 5)
    snooze_at(world, minute, lasts)
    world.run_until(minutes(60))
    assert snooze_events(world) == [(2, "snoozed"), (3, "snoozed"), (ends, "snooze-ended")]
    assert notified_at(world) == [1, ends]


def test_a_snooze_that_an_operator_ended_has_no_other_end() -> None:
    world = hot()
    snooze_at(world, 2, 5)
    world.at(minutes(3), "unsnooze", rule="hot", owner="x")
    world.run_until(minutes(60))
    assert snooze_events(world) == [(2, "snoozed"), (3, "unsnoozed")]
    assert notified_at(world) == [1, 3], "it is still open when the snooze ends"


def test_each_snooze_has_an_end_of_its_own() -> None:
    world = hot()
    for minute in (2, 10):
        snooze_at(world, minute, 5)
    world.run_until(minutes(60))
    assert snooze_events(world) == [
        (2, "snoozed"),
        (7, "snooze-ended"),
        (10, "snoozed"),
        (15, "snooze-ended"),
    ]
    ids = {entry.details["id"] for entry in world.log if entry.kind == "event"}
    assert len(ids) == len(logged(world, "event"))


def test_at_one_instant_a_snooze_ends_before_what_arrives_and_before_a_sustain() -> None:
    """As live: the clock ends a snooze at once, and a sustain when the lane has read beyond it."""
    for minute in (2, 6):
        over = hot(SLOW, cool_at=5)
        snooze_at(over, minute, 15 - minute)
        over.run_until(minutes(60))
        assert logged(over, "alarm")[-1] == (15, "hot", "resolved")
        assert snooze_events(over) == [(minute, "snoozed"), (15, "snooze-ended")]
    arrives = hot(cool_at=15)
    snooze_at(arrives, 2, 13)
    arrives.run_until(minutes(60))
    assert logged(arrives, "alarm")[-1] == (15, "hot", "resolved")
    assert snooze_events(arrives) == [(2, "snoozed"), (15, "snooze-ended")]


def test_a_snooze_ends_before_a_series_becomes_stale_at_the_same_instant() -> None:
    quiet = "datapoint_type: {name: t, key: a.*, interval: 2m}\n---\n"
    world = hot(quiet + HOT % ", no_data: resolve" + OPS)
    snooze_at(world, 2, 4)
    world.run_until(minutes(60))
    assert logged(world, "alarm")[-1] == (6, "hot", "resolved")
    assert snooze_events(world) == [(2, "snoozed"), (6, "snooze-ended")]


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
        (2, 10, ["awake false", "snoozed false"]),
        (2, 4, ["awake false", "snoozed false"]),
        (2, 1, ["awake false", "snoozed false"]),
        (5, 10, ["awake false", "snoozed false"]),
        (2, 2, ["awake false", "snoozed false"]),
    ],
)
def test_a_snooze_holds_the_steps_of_its_runs_until_it_ends(
    minute: float, lasts: float, says: list[str]
) -> None:
    world = hot(HOT % "" + OPS + ESCALATE)
    snooze_at(world, minute, lasts)
    world.run_until(minutes(60))
    texts = [entry.details["text"] for entry in world.log if entry.kind == "step" and "text" in entry.details]
    assert [text for text in texts if text.startswith(("awake", "snoozed"))] == says


def test_an_alarm_that_was_unsnoozed_is_not_snoozed() -> None:
    world = hot(HOT % "" + OPS + ESCALATE)
    snooze_at(world, 2, 10)
    world.at(minutes(3), "unsnooze", rule="hot", owner="x")
    world.run_until(minutes(60))
    assert any(entry.details.get("text") == "awake false" for entry in world.log)


def test_an_alarm_that_resolves_stays_snoozed_until_the_end() -> None:
    """Live, its row says the same."""
    world = hot(
        HOT % ""
        + OPS
        + "---\naction: {name: tell, steps: [log: {message: 'is {{ alarm.snoozed }}'}, wait: {for: 4m},"
        " log: {message: 'is {{ alarm.snoozed }}'}]}\n"
        "---\naction_rule: {name: each, on: alarm, transitions: [resolved], action: tell}\n",
        cool_at=3,
    )
    snooze_at(world, 2, 5)
    world.run_until(minutes(60))
    entries = [entry for entry in world.log if entry.name == "tell" and "text" in entry.details]
    assert [(entry.at, entry.details["text"]) for entry in entries] == [
        (minutes(3), "is true"),
        (minutes(7), "is false"),
    ]


@pytest.mark.parametrize(
    ("transition", "minute", "says"),
    [("snoozed", 2, '"who": "ann"'), ("snooze-ended", 7, '"snoozed_by": "ann"')],
)
def test_the_transitions_of_a_snooze_start_actions(transition: str, minute: float, says: str) -> None:
    tell = "---\naction: {name: tell, log: {message: '{{ payload }}'}}\n"
    world = hot(
        HOT % ""
        + OPS
        + tell
        + f"---\naction_rule: {{name: each, on: alarm, transitions: [{transition}], action: tell}}\n"
    )
    snooze_at(world, 2, 5)
    world.run_until(minutes(60))
    (step,) = [entry for entry in world.log if (entry.kind, entry.name) == ("step", "tell")]
    assert step.at == minutes(minute)
    assert says in step.details["text"]


@pytest.mark.parametrize("operation", ["acknowledge", "snooze", "unsnooze"])
def test_operators_can_act_only_on_an_open_alarm(operation: str) -> None:
    lasts: dict[str, Any] = {"lasts": timedelta(minutes=5)} if operation == "snooze" else {}
    for minute in (0.5, 7):
        world = hot(cool_at=6)
        world.at(minutes(minute), operation, rule="hot", owner="x", **lasts)
        with pytest.raises(InvalidInput, match="no alarm of 'hot' is open for 'x' at 2026-03-27T12:0"):
            world.run_until(minutes(60))


@pytest.mark.parametrize("lasts", [timedelta(0), MAX_SNOOZE + timedelta(seconds=1)])
def test_a_snooze_has_the_same_limit_as_a_live_one(lasts: timedelta) -> None:
    world = hot()
    world.at(minutes(2), "snooze", rule="hot", owner="x", lasts=lasts)
    with pytest.raises(InvalidInput, match="is not within the next 366 days"):
        world.run_until(minutes(60))


def test_the_log_does_not_depend_on_the_steps_of_time() -> None:
    at_once, in_steps = hot(), hot()
    for world in (at_once, in_steps):
        snooze_at(world, 2, 5)
        world.at(minutes(4), "acknowledge", rule="hot", owner="x")
    at_once.run_until(minutes(30))
    for second in range(0, 1801, 7):
        in_steps.run_until(START + timedelta(seconds=second))
    in_steps.run_until(minutes(30))
    assert in_steps.log == at_once.log


OPERATIONS: list[tuple[float, str, float | None]] = [
    (100, "acknowledge", None),
    (110, "snooze", 200),
    (150, "snooze", 170),
    (180, "snooze", 300),
    (190, "snooze", None),
    (400, "snooze", 500),
]
COMPARED = ("type", "origin", "ts", "rule", "owner", "severity", "alarm_id", "payload")


async def test_the_events_are_those_of_live_operators_and_of_the_clock(connection: Connection) -> None:
    rule = "event_rule: {name: dsp-hot, datapoint: a.b, above: 5, severity: critical}\n"
    world = simulate(rule, at(0))
    world.arrive("plant-7", "a.b", 9)
    (opened,) = world.alarms
    await connection.execute("select set_config('tocsin.now', %s, false)", (at(0).isoformat(),))
    await read_until(connection, at(1000))
    await hold_alarm(connection, "open", alarm=opened.alarm.id)
    await connection.execute(
        "update tocsin.alarm set correlation_id = id, severity = %s, payload = %s",
        (opened.alarm.severity, Jsonb(opened.alarm.payload)),
    )
    term = await begin_term(connection, "test")
    for second, verb, until in OPERATIONS:
        world.run_until(at(second))
        await drain(term, at(second))
        await operate_live(connection, opened.alarm.id, verb, at(second), until)
        if verb == "acknowledge":
            world.acknowledge("dsp-hot", "plant-7", "bob")
        elif until is not None:
            world.snooze("dsp-hot", at(until) - at(second), "plant-7", "bob")
        else:
            world.unsnooze("dsp-hot", "plant-7", "bob")
        assert (await alarm_row(connection))["snoozed_until"] == opened.snoozed_until
    world.run_until(at(600))
    await drain(term, at(600))
    live = await events(connection)
    simulated = [entry.details for entry in world.log if entry.kind == "event"][1:]
    assert [tuple(event[name] for name in COMPARED) for event in simulated] == [
        tuple(event[name] for name in COMPARED) for event in live
    ]
    assert [event["id"] for event in simulated if event["origin"] == "derived"] == [
        str(event["id"]) for event in live if event["origin"] == "derived"
    ]
    assert [event["type"] for event in live].count("alarm-snooze-ended") == 2


async def operate_live(
    connection: Connection, alarm_id: Any, verb: str, now: datetime, until: float | None
) -> None:
    actor = Actor("bob", "test", now)
    alarm = await find_alarm(connection, str(alarm_id))
    if verb == "acknowledge":
        await acknowledge(connection, alarm, actor)
    else:
        await snooze(connection, alarm, actor, None if until is None else at(until))

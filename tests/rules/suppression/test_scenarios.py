"""Suppression in virtual time: what is held, what is sent when it ends, and what is never sent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.replay.rule_tests import World
from tests.rules.replay.rule_tests.worlds import give, minutes, simulate
from tocsin.core.errors import InvalidInput

HOT = "event_rule: {name: hot, datapoint: temp, above: 65, notify: [ops]}\n"
OPS = "---\nchannel: {name: ops, webhook: {url: 'https://example.org/x'}}\n"
ESCALATION = """---
action:
  name: page
  steps:
    - wait: {for: 10m}
    - channel: {name: ops, text: "page about {{ owner }}"}
---
action_rule: {name: escalate, on: alarm, action: page}
"""


def sent(world: World) -> list[tuple[float, str]]:
    """(minute, owner) of each message."""
    return [
        ((entry.at - world.start).total_seconds() / 60, entry.owner)
        for entry in world.log
        if entry.kind == "step"
        and entry.state == "completed"
        and entry.details["step_kind"] in ("notify", "channel")
    ]


def silence(world: World, at: float, lasts: float, where: str = "true") -> None:
    world.at(minutes(at), "silence", where=where, lasts=timedelta(minutes=lasts), reason="planned", who="ann")


def test_an_alarm_that_opens_and_resolves_inside_a_silence_is_never_mentioned() -> None:
    world = simulate(HOT + OPS)
    silence(world, 0, 60)
    give(world, (5, "p1", 70), (30, "p1", 60), (70, "p1", 60))
    world.run_until(minutes(120))
    assert sent(world) == []


def test_what_is_open_at_the_end_of_a_silence_is_notified_once() -> None:
    world = simulate(HOT + OPS)
    silence(world, 0, 60)
    give(world, (5, "p1", 70), (10, "p2", 70), (20, "p2", 60))
    world.run_until(minutes(300))
    assert sent(world) == [(60, "p1")]


def test_what_was_notified_before_a_silence_is_notified_again_when_it_ends() -> None:
    world = simulate(HOT + OPS)
    silence(world, 10, 60)
    give(world, (5, "p1", 70))
    world.run_until(minutes(300))
    assert sent(world) == [(5, "p1"), (70, "p1")]


def test_a_resolution_inside_a_silence_reaches_the_channel_that_knows_the_alarm() -> None:
    world = simulate(HOT + OPS)
    silence(world, 10, 60)
    give(world, (5, "p1", 70), (20, "p1", 60))
    world.run_until(minutes(300))
    assert sent(world) == [(5, "p1"), (20, "p1")]


def test_overlapping_silences_hold_until_the_last_one_ends() -> None:
    world = simulate(HOT + OPS)
    silence(world, 0, 60)
    silence(world, 30, 90, 'rule == "hot"')
    give(world, (5, "p1", 70))
    world.run_until(minutes(300))
    assert sent(world) == [(120, "p1")]


def test_a_snooze_inside_a_silence_holds_until_both_have_ended() -> None:
    world = simulate(HOT + OPS)
    silence(world, 0, 60)
    give(world, (5, "p1", 70))
    world.at(minutes(10), "snooze", rule="hot", lasts=timedelta(minutes=100), owner="p1")
    world.run_until(minutes(300))
    assert sent(world) == [(110, "p1")]


def test_a_silence_holds_an_escalation_and_its_wait_goes_on() -> None:
    """The wait of the runbook passes, the page is held until the silence ends."""
    world = simulate(HOT.replace(", notify: [ops]", "") + ESCALATION + OPS)
    silence(world, 5, 60)
    give(world, (0, "p1", 70), (6, "p2", 70), (50, "p2", 60))
    world.run_until(minutes(300))
    assert sent(world) == [(65, "p1")]


def test_a_snooze_holds_an_escalation() -> None:
    """`tocsin snooze ID 2h` at 5m used to page at 10m."""
    world = simulate(HOT.replace(", notify: [ops]", "") + ESCALATION + OPS)
    give(world, (0, "p1", 70))
    world.at(minutes(5), "snooze", rule="hot", lasts=timedelta(hours=2), owner="p1")
    world.run_until(minutes(300))
    assert sent(world) == [(125, "p1")]


def test_a_group_notifies_about_its_other_alarms() -> None:
    text = (
        "event_rule: {name: hot, datapoint: temp, above: 65}\n---\n"
        "action_rule: {name: page, on: alarm, notify: [ops], group_by: [rule], group_wait: 30s}\n"
    )
    world = simulate(text + OPS)
    silence(world, 0, 60, 'owner == "p1"')
    give(world, (5, "p1", 70), (5, "p2", 70))
    world.run_until(minutes(55))
    (message,) = [entry for entry in world.log if entry.kind == "step" and entry.state == "completed"]
    assert "p2" in str(message.details)
    assert "p1" not in str(message.details.get("text", ""))
    world.run_until(minutes(70))
    assert [minute for minute, _ in sent(world)] == [5.5, 60]


def test_a_site_that_is_switched_off_is_planned_also_for_stale_alarms() -> None:
    text = "datapoint_type: {name: temp, key: temp, interval: 1m, on_stale: alarm, notify: [ops]}\n"
    world = simulate(text + OPS)
    silence(world, 0, 60, 'rule == "stale:temp" && labels.site == "ams"')
    give(world, (1, "p1", 20), (50, "p1", 20), site="ams")
    give(world, (1, "p2", 20), (50, "p2", 20), site="fra")
    world.run_until(minutes(45))
    assert {owner for _, owner in sent(world)} == {"p2"}
    world.run_until(minutes(90))
    assert (60, "p1") in sent(world), "stale again since 50m, and open at the end of the silence"


def test_an_acknowledged_alarm_still_inhibits() -> None:
    text = (
        "event_rule: {name: switch, datapoint: sw, above: 0, notify: [ops]}\n---\n"
        + HOT
        + "---\ninhibit: {name: i, source: 'rule == \"switch\"', target: 'rule == \"hot\"'}\n"
        + OPS
    )
    world = simulate(text)
    give(world, (1, "s", 1), (60, "s", 0), key="sw")
    give(world, (5, "p1", 70))
    world.at(minutes(2), "acknowledge", rule="switch", owner="s")
    world.run_until(minutes(120))
    assert sent(world) == [(1, "s"), (60, "s"), (60, "p1")]


def test_two_sources_inhibit_until_the_last_has_resolved() -> None:
    text = (
        "event_rule: {name: switch, datapoint: sw, above: 0}\n---\n"
        + HOT
        + "---\ninhibit: {name: i, source: 'rule == \"switch\"', target: 'rule == \"hot\"'}\n"
        + OPS
    )
    world = simulate(text)
    give(world, (1, "s1", 1), (2, "s2", 1), (30, "s1", 0), (60, "s2", 0), key="sw")
    give(world, (5, "p1", 70))
    world.run_until(minutes(120))
    assert sent(world) == [(60, "p1")]


def test_a_maintenance_repeats_its_windows() -> None:
    """Every day from 13:00 to 14:00; the test begins at 12:00."""
    window = "---\nmaintenance: {name: m, where: 'true', cron: '0 13 * * *', duration: 1h}\n"
    world = simulate(HOT + OPS + window)
    day = 24 * 60
    give(
        world,
        *((begin + minute, "p1", value) for begin in (0, day) for minute, value in ((70, 70), (90, 60))),
    )
    give(world, (150, "p1", 70), (160, "p1", 60))
    world.run_until(minutes(2 * day))
    assert sent(world) == [(150, "p1"), (160, "p1")]


def test_expiring_what_is_not_active_is_an_error_of_the_test() -> None:
    world = simulate(HOT + OPS)
    world.at(minutes(1), "expire", where="true")
    with pytest.raises(InvalidInput, match="no silence with the matcher 'true'"):
        world.run_until(minutes(2))


_OWNERS = ("p1", "p2", "p3")
_MATCHERS = ("true", *(f'owner == "{owner}"' for owner in _OWNERS), 'rule == "hot"')


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 200), st.sampled_from(_OWNERS), st.booleans()), max_size=20),
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 120), st.sampled_from(_MATCHERS)), max_size=5),
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 120), st.sampled_from(_OWNERS)), max_size=3),
)
def test_nothing_is_sent_about_a_suppressed_alarm_and_everything_else_is(
    values: list[tuple[int, str, bool]],
    silences: list[tuple[int, int, str]],
    snoozes: list[tuple[int, int, str]],
) -> None:
    """I8 for one channel: the receiver knows every open alarm that is not suppressed, and no message
    but a resolution is about a suppressed one."""
    world = simulate(HOT + OPS)
    for at, lasts, matcher in silences:
        silence(world, at, lasts, matcher)
    give(world, *((at + 0.25, owner, 70.0 if hot else 60.0) for at, owner, hot in sorted(values)))
    for at, lasts, owner in sorted(snoozes):
        world.run_until(minutes(at + 0.5))
        if world.alarms.find_open("hot", owner):
            world.snooze("hot", timedelta(minutes=lasts), owner)
    world.run_until(minutes(400))
    open_owners = {record.alarm.owner for record in world.alarms if record.state == "open"}
    assert open_owners <= {owner for _, owner in sent(world)}
    _check_messages(world, silences)


def _check_messages(world: World, silences: list[tuple[int, int, str]]) -> None:
    for entry in world.log:
        if entry.kind != "step" or entry.state != "completed":
            continue
        is_open = any(
            record.alarm.owner == entry.owner and record.is_open(entry.at) for record in world.alarms
        )
        muted = [
            matcher
            for at, lasts, matcher in silences
            if minutes(at) <= entry.at < minutes(at + lasts)
            and (f'"{entry.owner}"' in matcher or "owner" not in matcher)
        ]
        assert not (is_open and muted), (entry.at, entry.owner, muted)

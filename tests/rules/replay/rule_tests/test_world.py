"""A world in virtual time does what production does: schedules, alarms, actions, limits, waits, in order."""

from __future__ import annotations

from datetime import timedelta

from tests.rules.replay.rule_tests.worlds import START, logged, minutes, world
from timers.identity import spread_of

TELL = "---\naction: {name: tell, log: {message: '{{ type }} {{ owner }}'}}\n"


def rule(when: str, extra: str = "", on: str = "event") -> str:
    return f"---\naction_rule:\n  name: each\n  on: {on}\n  when: '{when}'\n  action: tell\n{extra}"


def test_a_digest_at_eight_stays_at_eight_when_the_clocks_change() -> None:
    found = world(
        "schedule: {name: digest, cron: '0 8 * * *', tz: Europe/London, action: sum-up}\n"
        "---\naction: {name: sum-up, digest: {queries: [open_alarms]}}\n"
    )
    found.run_until(START + timedelta(days=3))
    fired = [one.details["ts"].isoformat() for one in found.log if one.name == "schedule-fired"]
    assert fired == ["2026-03-28T08:00:00+00:00", "2026-03-29T07:00:00+00:00", "2026-03-30T07:00:00+00:00"]
    said = [one.details["subject"] for one in found.log if one.kind == "step"]
    assert said == ["open alarms: 0"] * 3


def test_a_digest_counts_the_events_since_the_one_before() -> None:
    found = world(
        "schedule: {name: digest, every: 30m, type: digest-due, action: sum-up}\n"
        "---\naction: {name: sum-up, digest: {queries: [events], channel: ops}}\n"
        "---\nchannel: {name: ops, webhook: {url: 'https://hooks.example.com/1'}}\n"
    )
    for minute in (1, 2, 31):
        found.at(minutes(minute), "emit", type="trip", owner="x")
    found.run_until(minutes(60))
    counted = [one.details["subject"] for one in found.log if one.kind == "step"]
    assert counted == ["events: 3", "events: 2"], "itself among them"


def test_a_digest_lists_what_is_open_and_stale() -> None:
    found = world(
        "datapoint_type: {name: t, key: a.*, interval: 1m}\n---\n"
        "event_rule: {name: hot, datapoint: a.b, above: 5, severity: high}\n---\n"
        "schedule: {name: digest, every: 30m, action: sum-up}\n---\naction: {name: sum-up, digest: {}}\n"
    )
    found.at(minutes(1), "arrive", owner="x", key="a.b", value=9)
    found.run_until(minutes(30))
    (said,) = [one.details["text"] for one in found.log if one.kind == "step"]
    assert "[HIGH] hot (x) since" in said
    assert "a.b (x) since" in said


def test_events_start_actions_and_an_event_that_is_no_match_does_not() -> None:
    found = world(TELL + rule('type == "noted" && owner != "b"'))
    for owner in ("a", "b"):
        found.at(minutes(1), "emit", type="noted", owner=owner)
    found.run_until(minutes(2))
    assert [one.details["text"] for one in found.log if one.kind == "step"] == ["noted a"]


def test_limits_and_overlaps_are_those_of_production() -> None:
    found = world(TELL + rule("true", "  rate_limit: {count: 1, per: 10m}\n"))
    for minute in (1, 2, 11):
        found.at(minutes(minute), "emit", type="noted")
    found.run_until(minutes(20))
    assert logged(found, "run") == [
        (1, "tell", "running"),
        (1, "tell", "completed"),
        (2, "tell", "skipped"),
        (11, "tell", "running"),
        (11, "tell", "completed"),
    ]


def test_a_group_says_everything_at_once() -> None:
    many = "---\naction: {name: tell, log: {message: '{{ events | length }} events'}}\n"
    found = world(many + rule("true", "  group_by: [owner]\n  group_wait: 5m\n"))
    for minute in (1, 2, 3):
        found.at(minutes(minute), "emit", type="noted", owner="a")
    found.run_until(minutes(20))
    assert [(one.at, one.details["text"]) for one in found.log if one.kind == "step"] == [
        (minutes(6), "3 events")
    ]


def test_queued_runs_take_turns() -> None:
    slow = (
        "---\naction:\n  name: tell\n  steps:\n    - wait: {for: 10m}\n    - log: {message: done}\n"
        + rule("true", "  overlap: queue\n")
    )
    found = world(slow)
    for minute in (0, 1):
        found.at(minutes(minute), "emit", type="noted")
    found.run_until(minutes(60))
    assert [minute for minute, _, state in logged(found, "run") if state == "completed"] == [10, 20]


def test_a_step_that_fails_is_tried_again_and_then_is_dead() -> None:
    retried = (
        "---\naction:\n  name: tell\n  publish: {subject: a.b}\n"
        "  retry: {attempts: 3, initial_interval: 1m, jitter: 0}\n" + rule("true")
    )
    found = world(retried)
    found.fail("tell", times=2)
    found.at(minutes(0), "emit", type="noted")
    found.run_until(minutes(30))
    assert logged(found, "step") == [(0, "tell", "failed"), (1, "tell", "failed"), (3, "tell", "completed")]
    dead = world(retried)
    dead.fail("tell", times=9)
    dead.at(minutes(0), "emit", type="noted")
    dead.run_until(minutes(30))
    assert logged(dead, "run")[-1] == (3, "tell", "failed")


def test_a_wait_for_an_event_ends_with_it() -> None:
    waiting = (
        "---\naction:\n  name: tell\n  steps:\n"
        "    - wait:\n        until_event: 'type == \"answered\" && owner == trigger.owner'\n"
        "        timeout: 30m\n        on_timeout: continue\n"
        "    - log: {message: met}\n" + rule('type == "asked"')
    )
    found = world(waiting)
    found.at(minutes(0), "emit", type="asked", owner="a")
    found.at(minutes(3), "emit", type="answered", owner="b")
    found.at(minutes(5), "emit", type="answered", owner="a")
    found.run_until(minutes(60))
    assert [one.at for one in found.log if one.details.get("text") == "met"] == [minutes(5)]


def test_what_starts_itself_is_suppressed_and_said() -> None:
    loop = "---\naction: {name: tell, emit: {type: noted, owner: ''}}\n" + rule('type == "noted"')
    found = world(loop)
    found.at(minutes(0), "emit", type="noted")
    found.run_until(minutes(1))
    assert [state for _, _, state in logged(found, "run")] == ["running", "completed", "skipped"]


def test_moving_time_at_once_or_in_steps_is_the_same() -> None:
    text = (
        "datapoint_type: {name: t, key: a.*, interval: 1m}\n---\n"
        "event_rule: {name: hot, datapoint: a.b, above: 5, for: 3m, no_data: resolve}\n"
        + TELL
        + rule("true", on="alarm")
    )
    at_once, in_steps = world(text), world(text)
    for found in (at_once, in_steps):
        for minute in range(8):
            found.at(minutes(minute), "arrive", owner="x", key="a.b", value=9)
    at_once.run_until(minutes(30))
    for second in range(0, 1801, 7):
        in_steps.run_until(START + timedelta(seconds=second))
    in_steps.run_until(minutes(30))
    assert in_steps.log == at_once.log
    assert logged(at_once, "alarm") == [(3, "hot", "opened"), (9.5, "hot", "resolved")]


def test_a_series_is_stale_once_and_fresh_again_however_often_it_spoke_at_one_instant() -> None:
    found = world(
        "datapoint_type: {name: t, key: a.*, interval: 1m}\n---\n"
        "event_rule: {name: quiet, datapoint: a.b, absent: true}\n"
    )
    for minute, value in ((1, 1), (1, 2), (10, 3), (11, 4)):
        found.at(minutes(minute), "arrive", owner="x", key="a.b", value=value)
    found.run_until(minutes(12))
    assert logged(found, "stale") == [(3.5, "a.b", "stale")]
    assert logged(found, "fresh") == [(10, "a.b", "fresh")]
    assert logged(found, "alarm") == [(3.5, "quiet", "opened"), (10, "quiet", "resolved")]


def test_what_arrives_at_the_very_deadline_comes_after_it() -> None:
    """As live, where the clock may be first: it is stale and fresh again; what is due opens before it is cleared."""
    found = world(
        "datapoint_type: {name: t, key: a.*, interval: 1m}\n---\n"
        "event_rule: {name: hot, datapoint: a.b, above: 5, for: 150s}\n"
    )
    for minute, value in ((1, 9), (3.5, 1)):
        found.at(minutes(minute), "arrive", owner="x", key="a.b", value=value)
    found.run_until(minutes(4))
    assert [one[0] for one in logged(found, "stale") + logged(found, "fresh")] == [3.5, 3.5]
    assert logged(found, "alarm") == [(3.5, "hot", "opened"), (3.5, "hot", "resolved")]


def test_a_queued_run_that_is_cancelled_lets_nobody_in_before_the_turn() -> None:
    found = world(
        "event_rule: {name: hot, datapoint: a.b, above: 5}\n---\n"
        "action: {name: tell, steps: [wait: {for: 10m}, log: {message: '{{ owner }}'}]}\n"
        + rule("severity >= info", "  overlap: queue\n", on="alarm")
    )
    for minute, owner, value in ((1, "x", 9), (2, "y", 9), (3, "z", 9), (4, "y", 1)):
        found.at(minutes(minute), "arrive", owner=owner, key="a.b", value=value)
    found.run_until(minutes(60))
    runs = [(at, state) for at, _, state in logged(found, "run")]
    assert (4, "cancelled") in runs
    said = [
        (one.at, one.details["text"]) for one in found.log if one.kind == "step" and "text" in one.details
    ]
    assert said == [(minutes(11), "x"), (minutes(21), "z")]


def test_a_notification_that_is_tried_again_is_sent_although_its_alarm_has_resolved() -> None:
    found = world(
        "channel: {name: ops, webhook: {url: 'https://hooks.example.com/1'}}\n---\n"
        "event_rule: {name: hot, datapoint: a.b, above: 5, notify: [ops]}\n"
    )
    found.fail("notify-ops")
    for second, value in ((0, 9), (1, 1)):
        found.at(START + timedelta(seconds=second), "arrive", owner="x", key="a.b", value=value)
    found.run_until(minutes(60))
    assert [state for _, _, state in logged(found, "run")] == ["running", "running", "completed", "completed"]
    attempts = [(one.details["attempt"], one.state) for one in found.log if one.kind == "step"]
    assert attempts == [(1, "failed"), (1, "completed"), (2, "completed")]


def test_what_the_end_of_an_alarm_starts_is_not_cancelled_by_it() -> None:
    found = world(
        "event_rule: {name: hot, datapoint: a.b, above: 5}\n---\n"
        "action: {name: tell, steps: [wait: {for: 10m}, log: {message: over}]}\n"
        + rule("severity >= info", "  transitions: [resolved]\n", on="alarm")
    )
    for minute, value in ((1, 9), (2, 1)):
        found.at(minutes(minute), "arrive", owner="x", key="a.b", value=value)
    found.run_until(minutes(60))
    assert logged(found, "run") == [(2, "tell", "running"), (12, "tell", "completed")]


def test_the_end_of_a_wait_that_was_met_wakes_nobody() -> None:
    found = world(
        "action: {name: tell, steps: [wait: {until_event: 'type == \"ok\"', timeout: 10m, on_timeout: stop},"
        " wait: {for: 1h}, log: {message: done}]}\n" + rule('type == "noted"')
    )
    found.at(minutes(0), "emit", type="noted")
    found.at(minutes(5), "emit", type="ok")
    found.run_until(minutes(120))
    assert logged(found, "run") == [(0, "tell", "running"), (65, "tell", "completed")]


def test_a_run_that_is_cancelled_at_its_first_instant_says_nothing() -> None:
    found = world(
        TELL
        + "---\nevent_rule: {name: hot, datapoint: a.b, above: 5}\n"
        + rule("severity >= info", on="alarm")
    )
    for value in (9, 1):
        found.at(minutes(1), "arrive", owner="x", key="a.b", value=value)
    found.run_until(minutes(2))
    assert [state for _, _, state in logged(found, "run")] == ["running", "cancelled"]
    assert logged(found, "step") == []


def test_a_schedule_is_delayed_by_its_spread_and_stays_for_its_nominal_time() -> None:
    found = world("schedule: {name: beat, every: 10m, spread: 5m}\n")
    found.run_until(minutes(19))
    delay = spread_of("", "beat", timedelta(minutes=5))
    assert timedelta(0) < delay < timedelta(minutes=5)
    (fired,) = [one for one in found.log if one.kind == "event" and one.at == minutes(10)]
    assert fired.details["recorded_at"] == minutes(10) + delay


def test_an_alarm_is_acknowledged_once() -> None:
    found = world("event_rule: {name: hot, datapoint: a.b, above: 5}\n")
    found.at(minutes(1), "arrive", owner="x", key="a.b", value=9)
    for minute in (2, 3):
        found.at(minutes(minute), "acknowledge", rule="hot", owner="x")
    found.run_until(minutes(4))
    assert [at for at, name, _ in logged(found, "event") if name == "alarm-acknowledged"] == [2]


def test_a_digest_at_the_end_of_a_runbook_is_about_what_was_before_it_began() -> None:
    found = world(
        "action: {name: tell, steps: [wait: {for: 10m}, digest: {queries: [events]}]}\n"
        + rule('type == "noted"')
    )
    found.at(minutes(1), "emit", type="noted")
    found.at(minutes(5), "emit", type="trip")
    found.run_until(minutes(20))
    said = [one.details["subject"] for one in found.log if one.kind == "step" and "subject" in one.details]
    assert said == ["events: 1"]


def test_only_what_reaches_the_world_fails() -> None:
    found = world(
        "action: {name: tell, steps: [wait: {for: 10m}, log: {message: done}]}\n" + rule('type == "noted"')
    )
    found.fail("tell")
    found.at(minutes(0), "emit", type="noted")
    found.run_until(minutes(60))
    steps = [(one.details["step_kind"], one.state) for one in found.log if one.kind == "step"]
    assert ("wait", "failed") not in steps
    assert [state for kind, state in steps if kind == "log"] == ["failed", "completed"]


def test_an_alarm_over_events_keeps_the_correlation_of_its_event_through_its_sustain() -> None:
    found = world("event_rule: {name: tripped, event: trip, fire: payload.on == true, for: 2m}\n")
    found.emit("trip", "x", {"on": True})
    found.at(minutes(5), "emit", type="trip", owner="x", payload={"on": False})
    found.run_until(minutes(6))
    events = {entry.name: entry.details for entry in reversed(found.log) if entry.kind == "event"}
    correlations = {events[name]["correlation_id"] for name in ("trip", "alarm-opened", "alarm-resolved")}
    assert correlations == {events["trip"]["id"]}


def test_series_that_become_stale_at_one_instant_are_evaluated_in_the_order_of_their_keys() -> None:
    """As live, whichever arrived first: the alarm names the first key."""
    found = world(
        "datapoint_type: {name: t, key: a.*, interval: 1m}\n---\n"
        "event_rule: {name: quiet, datapoint: a.*, absent: true}\n"
    )
    for key in ("a.c", "a.b"):
        found.at(minutes(1), "arrive", owner="x", key=key, value=1)
    found.run_until(minutes(12))
    assert [entry.name for entry in found.log if entry.kind == "stale"] == ["a.b", "a.c"]
    (opened,) = [entry for entry in found.log if entry.kind == "alarm"]
    assert opened.details["key"] == "a.b"

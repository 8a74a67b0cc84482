"""A simulated instance behaves like a live one: schedules, alarms, actions, limits and waits, in order."""

from __future__ import annotations

from datetime import timedelta

from tests.rules.replay.rule_tests.worlds import START, logged, minutes, simulate
from timers.identity import spread_of

TELL = "---\naction: {name: tell, log: {message: '{{ type }} {{ owner }}'}}\n"


def rule(when: str, extra: str = "", on: str = "event") -> str:
    return f"---\naction_rule:\n  name: each\n  on: {on}\n  when: '{when}'\n  action: tell\n{extra}"


def test_a_digest_at_eight_stays_at_eight_when_the_clocks_change() -> None:
    world = simulate(
        "schedule: {name: digest, cron: '0 8 * * *', tz: Europe/London, action: sum-up}\n"
        "---\naction: {name: sum-up, digest: {queries: [open_alarms]}}\n"
    )
    world.run_until(START + timedelta(days=3))
    fired = [entry.details["ts"].isoformat() for entry in world.log if entry.name == "schedule-fired"]
    assert fired == ["2026-03-28T08:00:00+00:00", "2026-03-29T07:00:00+00:00", "2026-03-30T07:00:00+00:00"]
    texts = [entry.details["subject"] for entry in world.log if entry.kind == "step"]
    assert texts == ["Digest: 0 open"] * 3


def test_a_digest_counts_the_events_since_the_one_before() -> None:
    world = simulate(
        "schedule: {name: digest, every: 30m, type: digest-due, action: sum-up}\n"
        "---\naction: {name: sum-up, digest: {queries: [events], channel: ops}}\n"
        "---\nchannel: {name: ops, webhook: {url: 'https://hooks.example.com/1'}}\n"
    )
    for minute in (1, 2, 31):
        world.at(minutes(minute), "emit", type="trip", owner="x")
    world.run_until(minutes(60))
    counted = [entry.details["subject"] for entry in world.log if entry.kind == "step"]
    assert counted == ["Digest: 3 events", "Digest: 2 events"], "the event of the digest included"


def test_a_digest_lists_open_alarms_and_stale_series() -> None:
    world = simulate(
        "datapoint_type: {name: t, key: a.*, interval: 1m}\n---\n"
        "event_rule: {name: hot, datapoint: a.b, above: 5, severity: high}\n---\n"
        "schedule: {name: digest, every: 30m, action: sum-up}\n---\naction: {name: sum-up, digest: {}}\n"
    )
    world.at(minutes(1), "arrive", owner="x", key="a.b", value=9)
    world.run_until(minutes(30))
    (texts,) = [entry.details["text"] for entry in world.log if entry.kind == "step"]
    assert "[HIGH] hot (x)" in texts
    assert "a.b (x)" in texts


def test_only_events_that_match_start_actions() -> None:
    world = simulate(TELL + rule('type == "noted" && owner != "b"'))
    for owner in ("a", "b"):
        world.at(minutes(1), "emit", type="noted", owner=owner)
    world.run_until(minutes(2))
    assert [entry.details["text"] for entry in world.log if entry.kind == "step"] == ["noted a"]


def test_what_exceeds_a_rate_limit_runs_when_the_limit_allows_it() -> None:
    world = simulate(TELL + rule("true", "  rate_limit: {count: 1, per: 10m}\n"))
    for minute in (1, 2, 3):
        world.at(minutes(minute), "emit", type="noted")
    world.run_until(minutes(20))
    assert logged(world, "run") == [
        (1, "tell", "running"),
        (1, "tell", "completed"),
        (2, "tell", "gathering"),
        (11, "tell", "running"),
        (11, "tell", "completed"),
    ]


def test_a_group_sends_one_message_for_all_its_events() -> None:
    many = "---\naction: {name: tell, log: {message: '{{ events | length }} events'}}\n"
    world = simulate(many + rule("true", "  group_by: [owner]\n  group_wait: 5m\n"))
    for minute in (1, 2, 3):
        world.at(minutes(minute), "emit", type="noted", owner="a")
    world.run_until(minutes(20))
    assert [(entry.at, entry.details["text"]) for entry in world.log if entry.kind == "step"] == [
        (minutes(6), "3 events")
    ]


def test_queued_runs_run_one_after_the_other() -> None:
    slow = (
        "---\naction:\n  name: tell\n  steps:\n    - wait: {for: 10m}\n    - log: {message: done}\n"
        + rule("true", "  overlap: queue\n")
    )
    world = simulate(slow)
    for minute in (0, 1):
        world.at(minutes(minute), "emit", type="noted")
    world.run_until(minutes(60))
    assert [minute for minute, _, state in logged(world, "run") if state == "completed"] == [10, 20]


def test_a_step_that_fails_is_retried_until_the_run_fails() -> None:
    retried = (
        "---\naction:\n  name: tell\n  publish: {subject: a.b}\n"
        "  retry: {attempts: 3, initial_interval: 1m, jitter: 0}\n" + rule("true")
    )
    world = simulate(retried)
    world.fail("tell", times=2)
    world.at(minutes(0), "emit", type="noted")
    world.run_until(minutes(30))
    assert logged(world, "step") == [(0, "tell", "failed"), (1, "tell", "failed"), (3, "tell", "completed")]
    dead = simulate(retried)
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
    world = simulate(waiting)
    world.at(minutes(0), "emit", type="asked", owner="a")
    world.at(minutes(3), "emit", type="answered", owner="b")
    world.at(minutes(5), "emit", type="answered", owner="a")
    world.run_until(minutes(60))
    assert [entry.at for entry in world.log if entry.details.get("text") == "met"] == [minutes(5)]


def test_a_run_that_would_start_itself_is_skipped() -> None:
    loop = "---\naction: {name: tell, emit: {type: noted, owner: ''}}\n" + rule('type == "noted"')
    world = simulate(loop)
    world.at(minutes(0), "emit", type="noted")
    world.run_until(minutes(1))
    assert [state for _, _, state in logged(world, "run")] == ["running", "completed", "skipped"]


def test_the_log_does_not_depend_on_the_steps_of_time() -> None:
    text = (
        "datapoint_type: {name: t, key: a.*, interval: 1m}\n---\n"
        "event_rule: {name: hot, datapoint: a.b, above: 5, for: 3m, no_data: resolve}\n"
        + TELL
        + rule("true", on="alarm")
    )
    at_once, in_steps = simulate(text), simulate(text)
    for world in (at_once, in_steps):
        for minute in range(8):
            world.at(minutes(minute), "arrive", owner="x", key="a.b", value=9)
    at_once.run_until(minutes(30))
    for second in range(0, 1801, 7):
        in_steps.run_until(START + timedelta(seconds=second))
    in_steps.run_until(minutes(30))
    assert in_steps.log == at_once.log
    assert logged(at_once, "alarm") == [(3, "hot", "opened"), (9.5, "hot", "resolved")]


def test_a_series_becomes_stale_once_and_fresh_once_with_two_datapoints_at_one_instant() -> None:
    world = simulate(
        "datapoint_type: {name: t, key: a.*, interval: 1m}\n---\n"
        "event_rule: {name: quiet, datapoint: a.b, absent: true}\n"
    )
    for minute, value in ((1, 1), (1, 2), (10, 3), (11, 4)):
        world.at(minutes(minute), "arrive", owner="x", key="a.b", value=value)
    world.run_until(minutes(12))
    assert logged(world, "stale") == [(3.5, "a.b", "stale")]
    assert logged(world, "fresh") == [(10, "a.b", "fresh")]
    assert logged(world, "alarm") == [(3.5, "quiet", "opened"), (10, "quiet", "resolved")]


def test_an_arrival_at_the_deadline_comes_after_staleness_and_before_a_sustain() -> None:
    """As live: the series becomes stale and fresh, and a condition that stops at the end of `for` opens nothing."""
    world = simulate(
        "datapoint_type: {name: t, key: a.*, interval: 1m}\n---\n"
        "event_rule: {name: hot, datapoint: a.b, above: 5, for: 150s}\n"
    )
    for minute, value in ((1, 9), (3.5, 1)):
        world.at(minutes(minute), "arrive", owner="x", key="a.b", value=value)
    world.run_until(minutes(4))
    assert [minute for minute, _, _ in logged(world, "stale") + logged(world, "fresh")] == [3.5, 3.5]
    assert logged(world, "alarm") == []


def test_cancelling_a_queued_run_does_not_start_the_next_one_early() -> None:
    world = simulate(
        "event_rule: {name: hot, datapoint: a.b, above: 5}\n---\n"
        "action: {name: tell, steps: [wait: {for: 10m}, log: {message: '{{ owner }}'}]}\n"
        + rule("severity >= info", "  overlap: queue\n", on="alarm")
    )
    for minute, owner, value in ((1, "x", 9), (2, "y", 9), (3, "z", 9), (4, "y", 1)):
        world.at(minutes(minute), "arrive", owner=owner, key="a.b", value=value)
    world.run_until(minutes(60))
    runs = [(at, state) for at, _, state in logged(world, "run")]
    assert (4, "cancelled") in runs
    texts = [
        (entry.at, entry.details["text"])
        for entry in world.log
        if entry.kind == "step" and "text" in entry.details
    ]
    assert texts == [(minutes(11), "x"), (minutes(21), "z")]


def test_an_alarm_that_resolves_before_its_notification_is_delivered_is_not_mentioned() -> None:
    world = simulate(
        "channel: {name: ops, webhook: {url: 'https://hooks.example.com/1'}}\n---\n"
        "event_rule: {name: hot, datapoint: a.b, above: 5, notify: [ops]}\n"
    )
    world.fail("notify-ops")
    for second, value in ((0, 9), (1, 1)):
        world.at(START + timedelta(seconds=second), "arrive", owner="x", key="a.b", value=value)
    world.run_until(minutes(60))
    assert [state for _, _, state in logged(world, "run")] == ["running", "completed"]
    assert [entry.state for entry in world.log if entry.kind == "step"] == ["failed"]


def test_a_run_that_the_end_of_an_alarm_starts_is_not_cancelled_by_it() -> None:
    world = simulate(
        "event_rule: {name: hot, datapoint: a.b, above: 5}\n---\n"
        "action: {name: tell, steps: [wait: {for: 10m}, log: {message: over}]}\n"
        + rule("severity >= info", "  transitions: [resolved]\n", on="alarm")
    )
    for minute, value in ((1, 9), (2, 1)):
        world.at(minutes(minute), "arrive", owner="x", key="a.b", value=value)
    world.run_until(minutes(60))
    assert logged(world, "run") == [(2, "tell", "running"), (12, "tell", "completed")]


def test_the_timeout_of_a_wait_that_was_met_has_no_effect() -> None:
    world = simulate(
        "action: {name: tell, steps: [wait: {until_event: 'type == \"ok\"', timeout: 10m, on_timeout: stop},"
        " wait: {for: 1h}, log: {message: done}]}\n" + rule('type == "noted"')
    )
    world.at(minutes(0), "emit", type="noted")
    world.at(minutes(5), "emit", type="ok")
    world.run_until(minutes(120))
    assert logged(world, "run") == [(0, "tell", "running"), (65, "tell", "completed")]


def test_a_run_that_is_cancelled_at_its_first_instant_sends_nothing() -> None:
    world = simulate(
        TELL
        + "---\nevent_rule: {name: hot, datapoint: a.b, above: 5}\n"
        + rule("severity >= info", on="alarm")
    )
    for value in (9, 1):
        world.at(minutes(1), "arrive", owner="x", key="a.b", value=value)
    world.run_until(minutes(2))
    assert [state for _, _, state in logged(world, "run")] == ["running", "cancelled"]
    assert logged(world, "step") == []


def test_a_schedule_fires_late_by_its_spread_with_its_nominal_time() -> None:
    world = simulate("schedule: {name: beat, every: 10m, spread: 5m}\n")
    world.run_until(minutes(19))
    delay = spread_of("", "beat", timedelta(minutes=5))
    assert timedelta(0) < delay < timedelta(minutes=5)
    (fired,) = [entry for entry in world.log if entry.kind == "event" and entry.at == minutes(10)]
    assert fired.details["recorded_at"] == minutes(10) + delay


def test_an_alarm_is_acknowledged_once() -> None:
    world = simulate("event_rule: {name: hot, datapoint: a.b, above: 5}\n")
    world.at(minutes(1), "arrive", owner="x", key="a.b", value=9)
    for minute in (2, 3):
        world.at(minutes(minute), "acknowledge", rule="hot", owner="x")
    world.run_until(minutes(4))
    assert [at for at, name, _ in logged(world, "event") if name == "alarm-acknowledged"] == [2]


def test_a_digest_at_the_end_of_a_runbook_counts_the_events_before_the_run_began() -> None:
    world = simulate(
        "action: {name: tell, steps: [wait: {for: 10m}, digest: {queries: [events]}]}\n"
        + rule('type == "noted"')
    )
    world.at(minutes(1), "emit", type="noted")
    world.at(minutes(5), "emit", type="trip")
    world.run_until(minutes(20))
    texts = [
        entry.details["subject"] for entry in world.log if entry.kind == "step" and "subject" in entry.details
    ]
    assert texts == ["Digest: 1 event"]


def test_only_steps_that_reach_a_server_fail() -> None:
    world = simulate(
        "action: {name: tell, steps: [wait: {for: 10m}, log: {message: done}]}\n" + rule('type == "noted"')
    )
    world.fail("tell")
    world.at(minutes(0), "emit", type="noted")
    world.run_until(minutes(60))
    steps = [(entry.details["step_kind"], entry.state) for entry in world.log if entry.kind == "step"]
    assert ("wait", "failed") not in steps
    assert [state for kind, state in steps if kind == "log"] == ["failed", "completed"]


def test_an_alarm_over_events_keeps_the_correlation_of_its_event_through_its_sustain() -> None:
    world = simulate("event_rule: {name: tripped, event: trip, fire: payload.on == true, for: 2m}\n")
    world.emit("trip", "x", {"on": True})
    world.at(minutes(5), "emit", type="trip", owner="x", payload={"on": False})
    world.run_until(minutes(6))
    events = {entry.name: entry.details for entry in reversed(world.log) if entry.kind == "event"}
    correlations = {events[name]["correlation_id"] for name in ("trip", "alarm-opened", "alarm-resolved")}
    assert correlations == {events["trip"]["id"]}


def test_series_that_become_stale_at_one_instant_are_evaluated_in_the_order_of_their_keys() -> None:
    """As live, whichever arrived first."""
    world = simulate(
        "datapoint_type: {name: t, key: a.*, interval: 1m}\n---\n"
        "event_rule: {name: quiet, datapoint: a.*, absent: true}\n"
    )
    for key in ("a.c", "a.b"):
        world.at(minutes(1), "arrive", owner="x", key=key, value=1)
    world.run_until(minutes(12))
    assert [entry.name for entry in world.log if entry.kind == "stale"] == ["a.b", "a.c"]
    opened = [entry for entry in world.log if entry.kind == "alarm"]
    assert [entry.details["key"] for entry in opened] == ["a.b", "a.c"]


def test_an_event_at_the_instant_of_the_trigger_ends_a_later_wait() -> None:
    waiting = (
        "action: {name: tell, steps: [wait: {for: 1m}, wait: {until_event: 'type == \"ok\"',"
        " timeout: 10m, on_timeout: stop}]}\n" + rule('type == "noted"')
    )
    world = simulate(waiting)
    world.at(minutes(0), "emit", type="noted")
    world.at(minutes(0), "emit", type="ok")
    world.run_until(minutes(30))
    assert logged(world, "run") == [(0, "tell", "running"), (1, "tell", "completed")]


def test_finally_runs_when_the_alarm_resolves() -> None:
    world = simulate(
        "event_rule: {name: hot, datapoint: a.b, above: 5}\n---\n"
        "action: {name: tell, steps: [wait: {for: 1h}], finally: [log: {message: '{{ alarm.state }}'}]}\n"
        + rule("severity >= info", on="alarm")
    )
    for minute, value in ((1, 9), (2, 1)):
        world.at(minutes(minute), "arrive", owner="x", key="a.b", value=value)
    world.run_until(minutes(120))
    assert [entry.details["text"] for entry in world.log if "text" in entry.details] == ["resolved"]
    assert logged(world, "run") == [(1, "tell", "running"), (2, "tell", "cancelled")]


def test_a_run_that_never_ends_with_its_alarm_waits_for_its_resolution() -> None:
    world = simulate(
        "event_rule: {name: hot, datapoint: a.b, above: 5}\n---\n"
        "action: {name: tell, steps: [wait: {until_event: 'type == \"alarm-resolved\"'}, log: {message: x}]}\n"
        + rule("severity >= info", "  ends_with: never\n", on="alarm")
    )
    for minute, value in ((1, 9), (2, 1)):
        world.at(minutes(minute), "arrive", owner="x", key="a.b", value=value)
    world.run_until(minutes(120))
    assert logged(world, "run") == [(1, "tell", "running"), (2, "tell", "completed")]

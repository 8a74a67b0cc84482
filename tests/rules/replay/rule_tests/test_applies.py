"""Rules that are applied in the middle of a rule test have the effects of a live apply."""

from __future__ import annotations

from pathlib import Path

from tests.rules.replay.rule_tests.written_tests import assert_passes, run_written

CHANNEL = 'channel: {name: ops, webhook: {url: "https://hooks.example.com/x"}}\n---\n'
HOT = CHANNEL + "event_rule: {name: hot, datapoint: t, above: %s, severity: high, notify: [ops]}\n"


def test_an_open_alarm_stays_until_the_new_rule_clears_it(tmp_path: Path) -> None:
    body = """
given:
  - {series: t, owner: p1, every: 1m, values: 85x10}
  - {at: 4m30s, apply: later.yaml}
until: 10m
expect: [{at: 0s, opened: hot}, {at: 5m, resolved: hot}]
"""
    assert_passes(tmp_path, HOT % 80, body, later=HOT % 90)


def test_a_lower_threshold_opens_with_the_next_datapoint(tmp_path: Path) -> None:
    body = """
given:
  - {series: t, owner: p1, every: 1m, values: 85x10}
  - {at: 4m30s, apply: [later.yaml]}
until: 10m
expect: [{at: 5m, opened: hot}, {at: 5m, sent: notify-ops}]
"""
    assert_passes(tmp_path, HOT % 90, body, later=HOT % 80)


def test_the_alarm_of_a_removed_rule_resolves_with_the_reason_and_is_reported(tmp_path: Path) -> None:
    body = """
given:
  - {series: t, owner: p1, every: 1m, values: 85x10}
  - {at: 4m30s, apply: later.yaml, by: ann}
until: 10m
expect:
  - {at: 0s, opened: hot}
  - {at: 0s, sent: notify-ops}
  - {at: 4m30s, resolved: hot, says: the rule was removed}
  - {at: 4m30s, sent: notify-ops, says: RESOLVED}
  - {at: 4m30s, event: rules-applied, says: ann}
"""
    other = CHANNEL + "event_rule: {name: other, datapoint: t, above: 900, notify: [ops]}\n"
    assert_passes(tmp_path, HOT % 80, body, later=other)


def test_a_pending_alarm_begins_again_under_another_condition(tmp_path: Path) -> None:
    rules = "event_rule: {name: hot, datapoint: t, above: %s, for: 5m}\n"
    body = """
given:
  - {series: t, owner: p1, every: 1m, values: 85x20}
  - {at: 3m30s, apply: later.yaml}
until: 20m
expect: [{at: 9m, opened: hot}]
"""
    assert_passes(tmp_path, rules % 70, body, later=rules % 80)


def test_a_series_is_watched_with_the_tolerance_of_the_new_type(tmp_path: Path) -> None:
    rules = "datapoint_type: {name: t, key: t, interval: %s, tolerance: 2, on_stale: alarm}\n"
    body = """
given:
  - {series: t, owner: p1, every: 1m, values: 1x2}
  - {at: 90s, apply: later.yaml}
until: 20m
expect: [{at: 9m, stale: t}, {at: 9m, opened: "stale:t"}]
"""
    assert_passes(tmp_path, rules % "1m", body, later=rules % "4m")


def test_a_new_rule_evaluates_the_series_that_are_stale_already(tmp_path: Path) -> None:
    type = "datapoint_type: {name: t, key: t, interval: 1m, tolerance: 2}\n"
    body = """
given:
  - {series: t, owner: p1, every: 1m, values: 1}
  - {at: 10m, apply: later.yaml}
until: 20m
expect: [{at: 2m, stale: t}, {at: 15m, opened: gone}]
"""
    later = type + "---\nevent_rule: {name: gone, datapoint: t, absent: true, for: 5m}\n"
    assert_passes(tmp_path, type, body, later=later)


SCHEDULES = """
schedule: {name: same, every: 10m, action: say}
---
schedule: {name: other, every: %s, action: tell}
---
action: {name: say, log: {message: same}}
---
action: {name: tell, log: {message: other}}
"""


def test_schedules_that_did_not_change_keep_their_times(tmp_path: Path) -> None:
    body = """
given: [{at: 15m, apply: later.yaml}]
until: 40m
expect:
  - {at: 10m, sent: say}
  - {at: 20m, sent: say}
  - {at: 30m, sent: say}
  - {at: 40m, sent: say}
  - {at: 10m, sent: tell}
  - {at: 22m, sent: tell}
  - {at: 29m, sent: tell}
  - {at: 36m, sent: tell}
"""
    assert_passes(tmp_path, SCHEDULES % "10m", body, later=SCHEDULES % "7m")


RUNS = """
event_rule: {name: tripped, event: trip, clear: 'false'}
---
action_rule: {name: tell, on: alarm, action: say, group_by: [rule], group_wait: 10m}
---
action_rule: {name: call, on: alarm, action: escalate}
---
action: {name: say, log: {message: gathered}}
---
action: {name: escalate, steps: [{log: {message: one}}, {wait: {for: 10m}}, {log: {message: %s}}]}
"""


def test_a_run_that_gathers_is_cancelled_and_one_that_has_begun_finishes_with_its_document(
    tmp_path: Path,
) -> None:
    rules = RUNS % "two"
    later = RUNS.replace("action_rule: {name: tell", "action_rule: {name: tell, enabled: false") % "changed"
    body = """
given: [{at: 1m, event: trip, owner: p1}, {at: 5m, apply: later.yaml}]
until: 30m
expect:
  - {at: 1m, opened: tripped}
  - {at: 1m, sent: escalate, says: one}
  - {at: 11m, sent: escalate, says: two}
  - {at: 5m, run: say, state: cancelled}
  - {at: 1m, run: say, state: gathering}
only: {kinds: [opened, sent]}
"""
    assert_passes(tmp_path, rules, body, later=later)


QUIET = CHANNEL + "event_rule: {name: hot, datapoint: t, above: 80, severity: high, notify: [ops]}\n---\n"


def test_what_a_maintenance_held_is_notified_when_its_document_is_removed(tmp_path: Path) -> None:
    window = "maintenance: {name: m, cron: '0 0 * * *', duration: 2h, where: 'true'}\n"
    body = """
given: [{series: t, owner: p1, every: 1m, values: 85x30}, {at: 10m30s, apply: later.yaml}]
until: 30m
expect: [{at: 0s, opened: hot}, {at: 10m30s, sent: notify-ops}]
"""
    assert_passes(tmp_path, QUIET + window, body, later=QUIET.removesuffix("---\n"))


def test_what_an_inhibit_held_is_notified_when_its_document_is_removed(tmp_path: Path) -> None:
    other = "event_rule: {name: down, datapoint: up, below: 1, severity: high}\n"
    inhibit = "---\ninhibit: {name: i, source: 'rule == \"down\"', target: 'rule == \"hot\"'}\n"
    body = """
given:
  - {series: up, owner: p1, every: 1m, values: 0x30}
  - {at: 1m, series: t, owner: p1, every: 1m, values: 85x20}
  - {at: 10m30s, apply: later.yaml}
until: 30m
expect: [{at: 0s, opened: down}, {at: 1m, opened: hot}, {at: 10m30s, sent: notify-ops}]
"""
    assert_passes(tmp_path, QUIET + other + inhibit, body, later=QUIET + other)


SYSTEM = """
event_rule: {name: hot, datapoint: t, above: 80, severity: high}
---
system: {name: %s, members: [{owner: p1, key: t}]}
"""


def test_a_new_system_has_the_health_of_its_members_and_a_removed_one_a_last_health(tmp_path: Path) -> None:
    body = """
given: [{series: t, owner: p1, every: 1m, values: 85x20}, {at: 5m, apply: later.yaml}]
until: 10m
expect:
  - {at: 0s, opened: hot}
  - {at: 0s, health: old, is: outage}
  - {at: 5m, health: old, is: unknown}
  - {at: 5m, health: new, is: outage}
"""
    assert_passes(tmp_path, SYSTEM % "old", body, later=SYSTEM % "new")


def test_an_alarm_over_events_follows_the_rules_of_its_events(tmp_path: Path) -> None:
    rules = (
        "event_rule: {name: down, event: link-*, fire: 'type == \"link-down\"', clear: 'type == \"%s\"'}\n"
    )
    body = """
given:
  - {at: 1m, event: link-down, owner: p1}
  - {at: 2m, apply: later.yaml}
  - {at: 3m, event: link-up, owner: p1}
  - {at: 4m, event: link-well, owner: p1}
until: 10m
expect: [{at: 1m, opened: down}, {at: 4m, resolved: down}]
"""
    assert_passes(tmp_path, rules % "link-up", body, later=rules % "link-well")


CALC = """
calc_rule: {name: %s, every: 5m, inputs: {t: {key: t, over: 10m, each: sum}}, value: t}
"""


def test_a_new_calc_rule_reads_what_arrived_before_it(tmp_path: Path) -> None:
    body = """
given: [{at: 30s, series: t, owner: p1, every: 1m, values: 1x14}, {at: 7m, apply: later.yaml}]
until: 10m
expect: [{at: 5m, calculated: old, value: 5}, {at: 10m, calculated: new, value: 10}]
nothing_else: [calculated]
"""
    assert_passes(tmp_path, CALC % "old", body, later=CALC % "new")


def test_names_of_the_later_rules_are_known_and_their_problems_are_reported(tmp_path: Path) -> None:
    body = """
given: [{at: 1m, apply: later.yaml}, {at: 2m, series: u, owner: p1, every: 1m, values: 85}]
until: 10m
expect: [{at: 2m, opened: other}]
"""
    later = "event_rule: {name: other, datapoint: u, above: 1}\n"
    assert_passes(tmp_path, HOT % 80, body, later=later)
    result = run_written(tmp_path, HOT % 80, body, later=later.replace("above", "abve"))
    assert "later.yaml:1:" in (result.error or "")
    result = run_written(tmp_path, HOT % 80, body.replace("later.yaml", "missing.yaml"))
    assert "missing.yaml" in (result.error or "")


def test_a_rule_over_alarms_that_is_applied_later_reads_what_is_open(tmp_path: Path) -> None:
    rules = "event_rule: {name: hot, datapoint: temp, above: 60}\n"
    later = rules + "---\nevent_rule: {name: over, alarms: {any_of: [hot]}}\n"
    body = """
given:
  - {series: temp, owner: p1, every: 1m, values: 70x8 50x4}
  - {series: temp, owner: p2, every: 1m, values: 70x2 50x10}
  - {at: 4m30s, apply: later.yaml}
until: 12m
only: {rule: over}
expect:
  - {at: 4m30s, opened: over, owner: p1, says: hot of p1 is open}
  - {at: 8m, resolved: over, owner: p1}
"""
    assert_passes(tmp_path, rules, body, later=later)

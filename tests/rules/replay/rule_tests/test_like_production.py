"""Rule tests find what production finds: digests, disabled channels, rejected datapoints, answers."""

from __future__ import annotations

from pathlib import Path

from schemas.wire.ingest_event import ingested_id
from tests.rules.replay.rule_tests.written_tests import assert_passes, run_written

CHANNEL = 'channel: {name: ops, webhook: {url: "https://hooks.example.com/x"}}\n---\n'
DIGEST = (
    CHANNEL
    + """
event_rule: {name: mild, datapoint: a, above: 5, severity: info}
---
event_rule: {name: grave, datapoint: b, above: 5, severity: disaster}
---
schedule: {name: hourly, cron: "30 * * * *", action: dig}
---
action: {name: dig, digest: {queries: [open_alarms, events], channel: ops, limit: 2, text: "%s"}}
"""
)
GIVEN = """
given:
  - {series: a, owner: o, every: 10m, values: 9}
  - {at: 1m, series: b, owner: o, every: 10m, values: 9}
  - {at: 2m, event: one}
  - {at: 3m, event: two}
  - {at: 4m, event: three}
until: 45m
"""


def test_a_digest_has_the_rows_of_the_live_queries(tmp_path: Path) -> None:
    text = "{% for row in open_alarms %}{{ row.rule }} {% endfor %}{% for row in events %}{{ row.type }} {% endfor %}"
    expected = "{opened: mild}, {opened: grave}, {sent: dig, says: 'grave mild schedule-fired three'}"
    assert_passes(tmp_path, DIGEST % text, f"{GIVEN}expect: [{expected}]")


def test_a_digest_counts_all_rows(tmp_path: Path) -> None:
    text = "{{ counts.open_alarms }} {{ counts.events }} {{ events | length }}"
    body = f"{GIVEN}expect: [{{opened: mild}}, {{opened: grave}}, {{sent: dig, says: '2 6 2'}}]"
    assert_passes(tmp_path, DIGEST % text, body)


def test_a_digest_that_reads_what_live_rows_lack_is_sent_with_the_default_text(tmp_path: Path) -> None:
    text = "{% for row in open_alarms %}{{ row.nothing }}{% endfor %}"
    says = "{sent: dig, says: '[DISASTER] grave (o)'}"
    body = f"{GIVEN}expect: [{{opened: mild}}, {{opened: grave}}, {says}]"
    assert_passes(tmp_path, DIGEST % text, body)


DISABLED = """
channel: {name: ops, enabled: false, webhook: {url: "https://hooks.example.com/x"}}
---
action_rule: {name: on-trip, on: event, when: 'type == "trip"', action: page}
---
action: {name: page, channel: {name: ops}}
"""


def test_nothing_is_sent_through_a_disabled_channel(tmp_path: Path) -> None:
    body = "given: [{event: trip}]\nuntil: 1m\nexpect: [{run: page}]\nnothing_else: [sent]"
    assert_passes(tmp_path, DISABLED, body)
    result = run_written(tmp_path, DISABLED, body)
    assert [(entry.kind, entry.text) for entry in result.observed if entry.kind == "not sent"] == [
        ("not sent", "the channel is disabled")
    ]


TYPED = """
datapoint_type: {name: load, key: load, interval: 1m}
---
event_rule: {name: quiet, datapoint: load, absent: true}
"""


def test_a_value_of_another_type_is_rejected_and_the_series_becomes_stale(tmp_path: Path) -> None:
    body = """
given: [{series: load, owner: o, every: 1m, values: '1 "many"x9'}]
until: 5m
expect:
  - {at: 1m, rejected: load, owner: o, says: "datapoint_type 'load' takes a number"}
  - {at: 2m, rejected: load}
  - {at: 2m30s, opened: quiet}
  - {at: 3m, rejected: load}
  - {at: 4m, rejected: load}
  - {at: 5m, rejected: load}
"""
    assert_passes(tmp_path, TYPED, body)


def test_a_rejected_datapoint_without_an_expectation_fails_the_test(tmp_path: Path) -> None:
    body = (
        "given: [{series: load, owner: o, every: 1m, values: '\"many\"'}]\nuntil: 1m\nnothing_else: [opened]"
    )
    assert [entry.kind for entry in run_written(tmp_path, TYPED, body).unexpected] == ["rejected"]


APPROVAL = """
action_rule: {name: on-request, on: event, when: 'type == "release-requested"', action: release}
---
action:
  name: release
  steps:
    - name: approval
      wait:
        until_event: 'type == "approved" && correlation_id == trigger.correlation_id'
        timeout: 1h
        on_timeout: stop
    - log: {message: "{{ answers.approval.event.payload.by }} approved {{ answers.approval.event.type }}"}
"""


def test_an_event_with_the_correlation_id_of_another_ends_a_wait(tmp_path: Path) -> None:
    body = """
given:
  - {event: release-requested, id: release-7, severity: high}
  - {at: 1m, event: approved, payload: {by: eve}}
  - {at: 2m, event: approved, correlation_id: release-7, payload: {by: ann}}
until: 2h
expect:
  - {at: 2m, sent: release, says: ann approved approved}
"""
    assert_passes(tmp_path, APPROVAL, body)


def test_an_event_replies_to_a_run(tmp_path: Path) -> None:
    body = """
given:
  - {event: release-requested}
  - {at: 2m, event: approved, reply_to: release, payload: {by: ann}}
until: 2h
expect: [{at: 2m, sent: release, says: ann}]
"""
    assert_passes(tmp_path, APPROVAL, body)


def test_the_same_id_is_the_same_event(tmp_path: Path) -> None:
    body = """
given: [{event: trip, id: a}, {at: 1m, event: trip, id: a}]
until: 2m
expect: [{at: 0s, event: trip}]
"""
    assert_passes(tmp_path, DISABLED, body)


def test_conditions_and_templates_see_the_id_that_a_live_event_has(tmp_path: Path) -> None:
    id = ingested_id("order-7")
    rules = f"""
action_rule: {{name: on-trip, on: event, when: 'id == "{id}"', action: note}}
---
action: {{name: note, log: {{message: "id {{{{ id }}}}"}}}}
"""
    body = """
given: [{event: trip, id: order-8}, {at: 1m, event: trip, id: order-7}]
until: 2m
expect: [{at: 1m, sent: note, says: "id %s"}]
"""
    assert_passes(tmp_path, rules, body % id)


def test_an_event_has_the_severity_that_is_given(tmp_path: Path) -> None:
    rules = DISABLED.replace('type == "trip"', "severity >= high").replace("enabled: false, ", "")
    body = """
given: [{event: trip, severity: warning}, {at: 1m, event: trip, severity: high}]
until: 2m
expect: [{at: 1m, sent: page}]
"""
    assert_passes(tmp_path, rules, body)


DEPLOY = """
action_rule: {name: on-push, on: event, when: 'type == "push"', action: deploy}
---
action:
  name: deploy
  steps:
    - {name: build, dispatch: {subject: jobs.build, within: 10m}, retry: {attempts: 2, initial_interval: 1m, jitter: 0}}
    - log: {message: "image {{ answers.build.image }}"}
"""


def test_a_report_answers_a_dispatch(tmp_path: Path) -> None:
    body = """
given: [{event: push}, {at: 5m, report: deploy, result: {image: "shop:7"}}]
until: 1h
expect:
  - {at: 0s, sent: deploy, says: jobs.build}
  - {at: 5m, sent: deploy, says: "image shop:7"}
"""
    assert_passes(tmp_path, DEPLOY, body)


def test_a_report_of_a_failure_is_retried(tmp_path: Path) -> None:
    body = """
given:
  - {event: push}
  - {at: 5m, report: deploy, step: build, error: no space left}
  - {at: 7m, report: deploy, result: {image: "shop:8"}}
until: 1h
expect:
  - {at: 0s, sent: deploy, says: jobs.build}
  - {at: 6m, sent: deploy, says: jobs.build}
  - {at: 7m, sent: deploy, says: "shop:8"}
"""
    assert_passes(tmp_path, DEPLOY, body)
    result = run_written(tmp_path, DEPLOY, body)
    assert "build: no space left" in [entry.text for entry in result.observed if entry.kind == "step failed"]


def test_a_dispatch_that_is_reported_too_late_times_out(tmp_path: Path) -> None:
    body = """
given: [{event: push}, {at: 30m, report: deploy, result: {image: "shop:7"}}]
until: 1h
expect: [{sent: deploy}, {sent: deploy}, {run: deploy, state: timed_out}]
"""
    result = run_written(tmp_path, DEPLOY, body)
    assert result.error is not None
    assert "no step of 'deploy' waits for a report at 30m" in result.error
    assert_passes(
        tmp_path, DEPLOY, body.replace("at: 30m, report: deploy, result", "never_reported: deploy}]\n#")
    )


CHECK = """
schedule: {name: check, every: 1m, action: probe-shop}
---
action: {name: probe-shop, probe: {key: shop.up, owner: shop, http: {url: "https://shop.example.com/"}}}
---
event_rule: {name: down, datapoint: shop.up, fire: 'value == false'}
---
event_rule: {name: slow, datapoint: shop.up.latency_ms, above: 500}
"""


def test_a_probe_that_finds_a_service_down_or_slow_is_a_result(tmp_path: Path) -> None:
    body = """
given:
  - {at: 90s, probe: probe-shop, well: false}
  - {at: 150s, probe: probe-shop, latency_ms: 900}
  - {at: 210s, probe: probe-shop}
until: 4m
expect:
  - {at: 2m, opened: down, owner: shop}
  - {at: 3m, resolved: down}
  - {at: 3m, opened: slow}
  - {at: 4m, resolved: slow}
"""
    assert_passes(tmp_path, CHECK, body)


LATE = "event_rule: {name: hot, datapoint: t, fire: 'value > 5.0 && arrived_at - ts < duration(\"5m\")'}\n"


def test_the_ts_of_a_value_may_differ_from_its_arrival(tmp_path: Path) -> None:
    body = """
given:
  - {series: t, owner: o, every: 1m, values: 9, ts: -10m}
  - {at: 1m, series: t, owner: o, every: 1m, values: 9, ts: -1m}
until: 2m
expect: [{at: 1m, opened: hot}]
"""
    assert_passes(tmp_path, LATE, body)


def test_values_of_one_message_arrive_together_with_their_own_ts(tmp_path: Path) -> None:
    rules = "event_rule: {name: hot, datapoint: t, fire: 'value == 7.0 && arrived_at - ts == duration(\"20s\")'}\n"
    body = """
given: [{at: 1m, series: t, owner: o, every: 10s, values: 7.0 1 7.0, batch: true}]
until: 2m
expect: [{at: 1m, opened: hot}, {at: 1m, resolved: hot}]
"""
    assert_passes(tmp_path, rules, body)


def test_a_ts_beyond_the_retention_is_rejected(tmp_path: Path) -> None:
    body = """
given: [{series: t, owner: o, every: 1m, values: 9, ts: -31d}]
until: 2m
expect: [{at: 0s, rejected: t, says: outside of the retention}]
"""
    assert_passes(tmp_path, LATE, body)


def test_an_outage_of_the_data_stream_is_no_missing_data(tmp_path: Path) -> None:
    body = """
given:
  - {series: load, owner: o, every: 1m, values: 1x3}
  - {at: 2m30s, outage: 10m}
until: 20m
expect: [{at: 15m, opened: quiet}]
"""
    assert_passes(tmp_path, TYPED, body)


def test_values_during_an_outage_are_lost(tmp_path: Path) -> None:
    rules = "event_rule: {name: hot, datapoint: t, above: 5}\n"
    body = """
given: [{series: t, owner: o, every: 1m, values: 1 9 1}, {at: 30s, outage: 1m}]
until: 5m
nothing_else: [opened]
"""
    assert_passes(tmp_path, rules, body)


def test_a_channel_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    rules = CHANNEL + "event_rule: {name: hot, datapoint: t, above: 5, notify: [ops, ops]}\n"
    result = run_written(tmp_path, rules, "until: 1m\nnothing_else: [opened]")
    assert result.error is not None
    assert "'notify' of event_rule 'hot': 'ops' is named twice, remove one" in result.error


GROUPED = (
    CHANNEL
    + "event_rule: {name: hot, datapoint: t, above: 80}\n---\n"
    + "action_rule: {name: page, on: alarm, notify: [ops], group_by: [rule], group_wait: 30s}\n"
)


def test_the_message_of_a_group_has_the_value_that_cleared_an_alarm_or_the_operator(tmp_path: Path) -> None:
    body = """
given:
  - {series: t, owner: p1, every: 1m, values: 85x10 50}
  - {series: t, owner: p2, every: 1m, values: 85x30}
  - {at: 20m30s, resolve: hot, owner: p2, by: ann}
until: 30m
expect:
  - {at: 30s, sent: notify-ops, says: 2 open}
  - {at: 10m, sent: notify-ops, says: t of p1 is clear (50)}
  - {at: 20m30s, sent: notify-ops, says: resolved by ann}
only: {kinds: [sent]}
"""
    assert_passes(tmp_path, GROUPED, body)

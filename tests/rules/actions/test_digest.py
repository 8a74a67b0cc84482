"""A digest sums up a period, live and in virtual time alike."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rules.actions.steps.digest_message import default_digest
from rules.actions.steps.digest_results import DigestMaterial, digest_period, digest_results
from rules.delivery.alarm_facts import MessageView
from schemas.documents.runbook.digest import QUERIES, DigestStep
from tests.rules.actions.digest_material import MATERIAL, SINCE, UNTIL
from tests.rules.instance import Instance
from tests.rules.replay.rule_tests.worlds import START, minutes, simulate


def results(**keys: Any) -> dict[str, Any]:
    return digest_results(DigestStep.model_validate(keys), MATERIAL)


def test_the_summary_has_counts_times_and_the_time_to_acknowledge_of_each_rule() -> None:
    disk, cpu = results()["summary"]
    assert disk == {
        "rule": "disk",
        "title": "",
        "severity": "high",
        "count": 3,
        "open": 1,
        "total": timedelta(hours=7),
        "longest": timedelta(hours=4),
        "acknowledged": 2,
        "time_to_acknowledge": timedelta(minutes=15),
    }
    # Only the time within the period counts, and the alarm did not open in it.
    assert (cpu["count"], cpu["total"], cpu["time_to_acknowledge"]) == (0, timedelta(hours=4), None)


def test_the_noisiest_owners_come_first() -> None:
    assert results()["noisiest_owners"] == [{"owner": "db-1", "count": 2}, {"owner": "db-2", "count": 1}]


def test_undelivered_notifications_and_dead_runs_are_listed_apart() -> None:
    found = results()
    assert [(row["rule"], row["channel"], row["error"]) for row in found["undelivered"]] == [
        ("disk", "ops", "HTTP 500")
    ]
    assert [(row["rule"], row["channel"]) for row in found["dead_runs"]] == [("nightly", "")]


@pytest.mark.parametrize(
    ("where", "rules"),
    [
        ("severity >= critical", ["cpu"]),
        ('rule == "disk" && owner == "db-2"', ["disk"]),
        ('labels.site == "ams"', ["disk", "cpu"]),
        ('labels.site == "fra"', []),
    ],
)
def test_a_digest_is_filtered_by_severity_rule_owner_and_labels(where: str, rules: list[str]) -> None:
    assert [row["rule"] for row in results(where=where)["summary"]] == rules


def test_events_are_filtered_by_their_type() -> None:
    events: list[dict[str, Any]] = [
        {"type": type, "rule": "", "owner": "", "severity": 0, "payload": {}} for type in ("a-b", "heartbeat")
    ]
    digest = DigestStep.model_validate({"queries": ["events"], "where": 'type != "heartbeat"'})
    found = digest_results(digest, DigestMaterial(SINCE, UNTIL, events=events))
    assert [event["type"] for event in found["events"]] == ["a-b"]
    assert found["counts"] == {"events": 1}


def test_events_are_listed_only_if_they_are_asked_for() -> None:
    assert "events" not in results()["counts"]
    assert set(results(queries=list(QUERIES))["counts"]) == set(QUERIES)


def test_the_first_digest_covers_one_period_of_its_schedule_or_a_day() -> None:
    assert digest_period(None, UNTIL + timedelta(hours=1), UNTIL) == UNTIL - timedelta(hours=1)
    assert digest_period(None, None, UNTIL) == SINCE
    assert digest_period(UNTIL - timedelta(days=3), None, UNTIL) == UNTIL - timedelta(days=3)


def test_the_default_digest_is_short_and_in_the_zone_of_its_channel() -> None:
    message = default_digest(results(), MessageView(tz="Europe/Amsterdam"))
    assert (
        message.subject == "Digest: 3 alarms, 1 open, 1 stale series, 1 undelivered notification, 1 dead run"
    )
    assert "2026-03-02 09:00:00 CET to 2026-03-03 09:00:00 CET" in message.text
    assert "  disk  3       1     7h             4h       15m\n" in message.text
    assert "Most alarms: db-1 (2), db-2 (1)" in message.text
    assert (message.payload or {})["summary"][0]["total_s"] == 25_200


async def test_the_first_live_digest_does_not_hold_the_whole_log(instance: Instance) -> None:
    await instance.runbook("- {name: all, digest: {queries: [events]}}", 'type == "morning"')
    for _ in range(3):
        await instance.event("noise")
        await instance.pass_time("20h")
    await instance.event("morning")
    row = await instance.action()
    # Of the three events, two are older than a day.
    assert row["answers"]["all"]["counts"] == {"events": 2}


def test_a_simulated_digest_has_the_sums_of_the_live_one() -> None:
    world = simulate("""
schedule: {name: hourly, every: 1h, action: dig}
---
event_rule: {name: hot, datapoint: t, above: 5, severity: high}
---
action: {name: dig, digest: {channel: ops}}
---
channel: {name: ops, webhook: {url: "https://hooks.example.com/x"}}
""")
    for minute, value in ((10, 9), (25, 1), (30, 9)):
        world.at(minutes(minute), "arrive", owner="o", key="t", value=value)
    world.at(minutes(40), "acknowledge", rule="hot", owner="o", who="ann")
    world.run_until(minutes(60))
    (sent,) = [entry for entry in world.log if entry.kind == "step"]
    (row,) = sent.details["payload"]["summary"]
    assert (row["count"], row["open"], row["total_s"], row["longest_s"], row["time_to_acknowledge_s"]) == (
        *(2, 1),
        *(45 * 60, 30 * 60, 10 * 60),
    )
    assert sent.details["payload"]["since"] == START.isoformat().replace("+00:00", "Z")

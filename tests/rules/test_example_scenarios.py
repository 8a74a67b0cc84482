"""The scenarios of the examples, in virtual time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from rules.dispatch.matcher import ActionMatcher
from rules.documents.load import load_files, recurrence_of
from rules.documents.rule_book import RuleSet
from rules.language.templates import fill_text
from rules.runbook import Completed
from schemas.documents import ActionDocument, ScheduleDocument
from schemas.values.severities import level
from tests.paths import ROOT
from tests.rules.engine.scenario import Scenario
from tests.rules.runbook.simulated_runs import Simulation

EXAMPLES = ROOT / "examples"


def text(name: str) -> str:
    return (EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8")


def scenario(name: str) -> Scenario:
    return Scenario(text(name))


def simulation(name: str, action: str, **given: Any) -> Simulation:
    (document,) = [one for one in load_files([EXAMPLES / f"{name}.yaml"]).documents if one.name == action]
    return Simulation(yaml.safe_dump(document.data["steps"]), **given)


def test_the_digest_is_due_at_eight_on_both_sides_of_the_change_of_clocks() -> None:
    (document,) = load_files([EXAMPLES / "digest.yaml"]).of_kind("schedule")
    assert isinstance(document.model, ScheduleDocument)
    recurrence = recurrence_of(document.model, anchor=None, hash_id=document.name)
    start = datetime(2026, 3, 6, 0, 0, tzinfo=UTC)
    found = [one.at.isoformat() for one in recurrence.occurrences(start, start + timedelta(days=9), 3)]
    assert found == [f"2026-03-{at}:00:00+00:00" for at in ("06T13", "09T12", "10T12")]


def test_the_digest_lists_open_alarms_and_stale_series() -> None:
    (document,) = load_files([EXAMPLES / "digest.yaml"]).of_kind("action")
    assert isinstance(document.model, ActionDocument)
    digest = document.model.digest
    assert digest is not None
    since = datetime(2026, 3, 9, 11, 30, tzinfo=UTC)
    alarm = {"severity": "high", "rule": "dsp-hot", "owner": "plant-7", "since": since, "message": "hot"}
    data = {
        "open_alarms": [alarm],
        "stale_series": [{"key": "meter.a.power", "owner": "plant-9"}],
        "counts": {"open_alarms": 1, "stale_series": 1},
    }
    assert fill_text(digest.subject or "", data) == "1 alarms are open, 1 series are stale"
    said = fill_text(digest.text or "", data).split("\n")
    assert [line for line in said if line] == [
        "HIGH dsp-hot (plant-7) since Mon 07:30: hot",
        "stale: meter.a.power of plant-9",
    ]


def test_a_threshold_must_hold_for_ten_minutes() -> None:
    hot = scenario("threshold")
    for minute in range(0, 10):
        hot.at(f"{minute}m").send(70)
    assert hot.log == []
    hot.at("10m")
    assert hot.log == ["10m opened dsp-hot"]
    assert hot.messages() == ["plant-7: the signal processor is at 70 °C"]


def test_a_threshold_that_is_crossed_for_a_moment_opens_nothing() -> None:
    hot = scenario("threshold").at("0m").send(70).at("9m").send(64).at("10m").send(66).at("19m").send(64)
    assert hot.at("1h").log == []


def test_a_threshold_alarm_is_resolved_below_its_clear_bound_and_not_at_once() -> None:
    hot = scenario("threshold").at("0m").send(70).at("11m").send(63).at("12m").send(59).at("13m").send(63)
    assert hot.at("20m").log == ["10m opened dsp-hot"]
    hot.send(59)
    assert hot.at("30m").log == ["10m opened dsp-hot", "22m resolved dsp-hot"]


def test_an_escalation_notifies_pages_and_pages_the_second() -> None:
    run = simulation("escalation", "escalate").pass_time("1h")
    completed = [line for line in run.history if line.endswith("completed") and "wait" not in line]
    assert completed == [
        "0s notify completed",
        "10m still-open completed",
        "10m page completed",
        "25m page-secondary completed",
    ]


def test_an_acknowledged_escalation_sends_no_page() -> None:
    run = simulation("escalation", "escalate", **{"still-open": Completed(branch=1)}).pass_time("1h")
    assert run.history[-1] == "10m still-open completed"
    assert run.state == "completed"


@pytest.mark.parametrize(("severity", "started"), [("high", []), ("critical", ["escalate"])])
def test_only_critical_alarms_escalate(severity: str, started: list[str]) -> None:
    assert started_actions("escalation", datetime(2026, 3, 2, 3, 0, tzinfo=UTC), severity) == started


def test_a_stale_pump_opens_an_alarm_after_three_intervals() -> None:
    pump = scenario("watchdog").send(12.5, key="pump.flow").at("29s")
    assert pump.log == []
    assert pump.at("5m").log == ["30s opened pump-stale"]
    assert pump.send(12.5, key="pump.flow").log[1:] == ["5m resolved pump-stale"]


def test_a_slow_pump_that_becomes_stale_stays_in_alarm() -> None:
    pump = scenario("watchdog").send(3.0, key="pump.flow").at("5m")
    assert sorted(pump.log) == ["30s opened pump-slow", "30s opened pump-stale"]
    assert pump.at("1h").log[2:] == []


def started_actions(example: str, ts: datetime, severity: str) -> list[str]:
    documents = load_files([EXAMPLES / f"{example}.yaml"]).documents
    facts = {
        **{"id": "x", "origin": "derived", "type": "alarm-opened", "rule": "r", "owner": "o", "action": ""},
        **{"seq": 9, "schedule": "", "severity": level(severity), "ts": ts, "recorded_at": ts, "payload": {}},
    }
    return [match.action for match in ActionMatcher(RuleSet(one.model for one in documents)).match(facts)]


@pytest.mark.parametrize(
    ("at", "severity", "started"),
    [
        ("2026-03-02T09:00Z", "average", ["notify-team"]),
        ("2026-03-02T09:00Z", "critical", ["notify-team"]),
        ("2026-03-02T09:00Z", "warning", []),
        ("2026-03-02T18:00Z", "critical", ["page-on-call"]),
        ("2026-03-02T07:59Z", "high", ["notify-in-morning"]),
        ("2026-03-07T12:00Z", "disaster", ["page-on-call"]),
        ("2026-03-07T12:00Z", "average", ["notify-in-morning"]),
        # Summer time: eight in London is seven in UTC.
        ("2026-07-06T07:30Z", "average", ["notify-team"]),
        ("2026-07-06T17:30Z", "average", ["notify-in-morning"]),
    ],
)
def test_every_alarm_is_notified_or_deferred_by_the_time_in_london(
    at: str, severity: str, started: list[str]
) -> None:
    assert started_actions("business-hours", datetime.fromisoformat(at), severity) == started


def test_a_deferred_alarm_is_notified_at_eight() -> None:
    night = datetime(2026, 7, 6, 23, 0, tzinfo=UTC)
    run = simulation("business-hours", "notify-in-morning", start=night).pass_time("1d")
    assert run.history == ["0s night waiting", "8h night completed", "8h notify completed"]


def test_an_alarm_of_a_friday_night_is_notified_on_monday() -> None:
    friday = datetime(2026, 7, 3, 23, 0, tzinfo=UTC)
    run = simulation("business-hours", "notify-in-morning", start=friday).pass_time("4d")
    assert run.history == ["0s night waiting", "2d8h night completed", "2d8h notify completed"]

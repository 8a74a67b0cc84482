"""The checks of the doctor: their limits, and a remedy for each red finding."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from nats.js.errors import ServiceUnavailableError

from cdc.log_reader import Gap
from cdc.report import PublisherReport
from clock.held_timers import HeldTimers
from clock.retention.report import PruneReport
from rules.lanes.status import PartitionStatus, RecentGaps, WorkerProblem
from tocsin.core.errors import Refused
from tocsin.doctor.checks import (
    Finding,
    Workers,
    check_arrival_gaps,
    check_clock_offset,
    check_commits,
    check_dead_runs,
    check_failing_timers,
    check_held_timers,
    check_lane,
    check_leader,
    check_log_gaps,
    check_log_lag,
    check_retention,
    check_stream,
    check_timers,
    check_tz_data,
    check_worker_lag,
    check_worker_problems,
    explained,
    failed,
    system_tz_version,
)
from tocsin.doctor.stream_findings import check_dead_letters, jetstream_failed

_NOW = datetime(2026, 3, 8, 7, 0, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_DIVERGED: dict[str, object] = {
    "problem": "diverged",
    "detail": "the stream is at 9, the log only at 7",
    "remedy": "adopt it",
    "since": _NOW,
}


@pytest.mark.parametrize(
    ("offset", "state"),
    [(0 * _MS, "ok"), (1002 * _MS, "ok"), (-1002 * _MS, "ok"), (1003 * _MS, "red"), (-1003 * _MS, "red")],
    ids=str,
)
def test_an_offset_of_more_than_a_second_and_the_round_trip_is_red(offset: timedelta, state: str) -> None:
    assert check_clock_offset(_NOW, _NOW + offset, 2 * _MS).state == state


def test_the_direction_of_the_offset_is_named() -> None:
    assert check_clock_offset(_NOW, _NOW + 3000 * _MS, _MS).text.startswith(
        "the database is 3.000 s ahead of this host"
    )
    assert check_clock_offset(_NOW, _NOW - 3000 * _MS, _MS).text.startswith(
        "the database is 3.000 s behind this host"
    )


def test_a_service_without_a_leader_is_red() -> None:
    assert check_leader("cdc", None, "").state == "red"
    assert "start one with `tocsin run cdc`" in check_leader("cdc", None, "").remedy
    assert check_leader("clock", "host/1", ", epoch 3") == Finding("ok", "clock", "led by host/1, epoch 3")


def test_a_service_that_runs_and_does_not_lead_is_not_started_again() -> None:
    finding = check_leader("clock", None, ", epoch 3", sessions=2)
    assert (finding.state, finding.text) == ("red", "no leader, epoch 3, while a clock runs")
    assert "start" not in finding.remedy
    assert "start" not in Workers(sessions=1).idle("lane data", "no worker reads 8 of 8 partitions").remedy


def test_a_cluster_without_a_majority_is_not_told_to_enable_jetstream() -> None:
    finding = jetstream_failed(ServiceUnavailableError(code=503, err_code=10008))
    assert (finding.state, "(-js)" in finding.remedy, "more than half" in finding.remedy) == (
        "red",
        False,
        True,
    )
    assert "(-js)" in jetstream_failed(TimeoutError()).remedy


def test_commits_that_wait_for_a_standby_explain_what_waits_for_them() -> None:
    assert check_commits(4.9) == []
    (waiting,) = check_commits(55.2)
    assert (waiting.state, "for 55 s" in waiting.text) == ("red", True)
    assert "synchronous_standby_names" in waiting.remedy
    others = [
        check_lane("data", [], None),
        *check_timers([], False, _NOW - timedelta(minutes=1), _NOW),
        *check_timers(["report"], False, None, _NOW),
        Finding("red", "clocks", "the database is 3 s ahead", "look at NTP"),
    ]
    assert explained(others) == others
    assert [finding.remedy for finding in explained([waiting, *others])] == [
        waiting.remedy,
        "it waits for commits, see there",
        "it waits for commits, see there",
        others[2].remedy,
        "look at NTP",
    ]


@pytest.mark.parametrize(
    ("head", "last", "state"),
    [(0, None, "info"), (5, None, "red"), (5, 5, "ok"), (1005, 5, "ok"), (1006, 5, "red"), (5, 6, "red")],
)
def test_the_log_is_red_when_the_stream_is_missing_far_behind_or_ahead(
    head: int, last: int | None, state: str
) -> None:
    assert check_log_lag(head, last, "tocsin").state == state


@pytest.mark.parametrize(("pending", "state"), [(None, "red"), (0, "ok"), (1000, "ok"), (1001, "red")])
def test_workers_are_red_when_they_never_ran_or_lag(pending: int | None, state: str) -> None:
    assert check_worker_lag("dispatch", pending, 0).state == state


def test_parked_and_overdue_timers_are_both_reported() -> None:
    assert [finding.state for finding in check_timers([], False, _NOW, _NOW)] == ["ok"]
    assert [finding.state for finding in check_timers([], False, _NOW - timedelta(seconds=10), _NOW)] == [
        "ok"
    ]
    parked, overdue = check_timers(["a", "b"], True, _NOW - timedelta(seconds=11), _NOW)
    assert parked.text == "2 or more parked after repeated failures: a, b"
    assert overdue.text == "the oldest is overdue by 11 s"


def report(**known: object) -> PublisherReport:
    return replace(PublisherReport(), **known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("known", "state", "text"),
    [
        ({}, "info", "no publisher has compared log and stream yet"),
        ({"at": _NOW, "age_s": 60.0, "compared": 16}, "ok", "60 s ago, 16 records compared, none different"),
        ({"at": _NOW, "age_s": 61.0, "compared": 16}, "red", "the last was 61 s ago, 16 records compared"),
        (_DIVERGED, "red", "diverged since 2026-03-08 07:00:00Z: the stream is at 9, the log only at 7"),
    ],
)
def test_the_stream_check_is_red_with_a_problem_or_when_it_is_old(
    known: dict[str, object], state: str, text: str
) -> None:
    found = check_stream(report(**known), timedelta(minutes=1))
    assert (found.state, found.text.startswith(text)) == (state, True)


def test_recorded_gaps_are_counted_and_the_last_is_named() -> None:
    gaps = [Gap(3, 3, "lost", "ann", _NOW), Gap(7, 10, "dropped", "cdc", _NOW)]
    assert check_log_gaps([]) == []
    assert check_log_gaps(gaps) == [
        Finding("info", "log gaps", "2 recorded, 5 records; the last 7 to 10 (dropped)")
    ]


def test_every_red_finding_has_a_remedy() -> None:
    red = [
        check_stream(report(**_DIVERGED), timedelta(minutes=1)),
        check_stream(report(at=_NOW, age_s=99.0), timedelta(minutes=1)),
        check_clock_offset(_NOW, _NOW + timedelta(hours=1), _MS),
        check_leader("clock", None, ""),
        *(check_log_lag(head, last, "tocsin") for head, last in ((5, None), (9999, 5), (5, 6))),
        *(check_worker_lag("perform", pending, 0) for pending in (None, 9999)),
        *check_timers(["a"], False, _NOW - timedelta(hours=1), _NOW),
    ]
    assert [(finding.state, bool(finding.remedy)) for finding in red] == [("red", True)] * len(red)


def test_an_error_is_split_into_its_message_and_its_remedy() -> None:
    error = Refused("the url is http://x: it is wrong", remedy="set it: now")
    assert failed("x", error) == Finding("red", "x", "the url is http://x: it is wrong", "set it: now")
    assert failed("x", Refused("no")).remedy == "read the log of the service"


def test_the_hosts_own_tz_data_is_named_when_it_differs(tmp_path: Path) -> None:
    file = tmp_path / "tzdata.zi"
    assert system_tz_version(file) is None
    file.write_text("# version 2025b\n# redo\n")
    assert system_tz_version(file) == "2025b"
    file.write_text("R a\n")
    assert system_tz_version(file) is None
    assert check_tz_data("2026f", "2025b").state == "info"
    assert "2025b, is not used" in check_tz_data("2026f", "2025b").text
    assert check_tz_data("2026f", None).state == check_tz_data("2026f", "2026f").state == "ok"


def status(partition: int, holder: str | None = "a", behind_s: float | None = 0.5) -> PartitionStatus:
    return PartitionStatus("data", partition, holder, 7, behind_s)


def test_a_lane_names_its_readers_and_its_watermark() -> None:
    single = check_lane("record", [status(0)], 3)
    assert single == Finding("ok", "lane record", "read by a, 3 messages wait, watermark 0.5 s ago")
    both = check_lane("data", [status(0), status(1, "b", 2.0)], None)
    assert both == Finding("ok", "lane data", "2 partitions read by 2 workers, watermark 2.0 s ago")


@pytest.mark.parametrize(
    ("partitions", "waiting", "text"),
    [
        ([], None, "no worker has run yet"),
        ([status(0), status(1, None), status(2, None)], 0, "no worker reads 2 of 3 partitions: 1, 2"),
        ([status(0), status(1, behind_s=10.1)], 0, "watermark 10.1 s ago"),
        ([status(0)], 1001, "1001 messages wait"),
    ],
)
def test_a_lane_without_a_reader_or_that_is_behind_is_red(
    partitions: list[PartitionStatus], waiting: int | None, text: str
) -> None:
    found = check_lane("data", partitions, waiting)
    assert found.state == "red"
    assert text in found.text
    assert "tocsin run worker" in found.remedy


def test_a_lane_whose_canaries_are_not_accepted_names_the_cause() -> None:
    failing = status(1, behind_s=3.5)._replace(canary_error="nats: no response from stream")
    found = check_lane("data", [status(0), failing], 0)
    assert found.state == "red"
    assert found.text == (
        "NATS accepts no messages in 1 of 2 partitions (1), producers may not be able to publish: "
        "nats: no response from stream"
    )
    assert "the data stream has a leader" in found.remedy
    assert check_lane("data", [status(0), failing._replace(behind_s=2.9)], 0).state == "ok", "messages arrive"


def test_arrival_gaps_are_counted() -> None:
    assert check_arrival_gaps(RecentGaps(0, 0, None, None)) == Finding(
        "ok", "arrival gaps", "none in the last hour"
    )
    found = check_arrival_gaps(RecentGaps(9, 8, _NOW - timedelta(seconds=6.4), _NOW))
    assert (found.state, found.text) == (
        "info",
        "9 in 8 partitions in the last hour, the last one for 6.4 s until 2026-03-08 07:00:00Z; "
        "deadlines of series were extended",
    )


def test_running_workers_are_not_asked_for_again() -> None:
    orphans = [status(0, None), status(1, None)]
    begun = check_lane("data", orphans, None, Workers(alive=["a"]))
    assert begun.text == "no worker reads 2 of 2 partitions: 0, 1, while a worker is alive"
    assert begun.remedy == "try again in a moment; if it stays, read the logs of the workers"
    reason, remedy = "the stream 'x' has subjects=[]", "correct it with `nats stream edit`"
    problems = Workers(["a"], [WorkerProblem(name, reason, remedy) for name in ("b", "c")])
    for found in (
        check_lane("data", orphans, None, problems),
        check_worker_lag("perform", None, 0, problems),
    ):
        assert found.state == "red"
        assert found.text.endswith("; 2 workers run and cannot work: the stream 'x' has subjects=[]")
        assert found.remedy == "correct it with `nats stream edit`"


def test_held_timers_are_counted_and_red_after_a_while() -> None:
    assert check_held_timers([]).state == "ok"
    held = [
        HeldTimers("data", 1, 3, _NOW - timedelta(seconds=2), _NOW),
        HeldTimers("data", 5, 4, _NOW - timedelta(seconds=9), _NOW),
    ]
    found = check_held_timers(held)
    assert found.state == "ok"
    assert found.text == (
        "7 wait for data that is not read yet, the oldest for 9.0 s; partitions: data 1, data 5"
    )
    found = check_held_timers([*held, HeldTimers("record", 0, 9_993, _NOW - timedelta(seconds=11), _NOW)])
    assert (found.state, found.text[:18]) == ("red", "10000 or more wait")
    assert "tocsin run worker" in found.remedy


def test_retention_shows_the_settings_and_the_last_run() -> None:
    ages = {"records": 90.0, "audit": 730.5}
    never = check_retention(PruneReport(None, None, {}, [], _NOW, False), ages)
    assert never.text.startswith("records 90 days, audit 730.5 days; not run yet")
    hour = timedelta(hours=1)
    running = check_retention(PruneReport(_NOW - hour, None, {"alarm": 12_000}, [], _NOW, True), ages)
    assert running.text.endswith("running since 2026-03-08 06:00:00Z, removed 12,000 of alarm")
    broken = check_retention(PruneReport(_NOW - hour, None, {"alarm": 12_000}, [], _NOW, False), ages)
    assert broken.state == "ok"
    assert broken.text.endswith(
        "interrupted after 2026-03-08 06:00:00Z, removed 12,000 of alarm; the clock continues within an hour"
    )
    held = [{"what": "event_0", "why": "a session uses it"}]
    done = PruneReport(_NOW - hour, _NOW - hour, {}, held, _NOW, False)
    assert check_retention(done, ages).state == "ok"
    assert check_retention(done, ages).text.endswith("removed nothing, kept event_0: a session uses it")


def test_retention_is_red_when_it_cannot_or_does_not_run() -> None:
    day = timedelta(days=1)
    refused = [{"what": "event_0", "why": "only the owner of the schema may drop it"}]
    last = check_retention(PruneReport(_NOW, _NOW, {}, refused, _NOW, False), {})
    assert (last.state, "as the owner" in last.remedy) == ("red", True)
    failed = [{"what": "rule_state", "why": "it failed: invalid input syntax"}]
    assert check_retention(PruneReport(_NOW, _NOW, {}, failed, _NOW, False), {}).state == "red"
    old = check_retention(PruneReport(_NOW - 2 * day, _NOW - 2 * day, {}, [], _NOW, False), {})
    assert (old.state, "a clock leads" in old.remedy) == ("red", True)
    broken = check_retention(PruneReport(_NOW - 2 * day, None, {}, [], _NOW, False), {})
    assert (broken.state, broken.text.endswith("Z, removed nothing")) == ("red", True)
    assert check_retention(PruneReport(_NOW - day, _NOW - day, {}, [], _NOW, False), {}).state == "ok"


def test_runs_that_died_within_a_day_are_red() -> None:
    assert check_dead_runs(0, None).state == "ok"
    finding = check_dead_runs(1_234, _NOW)
    assert finding.state == "red"
    assert finding.text == "1,234 runs died within the last day, the newest at 2026-03-08 07:00:00Z"


@pytest.mark.parametrize(("age", "state"), [(timedelta(hours=24), "red"), (timedelta(hours=25), "info")])
def test_dead_letters_are_red_for_a_day(age: timedelta, state: str) -> None:
    assert check_dead_letters({}, None, _NOW).state == "ok"
    finding = check_dead_letters({"event": 2}, _NOW - age, _NOW)
    assert (finding.state, finding.text.partition(";")[0]) == (state, "2 of kind event")


def test_workers_that_wait_and_timers_that_fail_are_red_with_a_remedy() -> None:
    assert check_worker_problems([]) == check_failing_timers(0, False, None) == []
    (finding,) = check_worker_problems([WorkerProblem("host/1", "partition 3 waits", "restore the right")])
    assert finding == Finding("red", "worker", "host/1: partition 3 waits", "restore the right")
    (finding,) = check_failing_timers(100, True, "CheckViolation: late")
    assert (finding.state, finding.text) == (
        "red",
        "100 or more failed and are retried by themselves, the first with: CheckViolation: late",
    )

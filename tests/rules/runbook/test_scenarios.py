"""Runbooks in virtual time: the instants at which each step began and ended."""

from __future__ import annotations

from datetime import UTC, datetime

from rules.runbook import Completed, Failed, TimedOut
from tests.rules.runbook.simulated_runs import Simulation

STEADY = "retry: {attempts: 3, initial_interval: 10s, jitter: 0}"

ESCALATION = """
- name: notify
  log: {message: please check}
- name: grace
  wait: {for: 10m}
- name: way
  branch:
    when: 'alarm.state == "open"'
    then:
      - name: page
        log: {message: wake up}
"""


def test_an_escalation_pages_when_the_alarm_is_still_open_after_ten_minutes() -> None:
    run = Simulation(ESCALATION)
    assert run.history == ["0s notify completed", "0s grace waiting"]
    run.pass_time("9m59s")
    assert run.history[2:] == []
    run.pass_time("1s")
    assert run.history[2:] == ["10m grace completed", "10m way completed", "10m page completed"]
    assert run.state == "completed"


def test_an_escalation_ends_without_a_page_when_the_alarm_is_no_longer_open() -> None:
    run = Simulation(ESCALATION, way=Completed(branch=1)).pass_time("10m")
    assert run.history[-1] == "10m way completed"
    assert run.state == "completed"


def test_a_step_is_retried_until_it_succeeds() -> None:
    run = Simulation(
        f"""
- name: send
  {STEADY}
  log: {{message: hello}}
- name: after
  log: {{message: done}}
""",
        send=[Failed("503"), TimedOut("no answer"), Completed({"status": 200})],
    ).pass_time("1h")
    assert run.history == [
        "0s send waiting",
        "10s send waiting (2)",
        "30s send completed (3)",
        "30s after completed",
    ]
    assert run.answers["send"] == {"state": "completed", "status": 200}


def test_after_the_last_attempt_the_run_is_dead_and_an_operator_grants_another_round() -> None:
    run = Simulation(
        f"""
- name: send
  {STEADY}
  log: {{message: hello}}
- name: after
  log: {{message: done}}
""",
        send=[*[Failed("503")] * 4, Completed()],
    ).pass_time("1h")
    assert run.history == ["0s send waiting", "10s send waiting (2)", "30s send failed (3)"]
    assert (run.state, run.finished[0].error) == ("failed", "step send: 503")
    run.retry()
    assert run.history[3:] == ["1h send waiting (4)"]
    run.pass_time("1h")
    assert run.history[4:] == ["1h10s send completed (5)", "1h10s after completed"]
    assert run.state == "completed"


def test_a_permanent_error_is_not_retried() -> None:
    run = Simulation("[{name: send, log: {message: x}}]", send=Failed("404", permanent=True))
    assert run.history == ["0s send failed"]
    assert run.state == "failed"


def test_a_step_that_may_fail_is_followed_by_the_next() -> None:
    run = Simulation(
        """
- name: send
  retry: {attempts: 1}
  on_failure: continue
  log: {message: x}
- name: after
  log: {message: y}
""",
        send=Failed("503"),
    )
    assert run.history == ["0s send failed", "0s after completed"]
    assert run.answers["send"] == {"state": "failed", "error": "503"}
    assert run.state == "completed"


def test_branches_run_side_by_side_and_join_once() -> None:
    run = Simulation(
        """
- name: both
  parallel:
    - [{name: quick, log: {message: a}}]
    - [{name: nap, wait: {for: 5m}}, {name: slow, log: {message: b}}]
- name: after
  log: {message: c}
"""
    )
    assert run.history == ["0s both waiting", "0s quick completed", "0s nap waiting"]
    run.pass_time("5m")
    assert run.history[3:] == [
        "5m nap completed",
        "5m slow completed",
        "5m both completed",
        "5m after completed",
    ]


PARALLEL_FAILURE = """
- name: both
  {keys}
  parallel:
    - - name: slack
        retry: {{attempts: 1}}
        log: {{message: a}}
      - name: never
        log: {{message: a}}
    - [{{name: nap, wait: {{for: 5m}}}}, {{name: page, log: {{message: b}}}}]
- name: after
  log: {{message: c}}
"""


def test_a_branch_that_fails_does_not_keep_the_others_from_their_end() -> None:
    run = Simulation(PARALLEL_FAILURE.format(keys="on_failure: stop"), slack=[Failed("503"), Completed()])
    assert run.state == "running"
    run.pass_time("5m")
    assert run.history[1:] == [
        "0s slack failed",
        "0s nap waiting",
        "5m nap completed",
        "5m page completed",
        "5m both failed",
    ]
    assert (run.state, run.finished[0].error) == ("failed", "step slack: 503")
    run.retry()
    assert run.history[6:] == [
        "5m slack completed (2)",
        "5m never completed",
        "5m both completed",
        "5m after completed",
    ]


def test_a_parallel_that_may_fail_is_followed_by_the_next() -> None:
    run = Simulation(PARALLEL_FAILURE.format(keys="on_failure: continue"), slack=Failed("503")).pass_time(
        "5m"
    )
    assert run.history[-2:] == ["5m both failed", "5m after completed"]
    assert run.state == "completed"
    assert run.active == {}


def test_a_dispatch_ends_with_the_report_of_its_consumer() -> None:
    run = Simulation("[{name: backup, dispatch: {subject: jobs.backup, within: 5m}}]")
    assert run.history == ["0s backup waiting"]
    run.pass_time("4m").report("backup", Completed({"files": 7}))
    assert run.history[1:] == ["4m backup completed"]
    assert run.pass_time("1h").history[2:] == []


def test_a_dispatch_without_a_report_is_sent_again_and_times_out_in_the_end() -> None:
    run = Simulation(
        "[{name: backup, dispatch: {subject: jobs.backup, within: 5m}, retry: {attempts: 2, jitter: 0}}]"
    ).pass_time("1h")
    assert run.history == [
        "0s backup waiting",
        "5m backup waiting",
        "5m10s backup waiting (2)",
        "10m10s backup timed_out (2)",
    ]
    assert (run.state, run.finished[0].error) == ("timed_out", "no report")


def test_a_dispatch_that_its_consumer_reports_as_failed_is_sent_again_after_a_back_off() -> None:
    run = Simulation("[{name: backup, dispatch: {subject: jobs.backup}, retry: {attempts: 3, jitter: 0}}]")
    run.pass_time("1m").report("backup", Failed("disk full")).pass_time("10s")
    assert run.history == ["0s backup waiting", "1m backup waiting", "1m10s backup waiting (2)"]
    run.report("backup", Failed("disk full"))
    run.pass_time("20s").report("backup", Completed())
    assert run.history[3:] == [
        "1m10s backup waiting (2)",
        "1m30s backup waiting (3)",
        "1m30s backup completed (3)",
    ]


WAIT_FOR_EVENT = """
- name: deploy
  wait: {until_event: 'type == "deploy-finished"', timeout: 1h, on_timeout: %s}
- name: after
  log: {message: c}
"""


def test_a_wait_ends_with_the_event_it_waits_for() -> None:
    run = Simulation(WAIT_FOR_EVENT % "stop").pass_time("20m").event_for("deploy")
    assert run.history == ["0s deploy waiting", "20m deploy completed", "20m after completed"]
    assert run.answers["deploy"] == {"state": "completed", "event_seq": 7, "timed_out": False}


def test_a_wait_without_its_event_ends_the_run_or_continues_by_on_timeout() -> None:
    stopped = Simulation(WAIT_FOR_EVENT % "stop").pass_time("1h")
    assert stopped.history[1:] == ["1h deploy timed_out"]
    assert stopped.state == "timed_out"
    went_on = Simulation(WAIT_FOR_EVENT % "continue").pass_time("1h")
    assert went_on.history[1:] == ["1h deploy completed", "1h after completed"]
    assert went_on.answers["deploy"] == {"state": "completed", "timed_out": True}


def test_a_wait_until_a_time_of_day_follows_the_clocks_of_its_zone() -> None:
    friday_evening = datetime(2026, 3, 7, 22, 0, tzinfo=UTC)
    steps = "[{name: morning, wait: {until: '08:00', tz: America/New_York}}]"
    # The clocks go forward in the night: 8 in the morning is 12:00 in UTC and no longer 13:00.
    run = Simulation(steps, friday_evening).pass_time("13h59m")
    assert run.history == ["0s morning waiting"]
    assert run.pass_time("1m").history[1:] == ["14h morning completed"]

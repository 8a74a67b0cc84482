"""Runbooks on real servers, in virtual time: their history, timers and messages."""

from __future__ import annotations

import json

from rules.actions.cancel import cancel_runs
from rules.actions.retry import retry_run
from tests.rules.actions.message_receiver import receiver
from tests.rules.instance import Instance
from tests.sql import all_rows
from tocsin.client import report_completed, report_failed
from tocsin.core.audit import Actor
from tocsin.core.settings import Settings

ESCALATION = """
- name: notify
  log: {message: "{{ alarm.message }} at {{ alarm.payload.value }}"}
- wait: {for: 10m}
- branch:
    when: 'alarm.state == "open" && !alarm.acknowledged && answers.notify.state == "completed"'
    then:
      - name: page
        publish: {subject: received.NAMESPACE.page, payload: {owner: "{{ owner }}"}}
"""
ON_ALARM = 'type == "alarm-opened"'


async def escalation(instance: Instance, settings: Settings) -> None:
    await instance.runbook(ESCALATION.replace("NAMESPACE", settings.namespace), ON_ALARM)


async def test_an_alarm_that_stays_open_is_paged_after_ten_minutes(
    instance: Instance, settings: Settings
) -> None:
    await escalation(instance, settings)
    async with receiver(settings) as server:
        await instance.alarm()
        assert await instance.history() == ["0s 0 completed", "0s 1 waiting"]
        await instance.pass_time("9m")
        assert await instance.timers() == 1
        await instance.pass_time("1m")
        await server.wait_for(1)
    assert json.loads(server.messages[0].data) == {"owner": "plant-7"}
    assert (await instance.history())[2:] == ["10m 1 completed", "10m 2 completed", "10m 3 completed"]
    row = await instance.action()
    assert (row["state"], row["active"], row["error"]) == ("completed", {}, None)
    assert row["answers"]["notify"] == {"state": "completed", "message": "too hot at 71.5"}
    assert await instance.timers() == 0


async def test_an_alarm_that_is_acknowledged_is_not_paged(instance: Instance, settings: Settings) -> None:
    await escalation(instance, settings)
    alarm = await instance.alarm()
    await instance.pass_time("9m")
    await instance.acknowledge(alarm)
    assert (await instance.history())[2:] == ["9m 1 cancelled"]
    row = await instance.action()
    assert (row["state"], row["active"], row["error"]) == ("cancelled", {}, "the alarm was acknowledged")
    assert await instance.timers() == 0
    await instance.pass_time("1h")
    assert len(await instance.history()) == 3


async def test_an_alarm_that_resolves_is_not_paged(instance: Instance, settings: Settings) -> None:
    await escalation(instance, settings)
    alarm = await instance.alarm()
    await instance.pass_time("5m")
    await instance.resolve(alarm)
    assert (await instance.history())[2:] == ["5m 1 cancelled"]
    assert (await instance.action())["error"] == "the alarm resolved"


async def test_what_an_alarm_starts_when_it_resolves_is_not_cancelled_by_it(instance: Instance) -> None:
    await instance.runbook("- log: {message: over}", 'type == "alarm-resolved"')
    await instance.resolve(await instance.alarm())
    assert (await instance.action())["state"] == "completed"


BACKUP = """
- name: backup
  retry: {attempts: 3, initial_interval: 10s, jitter: 0}
  dispatch: {subject: received.NAMESPACE.backup, within: 5m, payload: {disk: "{{ payload.disk }}"}}
- log: {message: "{{ answers.backup.files }} files"}
"""


async def dispatch_backup(instance: Instance, settings: Settings) -> None:
    await instance.runbook(BACKUP.replace("NAMESPACE", settings.namespace))
    await instance.event(payload={"disk": "sda"})


async def test_a_dispatched_step_is_tried_until_its_consumer_reports_success(
    instance: Instance, settings: Settings
) -> None:
    async with receiver(settings) as server:
        await dispatch_backup(instance, settings)
        action = (await instance.action())["id"]
        await instance.pass_time("1m")
        assert await report_failed(instance.connection, action, 0, "disk full", attempt=1)
        await instance.pass_time("10s")
        await instance.pass_time("1m")
        assert await report_completed(instance.connection, action, 0, {"files": 7})
        await instance.pass_time("1s")
        await server.wait_for(2)
    assert await instance.history() == [
        "0s 0 waiting",
        "1m 0 waiting",
        "1m10s 0 waiting (2)",
        "2m10s 0 completed (2)",
        "2m10s 1 completed",
    ]
    headers = [message.headers or {} for message in server.messages]
    assert [one["Tocsin-Attempt"] for one in headers] == ["1", "2"]
    assert {one["Tocsin-Idempotency-Key"] for one in headers} == {f"{action}/0"}
    assert len({one["Nats-Msg-Id"] for one in headers}) == 2
    token = headers[0]["Tocsin-Report-Token"]
    assert headers[0]["Tocsin-Report"] == f"{settings.subjects}.report.{action}.0.{token}"
    row = await instance.action()
    assert (row["state"], row["result"]) == ("completed", {"message": "7 files"})
    assert await instance.timers() == 0


async def test_a_dispatched_step_without_a_report_times_out_and_a_late_report_is_kept(
    instance: Instance, settings: Settings
) -> None:
    await dispatch_backup(instance, settings)
    await instance.pass_time("1h")
    row = await instance.action()
    assert (row["state"], row["error"]) == ("timed_out", "step backup: no report arrived within 5m")
    assert (await instance.history())[-1] == "15m30s 0 timed_out (3)"
    assert await report_completed(instance.connection, row["id"], 0, {"files": 7})
    await instance.pass_time("1s")
    assert (await instance.history())[-1] == "1h 0 completed (3)"
    late = await instance.action()
    assert (late["state"], late["answers"]["0"]["late"]) == ("timed_out", True)
    assert late["answers"]["0"]["result"] == {"files": 7}
    assert not await report_completed(instance.connection, row["id"], 0), "it is known already"


async def test_a_dead_run_is_retried_by_an_operator_from_the_failed_step(
    instance: Instance, settings: Settings
) -> None:
    await dispatch_backup(instance, settings)
    await instance.pass_time("1h")
    action = (await instance.action())["id"]
    assert await retry_run(instance.connection, action, Actor("ann", "test", instance.clock.now())) == [0]
    await instance.drain()
    assert (await instance.action())["state"] == "running"
    await instance.pass_time("1m")
    await report_completed(instance.connection, action, 0, {"files": 1})
    await instance.pass_time("1s")
    row = await instance.action()
    assert (row["state"], row["error"], row["result"]) == ("completed", None, {"message": "1 files"})
    assert (await instance.history())[-2:] == ["1h1m 0 completed (4)", "1h1m 1 completed"]
    (audit,) = await all_rows(instance.connection, "select * from tocsin.audit where verb = 'retry'")
    assert (audit["who"], audit["verb"], audit["name"]) == ("ann", "retry", "book")


async def test_branches_run_side_by_side_and_join(instance: Instance) -> None:
    await instance.runbook(
        """
- parallel:
    - [{log: {message: a}}, {wait: {for: 1m}}]
    - [{wait: {for: 5m}}]
    - [{log: {message: b}}]
- log: {message: after}
"""
    )
    await instance.event()
    assert await instance.timers() == 2
    await instance.pass_time("5m")
    assert (await instance.history())[-3:] == ["5m 3 completed", "5m 0 completed", "5m 5 completed"]
    assert (await instance.action())["state"] == "completed"


WAIT = """
- name: deploy
  wait: {until_event: 'type == "deployed" && owner == trigger.owner', timeout: 1h, on_timeout: stop}
- log: {message: "{{ answers.deploy.event.payload.version }}"}
"""


async def test_a_wait_ends_with_the_first_event_after_it_that_meets_its_condition(instance: Instance) -> None:
    await instance.event("deployed", owner="shop", payload={"version": 1})
    await instance.runbook(WAIT)
    await instance.event(owner="shop")
    await instance.pass_time("10m")
    await instance.event("deployed", owner="other", payload={"version": 2})
    assert (await instance.action())["state"] == "running"
    await instance.event("deployed", owner="shop", payload={"version": 3})
    row = await instance.action()
    assert (row["state"], row["result"]) == ("completed", {"message": "3"})
    assert await instance.timers() == 0
    assert await all_rows(instance.connection, "select * from tocsin.action_wait") == []


async def test_a_wait_whose_event_does_not_come_ends_with_its_timeout(instance: Instance) -> None:
    await instance.runbook(WAIT)
    await instance.event(owner="shop")
    await instance.pass_time("1h")
    row = await instance.action()
    assert (row["state"], row["error"]) == ("timed_out", "step deploy: no event met the condition within 1h")
    assert await all_rows(instance.connection, "select * from tocsin.action_wait") == []
    await instance.event("deployed", owner="shop")
    assert (await instance.action())["state"] == "timed_out"


async def test_an_emitted_event_is_appended_with_the_outcome_and_carries_its_lineage(
    instance: Instance,
) -> None:
    await instance.runbook('- emit: {type: restart-requested, payload: {n: "{{ payload.n }}"}}')
    await instance.event(owner="shop", payload={"n": 7})
    row = await instance.action()
    assert row["state"] == "completed"
    (event,) = await all_rows(
        instance.connection, "select * from tocsin.event where type = 'restart-requested'"
    )
    assert (event["origin"], event["owner"], event["payload"], event["action"]) == (
        "caused",
        "shop",
        {"n": 7},
        "book",
    )
    assert (event["correlation_id"], event["source_event_id"]) == (row["correlation_id"], row["event_id"])
    (lineage,) = await all_rows(instance.connection, "select * from tocsin.event_lineage")
    assert (lineage["event_id"], lineage["lineage"]) == (event["id"], ["each"])


async def test_an_action_that_would_start_itself_again_is_recorded_as_suppressed(instance: Instance) -> None:
    await instance.runbook("- emit: {type: noted}")
    await instance.event(owner="shop")
    first, second = await all_rows(instance.connection, "select * from tocsin.action order by event_seq")
    assert (first["state"], first["lineage"]) == ("completed", [])
    assert (second["state"], second["lineage"], second["active"]) == ("skipped", ["each"], {})
    assert second["error"] == "suppressed: it would start itself again, each -> each"
    assert (await instance.history())[-1] == "0s 0 skipped"
    assert len(await all_rows(instance.connection, "select * from tocsin.event where type = 'noted'")) == 2


async def test_an_event_that_ends_a_wait_removes_its_timer(instance: Instance) -> None:
    await instance.runbook(
        "- wait: {until_event: 'type == \"go\"', timeout: 1h, on_timeout: stop}\n- wait: {for: 10m}"
    )
    await instance.event()
    await instance.event("go")
    (timer,) = await all_rows(instance.connection, "select key from tocsin.timer")
    assert timer["key"] == "1"


async def test_an_event_between_the_trigger_and_the_begin_of_the_wait_ends_it(instance: Instance) -> None:
    """However late the lane reads it."""
    await instance.runbook("- log: {message: a}\n- wait: {until_event: 'type == \"go\"'}")
    await instance.append("noted")
    await instance.read_lane()
    await instance.append("go")
    await instance.perform_due()
    await instance.perform_due()
    assert (await instance.history())[-1] == "0s 1 waiting"
    await instance.drain()
    assert (await instance.action())["state"] == "completed"


async def test_a_cancelled_action_waits_for_no_event(instance: Instance) -> None:
    await instance.runbook("- wait: {until_event: 'type == \"go\"'}")
    await instance.event()
    assert await cancel_runs(instance.connection, {(await instance.action())["id"]: "enough"})
    assert await all_rows(instance.connection, "select * from tocsin.action_wait") == []
    await instance.event("go")
    assert await instance.history() == ["0s 0 waiting", "0s 0 cancelled"]

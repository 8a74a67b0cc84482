"""How runs end: `ends_with` of an action_rule, and `finally` of an action."""

from __future__ import annotations

import json

import pytest

from rules.actions.cancel import cancel_runs
from rules.actions.retry import retry_run
from rules.documents.load import RulesInvalid
from tests.rules.actions.message_receiver import receiver
from tests.rules.instance import START, Instance
from tests.sql import all_rows
from tocsin.core.audit import Actor
from tocsin.core.settings import Settings

TICKET = """
action:
  name: ticket
  steps:
    - name: open
      publish: {subject: received.NAMESPACE.open, payload: {alarm: "{{ alarm.id }}"}}
    - wait: {for: 4h}
    - publish: {subject: received.NAMESPACE.remind}
  finally:
    - publish:
        subject: received.NAMESPACE.close
        payload: {ticket: "{{ answers.open.state }}", alarm: "{{ alarm.state }}"}
---
action_rule: {name: tickets, on: alarm, action: ticket ENDS}
"""
SLOW = """
action:
  name: book
  steps:
    - log: {message: begun}
    - wait: {for: 1h}
    - log: {message: over}
---
action_rule: {name: each, on: alarm, action: book, ends_with: ENDS}
"""


async def state(instance: Instance) -> tuple[str, str | None]:
    row = await instance.action()
    return row["state"], row["error"]


@pytest.mark.parametrize(
    ("ends_with", "acknowledged", "resolved"),
    [
        ("[resolved, acknowledged]", "cancelled", "cancelled"),
        ("[resolved]", "completed", "cancelled"),
        ("[acknowledged]", "cancelled", "completed"),
        ("never", "completed", "completed"),
    ],
)
async def test_a_run_is_cancelled_by_the_transitions_of_ends_with(
    instance: Instance, ends_with: str, acknowledged: str, resolved: str
) -> None:
    await instance.rules(SLOW.replace("ENDS", ends_with))
    await instance.acknowledge(await instance.alarm())
    await instance.resolve(await instance.alarm(owner="plant-8"))
    await instance.pass_time("2h")
    rows = await all_rows(instance.connection, "select owner, state from tocsin.action order by owner")
    assert [row["state"] for row in rows] == [acknowledged, resolved]


async def test_finally_closes_the_ticket_when_the_alarm_resolves(
    instance: Instance, settings: Settings
) -> None:
    await instance.rules(TICKET.replace("NAMESPACE", settings.namespace).replace("ENDS", ""))
    async with receiver(settings) as server:
        alarm = await instance.alarm()
        await instance.pass_time("1h")
        await instance.resolve(alarm)
        await server.wait_for(2)
    subjects = [message.subject.split(".")[-1] for message in server.messages]
    assert subjects == ["open", "close"]
    assert json.loads(server.messages[1].data) == {"ticket": "completed", "alarm": "resolved"}
    assert await state(instance) == ("cancelled", "the alarm resolved")
    assert await instance.history() == ["0s 0 completed", "0s 1 waiting", "1h 1 cancelled", "1h 3 completed"]
    assert await instance.timers() == 0


async def test_finally_runs_once_when_the_run_has_ended_by_itself(
    instance: Instance, settings: Settings
) -> None:
    await instance.rules(TICKET.replace("NAMESPACE", settings.namespace).replace("ENDS", ""))
    async with receiver(settings) as server:
        alarm = await instance.alarm()
        await instance.pass_time("4h")
        await instance.resolve(alarm)
        await server.wait_for(3)
    assert [message.subject.split(".")[-1] for message in server.messages] == ["open", "remind", "close"]
    assert await state(instance) == ("completed", None)


async def test_finally_does_not_run_for_a_group_that_has_not_begun(instance: Instance) -> None:
    await instance.rules("""
action: {name: book, log: {message: begun}, finally: [log: {message: over}]}
---
action_rule: {name: each, on: alarm, action: book, group_by: [rule], group_wait: 1m}
""")
    await instance.resolve(await instance.alarm())
    assert await instance.history() == ["0s 0 cancelled"]
    assert (await state(instance))[0] == "cancelled"


FAILING = """
action:
  name: book
  steps:
    - {name: work, retry: {attempts: 1}, log: {message: "{{ payload.missing }}"}}
  finally:
    - log: {message: over}
---
action_rule: {name: each, on: event, when: 'type == "noted"', action: book}
"""


async def test_finally_runs_after_a_failure_and_not_again_after_a_retry(instance: Instance) -> None:
    await instance.rules(FAILING)
    await instance.event()
    assert await instance.history() == ["0s 0 failed", "0s 1 completed"]
    row = await instance.action()
    assert row["state"] == "failed"
    assert "step work" in row["error"]
    await retry_run(instance.connection, row["id"], Actor("ann", "test", START))
    await instance.drain()
    assert await instance.history() == ["0s 0 failed", "0s 1 completed", "0s 0 failed (2)"]
    assert (await state(instance))[0] == "failed"


async def test_a_run_whose_finally_fails_is_dead_and_can_be_retried(instance: Instance) -> None:
    await instance.rules("""
action:
  name: book
  steps: [wait: {for: 1h}]
  finally:
    - {name: close, retry: {attempts: 1}, log: {message: "{{ payload.missing }}"}}
---
action_rule: {name: each, on: alarm, action: book}
""")
    await instance.resolve(await instance.alarm())
    row = await instance.action()
    assert row["state"] == "failed"
    assert "close" in row["error"]
    assert await retry_run(instance.connection, row["id"], Actor("ann", "test", START)) == [1]


async def test_an_operator_cancels_a_run_and_then_its_finally(instance: Instance) -> None:
    await instance.rules("""
action:
  name: book
  steps: [wait: {for: 1h}]
  finally:
    - {dispatch: {subject: received.nowhere, within: 1h}}
---
action_rule: {name: each, on: event, when: 'type == "noted"', action: book}
""")
    await instance.event()
    id = (await instance.action())["id"]
    assert await cancel_runs(instance.connection, {id: "enough"}) == [id]
    await instance.drain()
    assert (await state(instance))[0] == "running"
    assert await cancel_runs(instance.connection, {id: "enough"}) == [id]
    assert await state(instance) == ("cancelled", "enough")
    assert await instance.timers() == 0


async def test_a_queued_run_begins_after_the_finally_of_the_one_before(instance: Instance) -> None:
    await instance.rules("""
action:
  name: book
  steps: [wait: {for: 1h}]
  finally: [log: {message: over}]
---
action_rule: {name: each, on: event, when: 'type == "noted"', action: book, overlap: queue}
""")
    await instance.event()
    await instance.event()
    await instance.pass_time("1h")
    rows = await all_rows(instance.connection, "select state from tocsin.action order by event_seq")
    assert [row["state"] for row in rows] == ["completed", "running"]
    await instance.pass_time("1h")
    rows = await all_rows(instance.connection, "select state from tocsin.action order by event_seq")
    assert [row["state"] for row in rows] == ["completed", "completed"]


async def test_finally_that_waits_is_refused(instance: Instance) -> None:
    with pytest.raises(RulesInvalid, match="has 'wait' in 'finally', which must not wait"):
        await instance.rules("action: {name: a, log: {message: x}, finally: [wait: {for: 1m}]}")


DUE = """
- log: {message: begun}
- wait:
    until_event: 'type == "job-done" && owner == trigger.owner'
    timeout: 20s
    on_timeout: stop
"""


async def test_an_event_between_the_trigger_and_the_wait_ends_the_wait(instance: Instance) -> None:
    await instance.runbook(DUE, 'type == "job-due"')
    await instance.append("job-done", owner="db")
    await instance.append("job-due", owner="db")
    await instance.append("job-done", owner="web")
    done = await instance.append("job-done", owner="db")
    await instance.read_lane()
    await instance.drain()
    row = await instance.action()
    assert row["state"] == "completed"
    assert row["answers"]["1"]["event_seq"] == done
    assert await instance.timers() == 0


async def test_an_event_before_the_trigger_does_not_end_the_wait(instance: Instance) -> None:
    await instance.runbook(DUE, 'type == "job-due"')
    await instance.append("job-done", owner="db")
    await instance.event("job-due", owner="db")
    assert (await state(instance))[0] == "running"
    waits = await all_rows(instance.connection, "select is_new from tocsin.action_wait")
    assert waits == [{"is_new": False}]
    await instance.pass_time("20s")
    assert (await state(instance))[0] == "timed_out"

"""`tocsin schedule run` starts what a fire starts, and is no occurrence of the schedule (I1)."""

from __future__ import annotations

from clock.schedule_commands import run_now
from tests.rules.instance import START, Instance
from tests.sql import all_rows
from timers.schedules import find_schedule
from tocsin.core.audit import Actor

DIGEST = """
schedule: {name: digest, type: digest-due, every: 1h, action: send, payload: {k: 1}}
---
action: {name: send, log: {message: "{{ payload.k }} {{ manual }}"}}
---
action: {name: note, log: {message: noted}}
---
action_rule: {name: by-origin, on: event, when: 'origin == "scheduled" && schedule == "digest"', action: note}
---
action_rule: {name: by-type, on: event, when: 'type == "digest-due"', action: note}
---
action_rule: {name: fires-only, on: event, when: 'type == "digest-due" && !manual', action: note}
---
action_rule: {name: manual-only, on: event, when: 'manual', action: note}
"""
ACTOR = Actor("ann", "test", START)


async def completed(instance: Instance) -> list[str]:
    rows = await all_rows(
        instance.connection,
        "select action_rule as rule from tocsin.action where state = 'completed' order by action_rule",
    )
    return [row["rule"] for row in rows]


async def test_a_manual_run_performs_the_action_and_the_rules_over_the_schedule(instance: Instance) -> None:
    await instance.rules(DIGEST)
    await run_now(instance.connection, "", "digest", ACTOR)
    await instance.drain()
    assert await completed(instance) == ["by-origin", "by-type", "manual-only", "schedule:digest"]
    rows = await all_rows(instance.connection, "select result from tocsin.action where name = 'send'")
    assert [row["result"]["message"] for row in rows] == ["1 true"]


async def test_a_fire_is_not_manual(instance: Instance) -> None:
    await instance.rules(DIGEST)
    await instance.pass_time("1h")
    assert await completed(instance) == ["by-origin", "by-type", "fires-only", "schedule:digest"]


async def test_a_manual_run_does_not_change_the_status_of_a_one_shot(instance: Instance) -> None:
    await instance.rules("""
schedule: {name: once, at: "2026-03-02T09:00:00Z", action: break}
---
action: {name: break, retry: {attempts: 1}, log: {message: "{{ payload.missing }}"}}
""")
    await instance.pass_time("30m")
    await run_now(instance.connection, "", "once", ACTOR)
    await instance.drain()
    row = await find_schedule(instance.connection, "", "once")
    assert row is not None
    assert (row["status"], row["last_occurrence"]) == ("active", None)
    await instance.pass_time("2h")
    await instance.connection.execute("update tocsin.schedule set status = 'fired'")
    await run_now(instance.connection, "", "once", ACTOR)
    await instance.drain()
    row = await find_schedule(instance.connection, "", "once")
    assert row is not None
    assert row["status"] == "fired"

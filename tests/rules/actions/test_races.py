"""Outcomes, cancels, fires, events and reports at the same moment: one wins, in both orders,
nothing is half done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from nats.aio.client import Client

from rules.actions.cancel import cancel_runs
from rules.actions.performer import perform_step
from rules.dispatch.event_waits import WakeRuns
from rules.dispatch.wait_matcher import EventWait, MetWait
from tests.rules.actions.performed_steps import after_the_effect, step_context
from tests.rules.apply.apply_setup import step_bodies
from tests.rules.instance import Instance
from tests.sessions import Sessions
from tests.sql import all_rows, blocked
from tests.wait import eventually
from tocsin.client import report_completed
from tocsin.core.db import Connection
from tocsin.core.record_log import append_records
from tocsin.core.settings import Settings


async def until_blocked(watch: Connection, session: Connection, what: str) -> None:
    async def waits() -> bool:
        return await blocked(watch, session)

    await eventually(waits, what)


async def interrupt_after_the_action_moved(
    monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], Awaitable[None]]
) -> None:
    """Let something happen once, while an outcome is written and not committed."""
    left = [meanwhile]

    async def slow(*arguments: Any) -> None:
        if left:
            await left.pop()()
        await append_records(*arguments)

    monkeypatch.setattr("rules.actions.commit.append_records", slow)


async def test_a_cancel_between_an_effect_and_its_outcome_wins(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    await instance.runbook("- log: {message: a}\n- log: {message: b}")

    async def cancel() -> None:
        (row,) = await all_rows(instance.connection, "select id from tocsin.action")
        await cancel_runs(instance.connection, {row["id"]: "enough"})

    after_the_effect(monkeypatch, "log", cancel)
    await instance.event()
    assert await instance.history() == ["0s 0 cancelled"]
    row = await instance.action()
    assert (row["state"], row["result"], row["answers"]) == ("cancelled", None, {})


async def test_a_cancel_during_the_commit_of_an_outcome_waits_and_cancels_what_follows(
    instance: Instance, sessions: Sessions, watch: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await instance.runbook("- log: {message: a}\n- wait: {for: 1h}")
    other = await instance.with_its_time(await sessions("canceller"))
    cancelling: list[asyncio.Task[Any]] = []

    async def cancel() -> None:
        (row,) = await all_rows(instance.connection, "select id from tocsin.action")
        cancelling.append(asyncio.create_task(cancel_runs(other, {row["id"]: "enough"})))
        await until_blocked(watch, other, "the cancel waits for the outcome")

    await interrupt_after_the_action_moved(monkeypatch, cancel)
    await instance.event()
    assert await cancelling[0]
    assert (await instance.history())[0] == "0s 0 completed"
    assert (await instance.action())["state"] == "cancelled"
    assert (await instance.action())["active"] == {}
    await instance.drain()
    assert await instance.timers() == 0


async def test_a_step_that_begins_to_wait_while_it_is_cancelled_leaves_no_timer(
    instance: Instance, sessions: Sessions, watch: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancel removes timers first: the one of a wait that commits after that is found, and it
    begins again."""
    await instance.runbook("- wait: {for: 1h}")
    other = await instance.with_its_time(await sessions("canceller"))
    cancelling: list[asyncio.Task[Any]] = []

    async def cancel() -> None:
        (row,) = await all_rows(instance.connection, "select id from tocsin.action")
        cancelling.append(asyncio.create_task(cancel_runs(other, {row["id"]: "enough"})))
        await until_blocked(watch, other, "the cancel waits for the outcome")

    await interrupt_after_the_action_moved(monkeypatch, cancel)
    await instance.event()
    assert await cancelling[0]
    assert [line.split(" ", 1)[1] for line in await instance.history()] == ["0 waiting", "0 cancelled"]
    assert await instance.timers() == 0


async def test_branches_that_end_at_the_same_moment_join_once(
    instance: Instance, sessions: Sessions, settings: Settings, bus: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each finds that the other has moved the action on, and reads again."""
    await instance.runbook(
        "- parallel: [[{log: {message: a}}], [{emit: {type: b}}]]\n- log: {message: after}"
    )
    other = step_context(settings, await instance.with_its_time(await sessions("other")), bus)

    async def the_other_branch() -> None:
        for body in await step_bodies(instance.connection):
            await perform_step(other, body)

    await instance.event("unrelated")
    after_the_effect(monkeypatch, "emit", the_other_branch)
    await instance.event()
    assert sorted((await instance.history())[1:3]) == ["0s 1 completed", "0s 2 completed"]
    assert (await instance.history())[3:] == ["0s 0 completed", "0s 3 completed"]
    assert (await instance.action())["state"] == "completed"
    assert len(await all_rows(instance.connection, "select * from tocsin.event where type = 'b'")) == 1


async def test_a_report_before_the_commit_of_the_worker_counts(
    instance: Instance, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await instance.runbook(f"- dispatch: {{subject: received.{settings.namespace}.x, within: 1m}}")

    async def report() -> None:
        row = await instance.action()
        assert await report_completed(instance.connection, row["id"], 0, {"files": 7})
        await instance.fire()

    after_the_effect(monkeypatch, "dispatch", report)
    await instance.event()
    row = await instance.action()
    assert (row["state"], row["result"]) == ("completed", {"files": 7})
    assert await instance.history() == ["0s 0 completed"]
    assert await instance.timers() == 0


async def test_a_report_and_a_deadline_at_the_same_moment_are_a_completed_step(
    instance: Instance, settings: Settings
) -> None:
    await instance.runbook(f"- dispatch: {{subject: received.{settings.namespace}.x, within: 1m}}")
    await instance.event()
    row = await instance.action()
    await instance.be_at("1m")
    assert await report_completed(instance.connection, row["id"], 0)
    await instance.pass_time("1h")
    assert await instance.history() == ["0s 0 waiting", "1m 0 completed"]


WAIT = """
- name: wait
  wait: {until_event: 'type == "go"', timeout: 1m, on_timeout: continue}
- log: {message: "{{ answers.wait.timed_out }}"}
"""


async def test_a_deadline_that_comes_before_the_event_of_the_same_moment_wins(instance: Instance) -> None:
    await instance.runbook(WAIT)
    await instance.event()
    await instance.be_at("1m")
    await instance.fire()
    await instance.event("go")
    assert (await instance.action())["result"] == {"message": "true"}
    assert await all_rows(instance.connection, "select * from tocsin.action_wait") == []


async def test_an_event_that_comes_before_the_deadline_of_the_same_moment_wins(instance: Instance) -> None:
    await instance.runbook(WAIT)
    await instance.event()
    await instance.be_at("1m")
    await instance.event("go")
    await instance.fire()
    await instance.drain()
    assert (await instance.action())["result"] == {"message": "false"}
    assert await instance.timers() == 0


async def test_an_event_that_comes_while_the_deadline_commits_waits_and_finds_it_over(
    instance: Instance, sessions: Sessions, watch: Connection
) -> None:
    await instance.runbook(WAIT)
    await instance.event()
    row = await instance.action()
    lane = await sessions("lane")
    waking = WakeRuns([MetWait(EventWait(row["id"], 0, 1, "", 0, {}), 99)])
    async with instance.connection.transaction():
        await instance.connection.execute(
            "update tocsin.action set active = jsonb_set(active, '{0,state}', '\"due\"'), version = version + 1"
        )
        blocked_lane = asyncio.create_task(waking.write_entities(lane))
        await until_blocked(watch, lane, "the event waits for the fire")
    await blocked_lane
    assert list(waking.records_to_append().steps) == []
    assert "met" not in (await instance.action())["active"]["0"]

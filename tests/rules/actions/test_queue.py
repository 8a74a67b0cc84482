"""Actions that take turns: the next begins when the one before it has ended, and none is
forgotten."""

from __future__ import annotations

from rules.actions.cancel import cancel_runs
from rules.actions.queue import begin_queued
from tests.rules.instance import Instance
from tests.sessions import Sessions
from tests.sql import all_rows

QUEUE = "  overlap: queue\n"


async def states(instance: Instance) -> list[str]:
    return [
        row["state"]
        for row in await all_rows(instance.connection, "select state from tocsin.action order by event_seq")
    ]


async def test_a_queued_action_begins_when_the_one_before_it_has_ended(instance: Instance) -> None:
    await instance.runbook("- wait: {for: 1m}", keys=QUEUE)
    for _ in range(3):
        await instance.event()
    assert await states(instance) == ["running", "queued", "queued"]
    await instance.pass_time("1m")
    assert await states(instance) == ["completed", "running", "queued"]
    await instance.pass_time("2m")
    assert await states(instance) == ["completed", "completed", "completed"]


async def test_a_queued_action_begins_when_the_one_before_it_is_cancelled_or_dead(instance: Instance) -> None:
    await instance.runbook("- wait: {until_event: 'false', timeout: 1m, on_timeout: stop}", keys=QUEUE)
    for _ in range(3):
        await instance.event()
    (first,) = await all_rows(instance.connection, "select id from tocsin.action where state = 'running'")
    assert await cancel_runs(instance.connection, {first["id"]: "enough"}) == [first["id"]]
    await instance.drain()
    assert await states(instance) == ["cancelled", "running", "queued"]
    await instance.pass_time("1m")
    assert await states(instance) == ["cancelled", "timed_out", "running"]


async def test_a_queued_run_that_was_locked_at_that_moment_begins_with_the_next_batch(
    instance: Instance, sessions: Sessions
) -> None:
    await instance.runbook("- wait: {for: 1m}", keys=QUEUE)
    await instance.event()
    await instance.event()
    other = await sessions("other")
    async with other.transaction():
        await other.execute("select from tocsin.action where state = 'queued' for update")
        await instance.be_at("1m")
        await instance.fire()
        await instance.perform_due()
        assert await states(instance) == ["completed", "queued"]
    await instance.drain()
    assert await states(instance) == ["completed", "running"]


async def test_the_next_one_begins_in_the_transaction_that_ends_the_one_before(instance: Instance) -> None:
    await instance.runbook("- wait: {for: 1m}", keys=QUEUE)
    for _ in range(3):
        await instance.event()
    await instance.be_at("1m")
    await instance.fire()
    await instance.perform_due()
    assert await states(instance) == ["completed", "running", "queued"]
    (second,) = await all_rows(instance.connection, "select id from tocsin.action where state = 'running'")
    await cancel_runs(instance.connection, {second["id"]: "enough"})
    assert await states(instance) == ["completed", "cancelled", "running"]


async def test_no_run_begins_while_another_one_is_active(instance: Instance) -> None:
    await instance.runbook("- wait: {for: 1m}", keys=QUEUE)
    await instance.event()
    await instance.event()
    assert await begin_queued(instance.connection, [("each", "")]) == []
    assert await states(instance) == ["running", "queued"]

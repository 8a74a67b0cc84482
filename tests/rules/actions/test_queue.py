"""Actions that take turns: the next begins when the one before it has ended, and none is forgotten."""

from __future__ import annotations

from rules.actions.cancel import cancel_actions
from rules.actions.queue import begin_queued
from tests.rules.instance import House
from tests.sessions import Sessions
from tests.sql import all_rows

QUEUE = "  overlap: queue\n"


async def states(house: House) -> list[str]:
    return [
        row["state"]
        for row in await all_rows(house.connection, "select state from tocsin.action order by event_seq")
    ]


async def test_a_queued_action_begins_when_the_one_before_it_has_ended(house: House) -> None:
    await house.runbook("- wait: {for: 1m}", keys=QUEUE)
    for _ in range(3):
        await house.event()
    assert await states(house) == ["running", "queued", "queued"]
    await house.pass_time("1m")
    assert await states(house) == ["completed", "running", "queued"]
    await house.pass_time("2m")
    assert await states(house) == ["completed", "completed", "completed"]


async def test_a_queued_action_begins_when_the_one_before_it_is_cancelled_or_dead(house: House) -> None:
    await house.runbook("- wait: {until_event: 'false', timeout: 1m, on_timeout: stop}", keys=QUEUE)
    for _ in range(3):
        await house.event()
    (first,) = await all_rows(house.connection, "select id from tocsin.action where state = 'running'")
    assert await cancel_actions(house.connection, {first["id"]: "enough"}) == [first["id"]]
    await house.settle()
    assert await states(house) == ["cancelled", "running", "queued"]
    await house.pass_time("1m")
    assert await states(house) == ["cancelled", "timed_out", "running"]


async def test_a_queued_action_that_somebody_held_at_that_moment_begins_with_the_next_batch(
    house: House, sessions: Sessions
) -> None:
    await house.runbook("- wait: {for: 1m}", keys=QUEUE)
    await house.event()
    await house.event()
    other = await sessions("other")
    async with other.transaction():
        await other.execute("select from tocsin.action where state = 'queued' for update")
        await house.be_at("1m")
        await house.fire()
        await house.perform_due()
        assert await states(house) == ["completed", "queued"]
    await house.settle()
    assert await states(house) == ["completed", "running"]


async def test_the_next_one_begins_in_the_transaction_that_ends_the_one_before(house: House) -> None:
    await house.runbook("- wait: {for: 1m}", keys=QUEUE)
    for _ in range(3):
        await house.event()
    await house.be_at("1m")
    await house.fire()
    await house.perform_due()
    assert await states(house) == ["completed", "running", "queued"]
    (second,) = await all_rows(house.connection, "select id from tocsin.action where state = 'running'")
    await cancel_actions(house.connection, {second["id"]: "enough"})
    assert await states(house) == ["completed", "cancelled", "running"]


async def test_nothing_begins_while_another_one_is_under_way(house: House) -> None:
    await house.runbook("- wait: {for: 1m}", keys=QUEUE)
    await house.event()
    await house.event()
    assert await begin_queued(house.connection, [("each", "")]) == []
    assert await states(house) == ["running", "queued"]

"""Limits, groups and overlaps on real rows: what is skipped is recorded, and races have one
winner."""

from __future__ import annotations

from typing import Any

import pytest

from clock.term import begin_term
from rules.dispatch.dispatcher import Dispatcher
from rules.lanes.batch import PhasedPlan
from schemas.wire.event import Event
from tests.clock.clock_setup import at, drain
from tests.rules.alarms.alarm_batches import virtual_now
from tests.rules.apply.apply_setup import action, actions, event_bodies, note, put, rows, rule
from tests.sessions import Sessions
from tocsin.core.db import Connection
from tocsin.core.errors import Conflict


@pytest.fixture(autouse=True)
async def begun(connection: Connection) -> None:
    await virtual_now(connection, at(0))


async def apply(connection: Connection, extra: str, when: str = 'type == "noted"') -> None:
    await put(connection, action("tell") + rule("each", "tell", when, extra))


async def noted(connection: Connection, seconds: float, **fields: Any) -> int:
    await virtual_now(connection, at(seconds))
    return await note(connection, **fields)


class Lane:
    """Brings each event once, as the record lane does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._dispatcher = Dispatcher()
        self._read = 0

    async def dispatch(self) -> None:
        bodies = await event_bodies(self._connection, self._read)
        found = [Event.model_validate_json(body) for body in bodies]
        await self._write(found)
        self._read = found[-1].seq

    async def planned(self) -> PhasedPlan:
        bodies = await event_bodies(self._connection, self._read)
        found = [Event.model_validate_json(body) for body in bodies]
        self._read = found[-1].seq
        return PhasedPlan([await self._dispatcher.plan(self._connection, found)])

    async def _write(self, events: list[Event]) -> None:
        plan = PhasedPlan([await self._dispatcher.plan(self._connection, events)])
        async with self._connection.transaction():
            await plan.write(self._connection)


async def states(connection: Connection) -> list[str]:
    return [row["state"] for row in await actions(connection)]


async def test_a_limit_counts_over_batches_and_what_exceeds_it_gathers(connection: Connection) -> None:
    await apply(connection, "  rate_limit: {count: 2, per: 10s}\n")
    lane = Lane(connection)
    for seconds in (1, 2, 3, 11.5, 12):
        await noted(connection, seconds)
        await lane.dispatch()
    assert await states(connection) == ["running", "running", "gathering"]
    assert len(await rows(connection, "action_event")) == 5, "the later events joined it"
    (timer,) = await rows(connection, "timer")
    assert (timer["key"], timer["nominal_at"]) == ("group", at(11))


async def test_overlap_skip_while_a_run_is_active(connection: Connection) -> None:
    await apply(connection, "  overlap: skip\n")
    lane = Lane(connection)
    await noted(connection, 1)
    await noted(connection, 2)
    await lane.dispatch()
    await connection.execute("update tocsin.action set state = 'completed' where state = 'running'")
    await noted(connection, 3)
    await lane.dispatch()
    assert await states(connection) == ["completed", "skipped", "running"]


async def test_overlap_counts_for_each_group(connection: Connection) -> None:
    await apply(connection, "  overlap: skip\n  group_by: [owner]\n")
    for owner in ("a", "b", "a"):
        await noted(connection, 1, owner=owner)
    await Lane(connection).dispatch()
    assert await states(connection) == ["running", "running", "skipped"]
    assert [row["group_key"] for row in await actions(connection)] == ['["a"]', '["b"]', '["a"]']


async def test_overlap_queue_waits_for_its_turn(connection: Connection) -> None:
    await apply(connection, "  overlap: queue\n")
    for seconds in (1, 2, 3):
        await noted(connection, seconds)
    await Lane(connection).dispatch()
    assert await states(connection) == ["running", "queued", "queued"]
    assert [step["state"] for step in await rows(connection, "action_step")] == ["due"]


async def test_overlap_replace_cancels_the_active_run(connection: Connection) -> None:
    await apply(connection, "  overlap: replace\n")
    lane = Lane(connection)
    await noted(connection, 1)
    await lane.dispatch()
    await noted(connection, 2)
    await noted(connection, 3)
    await lane.dispatch()
    assert await states(connection) == ["cancelled", "skipped", "running"]
    found = await actions(connection)
    assert found[1]["error"] == "overlap: replaced before it began"


async def test_a_run_that_ends_meanwhile_makes_the_batch_a_conflict(
    connection: Connection, sessions: Sessions
) -> None:
    await apply(connection, "  overlap: queue\n")
    lane = Lane(connection)
    await noted(connection, 1)
    await lane.dispatch()
    await noted(connection, 2)
    plan = await lane.planned()
    worker = await sessions("worker")
    await worker.execute("update tocsin.action set state = 'completed', active = '{}'")
    with pytest.raises(Conflict):
        async with connection.transaction():
            await plan.write(connection)
    assert await states(connection) == ["completed"]


async def test_a_group_gathers_its_events_and_begins_when_it_is_over(connection: Connection) -> None:
    await apply(connection, "  group_by: [owner]\n  group_wait: 30s\n")
    lane = Lane(connection)
    await noted(connection, 1, owner="a")
    await noted(connection, 2, owner="b")
    await lane.dispatch()
    await noted(connection, 20, owner="a")
    await lane.dispatch()
    assert await states(connection) == ["gathering", "gathering"]
    links = await rows(connection, "action_event", "event_seq")
    assert len({row["action_id"] for row in links}) == 2
    assert links[0]["action_id"] == links[2]["action_id"]
    assert await rows(connection, "action_step") == []
    term = await begin_term(connection, "test")
    await drain(term, at(30.9))
    assert await states(connection) == ["gathering", "gathering"]
    await drain(term, at(31))
    assert await states(connection) == ["running", "gathering"]
    await noted(connection, 40, owner="a")
    await lane.dispatch()
    assert await states(connection) == ["running", "gathering", "gathering"]


async def test_joining_a_group_that_begins_meanwhile_makes_the_batch_a_conflict(
    connection: Connection, sessions: Sessions
) -> None:
    """The group race, fire first."""
    await apply(connection, "  group_by: [owner]\n  group_wait: 30s\n")
    lane = Lane(connection)
    await noted(connection, 1, owner="a")
    await lane.dispatch()
    await noted(connection, 30.5, owner="a")
    plan = await lane.planned()
    clock = await sessions("clock")
    await virtual_now(clock, at(31))
    await drain(await begin_term(clock, "test"), at(31))
    with pytest.raises(Conflict):
        async with connection.transaction():
            await plan.write(connection)
    assert len(await rows(connection, "action_event")) == 1


async def test_a_group_that_is_being_joined_begins_with_what_joined(
    connection: Connection, sessions: Sessions
) -> None:
    """The group race, join first: the clock waits for the run, and the event is in it."""
    await apply(connection, "  group_by: [owner]\n  group_wait: 30s\n")
    lane = Lane(connection)
    await noted(connection, 1, owner="a")
    await lane.dispatch()
    await noted(connection, 30.5, owner="a")
    plan = await lane.planned()
    async with connection.transaction():
        await plan.write(connection)
    clock = await sessions("clock")
    await virtual_now(clock, at(31))
    await drain(await begin_term(clock, "test"), at(31))
    assert await states(connection) == ["running"]
    assert len(await rows(connection, "action_event")) == 2


@pytest.mark.parametrize(
    ("extra", "types"),
    [
        ("", ["alarm-opened"]),
        ("  transitions: [resolved, acknowledged]\n", ["alarm-resolved", "alarm-acknowledged"]),
    ],
)
async def test_a_rule_over_alarms_sees_the_transitions_that_it_names(
    connection: Connection, extra: str, types: list[str]
) -> None:
    over = f"---\naction_rule:\n  name: page\n  on: alarm\n  when: severity >= high\n  action: tell\n{extra}"
    await put(connection, action("tell") + over)
    for type in ("alarm-opened", "alarm-resolved", "alarm-acknowledged"):
        for severity in (3, 4, 6):
            await note(connection, type=type, origin="derived", severity=severity)
    await note(connection, type="alarm-opened", origin="external", severity=6)
    await Lane(connection).dispatch()
    started = {row["event_seq"] for row in await actions(connection)}
    expected = [
        row for row in await rows(connection, "event") if row["type"] in types and (row["severity"] or 0) >= 4
    ]
    assert started == {row["seq"] for row in expected if row["origin"] == "derived"}
    assert len(started) == 2 * len(types)


async def test_the_group_wait_of_a_batch_begins_with_its_first_event(connection: Connection) -> None:
    await apply(connection, "  group_wait: 30s\n")
    await noted(connection, 1)
    await noted(connection, 20)
    await Lane(connection).dispatch()
    (timer,) = await rows(connection, "timer")
    assert timer["nominal_at"] == at(31)


async def test_an_event_that_comes_again_does_not_count_twice_towards_the_limit(
    connection: Connection,
) -> None:
    await apply(connection, "  rate_limit: {count: 2, per: 1m}\n")
    await noted(connection, 1)
    await Lane(connection).dispatch()
    await noted(connection, 2)
    await Lane(connection).dispatch()
    assert await states(connection) == ["running", "running"]


async def test_an_event_outside_of_the_active_times_is_skipped_with_the_reason(
    connection: Connection,
) -> None:
    await apply(connection, '  active_in: {hours: ["08:00-08:30"]}\n')
    lane = Lane(connection)
    for seconds in (1, 30 * 60):
        await noted(connection, seconds, ts=at(seconds))
        await lane.dispatch()
    assert await states(connection) == ["running", "skipped"]
    (skipped,) = [row for row in await rows(connection, "action_step") if row["state"] == "skipped"]
    assert skipped["result"] == {"reason": "outside of 08:00-08:30 UTC"}

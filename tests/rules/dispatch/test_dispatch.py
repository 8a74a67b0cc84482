"""An action starts once per rule and event, however often and to however many workers the event
comes (I7)."""

from __future__ import annotations

import asyncio
import random

from tests.cdc.published_records import with_long_timeouts
from tests.rules.apply.apply_setup import (
    action,
    actions,
    event_bodies,
    note,
    put,
    rows,
    rule,
    schedule,
    versions,
)
from tests.rules.dispatch.dispatch_setup import dispatch
from tocsin.core.db import Connection, connect
from tocsin.core.settings import Settings


async def test_a_matching_event_starts_its_action_with_the_first_step_due(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, action("tell", "x") + rule("each", "tell"))
    seq = await note(connection, owner="plant 7")
    await note(connection, type="other")
    assert await dispatch(settings, connection, await event_bodies(connection)) == 1

    (started,) = await actions(connection)
    (event,) = [row for row in await rows(connection, "event") if row["seq"] == seq]
    assert (started["name"], started["action_rule"], started["owner"]) == ("tell", "each", "plant 7")
    assert (started["event_id"], started["event_seq"]) == (event["id"], seq)
    assert (started["state"], started["active"]) == ("running", {"0": {"attempt": 1, "state": "due"}})
    assert started["document"]["log"]["message"] == "x"
    assert started["correlation_id"] == event["correlation_id"]
    (step,) = await rows(connection, "action_step")
    assert (step["action_id"], step["step"], step["attempt"]) == (started["id"], 0, 1)
    assert (step["name"], step["owner"], step["state"]) == ("tell", "plant 7", "due")
    assert (step["source_event_id"], step["correlation_id"]) == (event["id"], event["correlation_id"])


async def test_a_redelivery_starts_nothing_and_appends_nothing(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    for _ in range(5):
        await note(connection)
    bodies = await event_bodies(connection)
    assert await dispatch(settings, connection, bodies) == 5
    steps = await rows(connection, "action_step")
    assert await dispatch(settings, connection, bodies) == 0
    assert await dispatch(settings, connection, [*bodies, *bodies]) == 0
    assert await rows(connection, "action_step") == steps
    assert len(await actions(connection)) == 5


async def test_a_redelivery_after_a_change_starts_nothing_either(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    await note(connection)
    bodies = await event_bodies(connection)
    await dispatch(settings, connection, bodies)
    await put(connection, action("tell", "two") + rule("each", "tell", "true") + rule("late", "tell", "true"))
    assert await dispatch(settings, connection, bodies) == 0
    assert len(await versions(connection)) == 5


async def test_an_event_twice_in_one_batch_starts_one_action(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    await note(connection)
    bodies = await event_bodies(connection)
    assert await dispatch(settings, connection, [*bodies, *bodies]) == 1
    assert len(await rows(connection, "action_step")) == 1


async def test_each_matching_rule_starts_an_action_of_its_own(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, action("tell") + rule("one", "tell") + rule("two", "tell"))
    await note(connection)
    assert await dispatch(settings, connection, await event_bodies(connection)) == 2
    assert [row["action_rule"] for row in await actions(connection)] == ["one", "two"]
    assert len({row["id"] for row in await actions(connection)}) == 2


async def test_dispatchers_at_once_on_the_same_events_start_each_action_once(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, action("tell") + rule("one", "tell") + rule("two", "tell"))
    for _ in range(40):
        await note(connection)
    bodies = await event_bodies(connection)

    async def dispatch_mixed(seed: int) -> int:
        own = await connect(with_long_timeouts(settings), f"dispatch {seed}")
        mixed = list(bodies)
        random.Random(seed).shuffle(mixed)
        try:
            return sum([await dispatch(settings, own, mixed[place : place + 4]) for place in range(0, 44, 4)])
        finally:
            await own.close()

    started = await asyncio.gather(*(dispatch_mixed(seed) for seed in range(4)))
    assert sum(started) == len(await actions(connection)) == len(await rows(connection, "action_step")) == 80


async def test_a_message_that_is_not_an_event_is_skipped(settings: Settings, connection: Connection) -> None:
    await put(connection, action("tell") + rule("each", "tell"))
    await note(connection)
    foreign = [b"", b"not json", b"[]", b'{"specversion": "1.0"}', b"\xff"]
    assert await dispatch(settings, connection, foreign) == 0
    assert await dispatch(settings, connection, [*foreign, *await event_bodies(connection)]) == 1


async def test_a_fire_starts_the_action_of_its_schedule_and_those_of_rules(
    settings: Settings, connection: Connection
) -> None:
    text = action("tell") + schedule("beat", extra="  action: tell\n")
    await put(connection, text + rule("also", "tell", 'schedule == "beat"'))
    for _ in range(2):
        await note(connection, origin="scheduled", schedule="beat", action="tell")
    assert await dispatch(settings, connection, await event_bodies(connection)) == 4
    assert [row["action_rule"] for row in await actions(connection)] == ["also", "schedule:beat"] * 2


async def test_an_event_that_cannot_be_evaluated_does_not_stop_the_batch(
    settings: Settings, connection: Connection
) -> None:
    await put(connection, action("tell") + rule("each", "tell", "has(payload.k)"))
    deep = "1"
    for _ in range(100):
        deep = f"[{deep}]"
    await connection.execute(
        "select tocsin.append(array[row(gen_random_uuid(), '2026-03-02', 'caused', 'noted', '', '', '', '', null,"
        " null, null, null, null, %s::jsonb)::tocsin.event_input])",
        (f'{{"k": {deep}}}',),
    )
    await note(connection, payload={"k": 1})
    assert await dispatch(settings, connection, await event_bodies(connection)) == 1

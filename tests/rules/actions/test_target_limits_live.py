"""F21: a target that hangs, with an alarm storm for it, leaves the deliveries to others alone."""

from __future__ import annotations

import asyncio

from nats.js.errors import NotFoundError

from cdc.publisher import Publisher
from rules.actions.due_steps import CONSUMERS
from rules.delivery.target_limits import UNANSWERED_LIMIT
from rules.worker import Worker
from tests.cdc.published_records import smaller
from tests.rules.apply.apply_setup import actions, note, put, rule
from tests.rules.delivery.receivers import Behaviour, receiver, respond
from tests.wait import eventually
from tocsin.core.bus import open_bus
from tocsin.core.db import Connection
from tocsin.core.service import Service, running
from tocsin.core.settings import Settings


def hanging(go_on: asyncio.Event) -> Behaviour:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        await respond()(reader, writer)

    return behave


def webhook(name: str, port: int, timeout: str, attempts: int) -> str:
    return (
        f'---\naction:\n  name: {name}\n  webhook: {{url: "http://127.0.0.1:{port}/x", timeout: {timeout}}}\n'
        f"  retry: {{attempts: {attempts}}}\n"
    )


async def count(connection: Connection, name: str, state: str) -> int:
    return sum(row["name"] == name and row["state"] == state for row in await actions(connection))


async def test_a_target_that_hangs_leaves_places_for_others(
    settings: Settings, connection: Connection
) -> None:
    go_on = asyncio.Event()
    allowed = smaller(settings, egress_allow="127.0.0.1", worker_concurrency=4)
    async with receiver(hanging(go_on)) as slow, receiver(respond()) as quick:
        await put(
            connection,
            webhook("slow", slow.port, "60s", 1)
            + webhook("quick", quick.port, "60s", 1)
            + rule("a", "slow", 'type == "slow"')
            + rule("b", "quick"),
        )
        async with running(Service("cdc", Publisher(settings).run), Service("worker", Worker(allowed).run)):
            for _ in range(12):
                await note(connection, type="slow")

            async def is_hanging() -> bool:
                return len(slow.requests) == 2

            await eventually(is_hanging, "the slow target has its two places")
            for _ in range(6):
                await note(connection)

            async def are_delivered() -> bool:
                return await count(connection, "quick", "completed") == 6

            await eventually(are_delivered, "the quick target has its messages")
            assert len(slow.requests) == 2
            go_on.set()

            async def are_all_delivered() -> bool:
                return await count(connection, "slow", "completed") == 12

            await eventually(are_all_delivered, "steps that waited lost no attempt")
    assert len({request.headers["webhook-id"] for request in slow.requests}) == 12


async def test_steps_that_waited_long_for_their_target_leave_places_for_others(
    settings: Settings, connection: Connection
) -> None:
    permits = asyncio.Semaphore(0)

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await permits.acquire()
        await respond()(reader, writer)

    allowed = smaller(settings, egress_allow="127.0.0.1", worker_concurrency=4)
    async with receiver(behave) as slow, receiver(respond()) as quick, open_bus(settings, "test") as bus:
        await put(
            connection,
            webhook("slow", slow.port, "60s", 1)
            + webhook("quick", quick.port, "60s", 1)
            + rule("a", "slow", 'type == "slow"')
            + rule("b", "quick"),
        )
        async with running(Service("cdc", Publisher(settings).run), Service("worker", Worker(allowed).run)):
            for _ in range(8):
                await note(connection, type="slow")
            js = bus.jetstream()

            async def are_delivered_often() -> bool:
                try:
                    consumer = await js.consumer_info(settings.stream, CONSUMERS["normal"])
                except NotFoundError:
                    return False
                return consumer.delivered is not None and consumer.delivered.consumer_seq >= 2 + 6 * 3

            await eventually(are_delivered_often, "the steps without a place come again and again")
            permits.release()
            permits.release()

            async def is_next_hanging() -> bool:
                return len(slow.requests) >= 3

            await eventually(is_next_hanging, "a step that waited has a place")
            for _ in range(6):
                await note(connection)

            async def are_delivered() -> bool:
                return await count(connection, "quick", "completed") == 6

            await eventually(are_delivered, "the quick target has its messages", within=20)
            for _ in range(6):
                permits.release()

            async def are_all_delivered() -> bool:
                return await count(connection, "slow", "completed") == 8

            await eventually(are_all_delivered, "the slow target has its messages")


async def test_a_target_that_is_down_rests_and_the_last_attempt_is_made(
    settings: Settings, connection: Connection
) -> None:
    go_on = asyncio.Event()
    allowed = smaller(settings, egress_allow="127.0.0.1")
    async with receiver(hanging(go_on)) as dead:
        await put(
            connection,
            webhook("dead", dead.port, "1s", 2)
            + webhook("last", dead.port, "1s", 1)
            + rule("a", "dead", 'type == "dead"')
            + rule("b", "last", 'type == "last"'),
        )
        async with running(Service("cdc", Publisher(settings).run), Service("worker", Worker(allowed).run)):
            for _ in range(UNANSWERED_LIMIT):
                await note(connection, type="dead")

            async def are_waiting(count_wanted: int) -> bool:
                steps = [step for row in await actions(connection) for step in row["active"].values()]
                waiting = [step for step in steps if step["state"] == "waiting"]
                return len(waiting) == count_wanted

            await eventually(lambda: are_waiting(UNANSWERED_LIMIT), "the first ones had no answer")
            await note(connection, type="dead")
            await eventually(lambda: are_waiting(UNANSWERED_LIMIT + 1), "the next one is postponed")
            assert len(dead.requests) == UNANSWERED_LIMIT
            await note(connection, type="last")

            async def is_over() -> bool:
                return await count(connection, "last", "failed") == 1

            await eventually(is_over, "the only attempt is made")
            assert len(dead.requests) == UNANSWERED_LIMIT + 1
        go_on.set()

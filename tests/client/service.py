"""A service that consumes: its inbox, and a table of effects that shows a repeated record twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import nats
from nats.js.errors import NotFoundError

from tests.cdc.published_records import T0, live
from tests.sql import all_rows
from tests.wait import eventually
from tocsin.client import Event, Events, Inbox, consume, make_inbox
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings


async def make_service(connection: Connection) -> None:
    """Create the tables. The effects have no key: a record that is handled twice has two rows."""
    await make_inbox(connection)
    await connection.execute("create table effect (seq bigint, id uuid)")


async def note(event: Event, connection: Connection) -> None:
    """The handler of an ordinary service: it writes one row."""
    await connection.execute("insert into effect values (%s, %s)", (event.seq, event.id))


async def effects(connection: Connection) -> list[int]:
    return [row["seq"] for row in await all_rows(connection, "select seq from effect order by seq")]


async def publish(settings: Settings, connection: Connection, count: int, **fields: Any) -> int:
    """Append events and publish them; returns the last seq."""
    events = [NewEvent(T0, "caused", "noted", {"n": n}, **fields) for n in range(count)]
    last = await append_events(connection, events)
    await bring_up(settings)
    return last


async def bring_up(settings: Settings) -> None:
    async with live(settings) as publisher:
        await publisher.drain()


async def delete_stream(settings: Settings) -> None:
    bus = await connect_bus(settings, "test")
    try:
        with suppress(NotFoundError):
            await bus.jetstream(timeout=10).delete_stream(settings.stream)
    finally:
        await bus.close()


def billing(settings: Settings, stop: asyncio.Event, *, call: Any = consume, **changes: Any) -> Any:
    """Call `consume` with the arguments of most tests."""
    select = Events(namespace=settings.namespace)
    wanted: dict[str, Any] = {
        "select": select,
        "handle": note,
        "consumer": "billing",
        "keep": Inbox(settings.postgres),
        "start": "beginning",
        "nats": settings.nats,
        "stop": stop,
        **changes,
    }
    return call(**wanted)


@asynccontextmanager
async def running(*coroutines: Any, stop: asyncio.Event) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Run consumers for the length of the block, then stop them and raise their errors."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield tasks
    except AssertionError as failure:
        for task in tasks:
            if task.done() and not task.cancelled():
                failure.add_note(f"a consumer ended: {task.exception()!r}")
        raise
    finally:
        stop.set()
        await asyncio.wait(tasks, timeout=30)
        for task in tasks:
            task.cancel()
    await asyncio.gather(*tasks)


async def until_handled(connection: Connection, expected: Sequence[int], within: float = 20.0) -> None:
    """Wait until the effects are these; fails at once if there are others."""

    async def are_there() -> bool:
        handled = await effects(connection)
        assert set(handled) <= set(expected), handled
        return len(handled) >= len(expected)

    await eventually(are_there, f"{len(expected)} records are handled", within)
    assert await effects(connection) == list(expected)


async def until_acknowledged(settings: Settings, consumer: str = "billing") -> None:
    bus = await connect_bus(settings, "test")
    js = bus.jetstream(timeout=10)

    async def is_done() -> bool:
        with suppress(NotFoundError):
            info = await js.consumer_info(settings.stream, consumer)
            return not info.num_pending and not info.num_ack_pending
        return False

    try:
        # Sooner than the ack wait, after which NATS would redeliver it.
        await eventually(is_done, "the consumer has acknowledged everything", within=20)
    finally:
        await bus.close()


@dataclass(frozen=True)
class Letter:
    subject: str
    headers: dict[str, str]
    body: bytes


async def dead_letters(settings: Settings) -> list[Letter]:
    bus = await nats.connect(settings.nats)
    js = bus.jetstream()
    try:
        last = (await js.stream_info(f"{settings.namespace}-consumers-dead")).state.last_seq
        messages = [
            await js.get_msg(f"{settings.namespace}-consumers-dead", seq=seq) for seq in range(1, last + 1)
        ]
        return [
            Letter(message.subject or "", message.headers or {}, message.data or b"") for message in messages
        ]
    except NotFoundError:
        return []
    finally:
        await bus.close()

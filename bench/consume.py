"""`consume_batches` with an inbox: its rate, compared with the bare insert of the same rows.

The backlog is published before. Ours reads it from JetStream, validates each body, claims the
records in the inbox, inserts one row for each and acknowledges them. The limit inserts the same rows
in transactions of the same size, in one session of the same server. `consume`, which takes one
record at a time, is measured in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any

from psycopg import AsyncConnection

from bench.database import bench_servers, migrated
from bench.processes import running
from tocsin.client import Delivery, Event, Events, Inbox, consume, consume_batches, make_inbox, replay
from tocsin.core.db import Connection, statement
from tocsin.core.settings import Settings
from tocsin.embedded import Servers

_AT = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
_APPENDED = 100
_WITHIN_S = 300.0


def run(arguments: list[str]) -> dict[str, object]:
    parser = argparse.ArgumentParser(prog="python -m bench consume")
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--single", type=int, default=2_000, help="records that `consume` handles")
    parser.add_argument("--batch", type=int, default=500)
    options = parser.parse_args(arguments)
    with bench_servers() as servers:
        return asyncio.run(_measure(servers, options.records, options.single, options.batch))


async def _measure(servers: Servers, count: int, single: int, batch: int) -> dict[str, object]:
    async with (
        migrated(servers) as (settings, connection),
        await AsyncConnection.connect(settings.postgres, autocommit=True) as session,
    ):
        await make_inbox(session)
        await session.execute(statement("bench/create_effects"))
        with running(settings, "cdc"):
            for _ in range(count // _APPENDED):
                await connection.execute(statement("bench/append_backlog"), {"count": _APPENDED, "at": _AT})
            events = await _read(settings, count)
        limit = await _bare_insert(session, events, batch)
        alone = await _until_handled(
            single,
            lambda service: consume(
                Events(), service.handle_one, consumer="one", **service.options(settings)
            ),
        )
        await session.execute(statement("bench/clear_effects"))
        ours = await _until_handled(
            count,
            lambda service: consume_batches(
                Events(),
                service.handle,
                consumer="batches",
                delivery=Delivery(batch=batch),
                **service.options(settings),
            ),
        )
    return {
        "name": "consume",
        "records": count,
        "batch": batch,
        "single_per_s": alone,
        "ours": ours,
        "limit": limit,
        "ratio": ours / limit,
        "goal": "at least 5,000 records/s in batches, in order, with an inbox",
    }


class _Service:
    def __init__(self, count: int) -> None:
        self._left = count
        self.stop = asyncio.Event()

    def options(self, settings: Settings) -> dict[str, Any]:
        return {
            "keep": Inbox(settings.postgres),
            "start": "beginning",
            "nats": settings.nats,
            "stop": self.stop,
        }

    async def handle(self, events: list[Event], connection: Connection) -> None:
        await _insert(connection, events)
        self._left -= len(events)
        if self._left <= 0:
            self.stop.set()

    async def handle_one(self, event: Event, connection: Connection) -> None:
        await self.handle([event], connection)


async def _until_handled(count: int, consumer: Any) -> float:
    """Records per second, from the call of the consumer to its end."""
    service = _Service(count)
    began = time.perf_counter()
    running_consumer: Coroutine[Any, Any, None] = consumer(service)
    async with asyncio.timeout(_WITHIN_S):
        await running_consumer
    return count / (time.perf_counter() - began)


async def _read(settings: Settings, count: int) -> list[Event]:
    """Wait until everything is published, and read it."""
    events: list[Event] = []
    async with asyncio.timeout(_WITHIN_S):
        async for event in replay(Events(), follow=True, nats=settings.nats):
            events.append(event)
            if len(events) == count:
                break
    return events


async def _bare_insert(connection: Connection, events: Sequence[Event], batch: int) -> float:
    began = time.perf_counter()
    for first in range(0, len(events), batch):
        async with connection.transaction():
            await _insert(connection, events[first : first + batch])
    rate = len(events) / (time.perf_counter() - began)
    await connection.execute(statement("bench/clear_effects"))
    return rate


async def _insert(connection: Connection, events: Sequence[Event]) -> None:
    rows = {
        "seqs": [event.seq for event in events],
        "ids": [event.id for event in events],
        "times": [event.time for event in events],
        "notes": [event.data["text"] for event in events],
    }
    await connection.execute(statement("bench/insert_effects"), rows)

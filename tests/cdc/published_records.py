"""Writers, publishers without a lease, and the comparison of the stream with the log."""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from nats.aio.client import Client
from nats.errors import TimeoutError as NatsTimeout
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError
from psycopg import Rollback
from psycopg.rows import dict_row

from cdc.chain import Chain, ChainBroken
from cdc.log_reader import LogReader
from cdc.publisher import Publisher
from cdc.stream import record_stream_config
from schemas.wire.subjects import action_subject, event_subject
from tests.records import events
from tests.streams import StoredMessage, read_stream
from tests.wait import eventually
from tocsin.core.bus import connect_bus
from tocsin.core.db import Connection, connect
from tocsin.core.record_log import append_events
from tocsin.core.records import NewEvent
from tocsin.core.settings import Settings

T0 = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


@dataclass
class Live:
    """A publisher with its sessions, driven by the test."""

    publisher: Publisher
    bus: Client
    js: JetStreamContext
    chain: Chain
    reader: LogReader
    broken: int = 0

    async def step(self) -> bool:
        return await self.publisher.publish_next(self.chain, self.reader)

    async def resume(self) -> None:
        await self.publisher.resume(self.js, self.reader)

    async def drain(self) -> None:
        """Publish until all is acknowledged, as the service does it."""
        while True:
            try:
                if not await self.step():
                    return
            except ChainBroken:
                self.broken += 1
                await self.resume()


@asynccontextmanager
async def live(settings: Settings, chain_type: type[Chain] = Chain) -> AsyncIterator[Live]:
    connection = await connect(with_long_timeouts(settings), "test publisher")
    bus = await connect_bus(settings, "test publisher")
    try:
        chain = await chain_type.open(bus, settings.subjects, f"tocsin/{settings.namespace}")
        publisher = Live(Publisher(settings), bus, bus.jetstream(timeout=10), chain, LogReader(connection))
        await publisher.resume()
        yield publisher
    finally:
        await bus.close()
        await connection.close()


async def publish_all(settings: Settings) -> None:
    async with live(settings) as publisher:
        await publisher.drain()


async def publish_all_but(settings: Settings, connection: Connection, *lost: int) -> None:
    """Publish the log to a stream that then loses messages, although its configuration denies it."""
    bus = await connect_bus(settings, "test")
    js = bus.jetstream()
    await js.add_stream(replace(record_stream_config(settings), deny_delete=False))
    chain = await Chain.open(bus, settings.subjects, f"tocsin/{settings.namespace}")
    await chain.confirm(await chain.send(await LogReader(connection).read(0, 1000)), 20)
    for seq in lost:
        await js.delete_msg(settings.stream, seq)
    await js.update_stream(record_stream_config(settings))
    await bus.close()


async def forget_after(connection: Connection, seq: int) -> None:
    """Remove later records, as a restore from a backup of that moment does."""
    for table in ("event", "action_step", "datapoint_calculated"):
        await connection.execute(f"delete from tocsin.{table} where seq > {seq}")
    await connection.execute("delete from tocsin.log_commit where last_seq > %s", (seq,))


async def bodies(settings: Settings, first: int = 1) -> list[dict[str, Any]]:
    """The bodies of the stream from a sequence on."""
    count = await last_sequence(settings) - first + 1
    return [json.loads(message.data) for message in await read_stream(settings, count, after=first - 1)]


async def append(connection: Connection, count: int, **fields: Any) -> int:
    """Append events and return the last seq."""
    return await append_events(
        connection, [NewEvent(T0, "caused", "noted", {"n": n}, **fields) for n in range(count)]
    )


async def append_steps(connection: Connection, count: int, result: str = "{}") -> None:
    await connection.execute(
        "select tocsin.append('{}', array_agg(row(gen_random_uuid(), gen_random_uuid(), 'tell', 'plant 7', 0,"
        " 1, 'due', gen_random_uuid(), null, %s::jsonb)::tocsin.step_input)) from generate_series(1, %s)",
        (result, count),
    )


async def write(settings: Settings, seed: int, transactions: int, stop: asyncio.Event | None = None) -> int:
    """Write events and steps, and roll back a fifth of the transactions; the number of committed records."""
    chance = random.Random(seed)
    connection = await connect(with_long_timeouts(settings), f"test writer {seed}")
    try:
        committed = 0
        for number in range(transactions):
            if stop is not None and stop.is_set():
                break
            committed += await write_some(connection, chance, seed, number)
    finally:
        await connection.close()
    return committed


async def write_some(connection: Connection, chance: random.Random, writer: int, number: int) -> int:
    """Write one transaction; the number of committed records."""
    count = chance.randint(1, 5)
    is_committed = chance.random() > 0.2
    async with connection.transaction():
        if chance.random() < 0.7:
            payload = {"writer": writer, "number": number, "text": "é" * chance.randint(0, 300)}
            note = NewEvent(T0, "caused", "noted", payload, owner=f"writer.{writer}")
            await append_events(
                connection, [NewEvent(**{**vars(note), "id": uuid.uuid4()}) for _ in range(count)]
            )
        else:
            await append_steps(connection, count, json.dumps({"writer": writer}))
        if not is_committed:
            raise Rollback
    return count if is_committed else 0


async def head(connection: Connection) -> int:
    return await LogReader(connection).head()


async def last_sequence(settings: Settings) -> int:
    """The last sequence of the stream; -1 if there is no stream."""
    bus = await connect_bus(settings, "test")
    try:
        return int((await bus.jetstream().stream_info(settings.stream)).state.last_seq)
    except NotFoundError:
        return -1
    finally:
        await bus.close()


async def published(settings: Settings, connection: Connection, within: float = 60.0) -> list[StoredMessage]:
    """The whole stream, once it has reached the head of the log, compared with the tables."""

    async def is_published() -> bool:
        # A server that is busy, or is creating the stream again, answers no request for its state.
        with suppress(NatsTimeout):
            return await last_sequence(settings) == await head(connection)
        return False

    await eventually(is_published, "the stream reaches the head of the log", within)
    rows = await log(connection)
    stored = await read_stream(settings, len(rows), after=rows[0]["seq"] - 1 if rows else 0)
    assert [message.seq for message in stored] == [row["seq"] for row in rows]
    assert difference(settings, stored, rows) == Difference()
    for message in stored:
        assert message.headers["Nats-Expected-Last-Sequence"] == str(message.seq - 1)
    return stored


@dataclass(frozen=True)
class Difference:
    """The differences between the stream and the log."""

    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    wrong_bodies: int = 0


def difference(settings: Settings, stored: list[StoredMessage], rows: list[dict[str, Any]]) -> Difference:
    """Messages in the order of the stream, records in the order of their commits."""
    seen = [json.loads(message.data) for message in stored]
    ids = [body["id"] for body in seen]
    expected = {str(row["id"]): row for row in rows}
    return Difference(
        lost=len(expected.keys() - set(ids)),
        duplicated=len(ids) - len(set(ids)),
        out_of_order=sum(later["seq"] <= earlier["seq"] for earlier, later in pairwise(seen)),
        wrong_bodies=sum(
            not _is_as_written(settings, message, body, expected.get(body["id"]))
            for message, body in zip(stored, seen, strict=True)
        ),
    )


def _is_as_written(
    settings: Settings, message: StoredMessage, body: dict[str, Any], row: dict[str, Any] | None
) -> bool:
    return (
        row is not None
        and body["seq"] == row["seq"] == message.seq
        and body["data"] == row.get("payload", row.get("result"))
        and message.subject == subject_of(settings, row)
    )


async def log(connection: Connection) -> list[dict[str, Any]]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute("select * from tocsin.action_step")
        steps = await cursor.fetchall()
    return sorted([*await events(connection), *steps], key=lambda row: int(row["seq"]))


def subject_of(settings: Settings, row: dict[str, Any]) -> str:
    if "action_id" in row:
        return action_subject(
            settings.subjects, row["name"], row["priority"] if row["state"] == "due" else None
        )
    name = row["schedule"] or row["rule"] or row["action"]
    return event_subject(settings.subjects, row["origin"], row["type"], name, row["owner"])


def with_long_timeouts(settings: Settings) -> Settings:
    """Half a minute of grace for a session in a transaction, a minute for a lock."""
    return settings.model_copy(update={"lease_ttl_s": 60.0})


def smaller(settings: Settings, **changed: Any) -> Settings:
    return settings.model_copy(update=changed)
